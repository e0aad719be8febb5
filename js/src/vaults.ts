// What a client opens: vaults, their blobs and their collections, and what is iterated in them.
import { Invalid } from "./errors.js";
import { checkedCursor } from "./format/encoding.js";
import { checkedVaultName, plainName } from "./format/names.js";
import type { BatchWrites, Item, Many, WriteResult } from "./operations/batches.js";
import type { Blob } from "./operations/blobs.js";
import type { Core } from "./operations/core.js";
import * as documents from "./operations/documents.js";
import { type Document, Scope } from "./operations/documents.js";
import type { Version } from "./operations/history.js";
import { Listing } from "./operations/listing.js";
import type { Progress, Rotation } from "./operations/rotation.js";
import type { TokenOptions } from "./operations/tokens.js";
import type { OpenVault } from "./operations/vaults.js";
import type { Value, ValueType } from "./operations/valueTypes.js";
import { rare } from "./lazyImports.js";

/** The changes after a cursor. After the iteration, `cursor` is where to continue. */
export class Changes<T> implements AsyncIterable<Document<T>> {
  readonly #listing: Listing<T>;

  /** Made by `since`. */
  constructor(core: Core, scope: Scope<T>, cursor?: number, isTrash = false) {
    this.#listing = new Listing(core, scope, cursor, isTrash);
  }

  /** The timestamp up to which every change was seen. */
  get cursor(): number {
    return this.#listing.cursor;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Document<T>, void, undefined> {
    while (this.#listing.more) yield* await this.#listing.page();
  }
}

/** The deleted documents whose content is still there, in the order of their deletion. */
export class Trash<T> implements AsyncIterable<Document<T>> {
  readonly #core: Core;
  readonly #scope: Scope<T>;

  /** Made by `trash`. */
  constructor(core: Core, scope: Scope<T>) {
    this.#core = core;
    this.#scope = scope;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Document<T>, void, undefined> {
    return new Changes(this.#core, this.#scope, undefined, true)[Symbol.asyncIterator]();
  }

  /** Purge all of them, at once and for good; how many, as the server says. */
  async empty(): Promise<number> {
    return (await rare()).trash.empty(this.#core, this.#scope);
  }
}

/**
 * Many writes, a result for each item, in their order.
 *
 * They are done batch by batch while the results are iterated, or all of them when it is awaited.
 */
export class Writes<T> implements AsyncIterable<WriteResult<T>>, PromiseLike<WriteResult<T>[]> {
  readonly #begin: () => Promise<BatchWrites<T>>;

  /** Made by `createMany`, `replaceMany` and `deleteMany`. */
  constructor(
    core: Core,
    scope: Scope<T>,
    itemsOf: (made: typeof import("./operations/batches.js")) => AsyncIterator<Item, void>,
  ) {
    let writes: Promise<BatchWrites<T>> | undefined;
    this.#begin = () =>
      (writes ??= rare().then(({ batches: made }) => new made.BatchWrites(core, scope, itemsOf(made))));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WriteResult<T>, void, undefined> {
    const writes = await this.#begin();
    try {
      while (writes.more) yield* await writes.page();
    } finally {
      await writes.close();
    }
  }

  /** Do all of them, and give the results. */
  // biome-ignore lint/suspicious/noThenProperty: it is awaited like a promise, or iterated
  then<A = WriteResult<T>[], B = never>(
    done?: ((results: WriteResult<T>[]) => A | PromiseLike<A>) | null,
    failed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const all = async (): Promise<WriteResult<T>[]> => {
      const results: WriteResult<T>[] = [];
      for await (const result of this) results.push(result);
      return results;
    };
    return all().then(done, failed);
  }
}

/** A vault: collections of documents, and perhaps a blob. */
export class Vault implements AsyncIterable<Document> {
  readonly #core: Core;
  #opened: OpenVault;

  /** Made by `client.vault`. */
  constructor(core: Core, opened: OpenVault) {
    this.#core = core;
    this.#opened = opened;
  }

  /** The vault's uid. */
  get uid(): string {
    return this.#opened.uid;
  }

  /** Its plaintext name. */
  get name(): string {
    return this.#opened.name;
  }

  /** The one value that a vault may carry besides its documents. */
  get blob(): VaultBlob {
    return new VaultBlob(this.#core, this.#opened);
  }

  /**
   * A collection of documents. It needs no making: it is there when it holds a document.
   *
   * `type` reads the values: an object with a function `parse`, or any validator of Standard Schema. Without it, values
   * are JSON or bytes.
   */
  collection(name: string): Collection<Value>;
  collection<T>(name: string, type: ValueType<T>): Collection<T>;
  collection<T>(name: string, type?: ValueType<T>): Collection<T> {
    const { keys, sealed } = this.#opened;
    checkedVaultName(plainName(name, "collection"), sealed);
    return new Collection(this.#core, new Scope(keys, name, sealed, checkedType(type)));
  }

  /** The collections that hold documents, by name. */
  async collections(): Promise<Collection<Value>[]> {
    return (await (await rare()).collections.listCollections(this.#core, this.#opened)).map((name) =>
      this.collection(name),
    );
  }

  /** The deleted documents of every collection that can be revived. */
  get trash(): Trash<unknown> {
    return new Trash(this.#core, this.#scope);
  }

  get #scope(): Scope {
    return new Scope(this.#opened.keys);
  }

  /** Iterate the live documents of every collection. */
  [Symbol.asyncIterator](): AsyncGenerator<Document, void, undefined> {
    return new Changes(this.#core, this.#scope)[Symbol.asyncIterator]();
  }

  /** The changes after a cursor, in all collections; deletions included. */
  since(cursor: number): Changes<unknown> {
    return new Changes(this.#core, this.#scope, checkedCursor(cursor));
  }

  /** Give the vault another name. */
  async rename(name: string): Promise<void> {
    this.#opened = await (await rare()).vaultChanges.renameVault(this.#core, this.#opened, name);
  }

  /**
   * Make a new key for this vault, and encrypt everything in it again. Tokens for it are revoked.
   *
   * Of the result, `unseen` is what this device had not read before: `finishRotation` of the client takes it.
   */
  async rotate({ progress }: { progress?: Progress } = {}): Promise<Rotation> {
    const [opened, rotation] = await (await rare()).rotation.rotateVault(this.#core, this.#opened, progress);
    this.#opened = opened;
    return rotation;
  }

  /** Delete the vault and everything in it, at once and for good. */
  async delete(): Promise<void> {
    await (await rare()).vaultChanges.deleteVault(this.#core, this.#opened);
  }

  /** A token (`srv_…`) that opens this vault and nothing else: an API key and the vault's key in one. */
  async token(name: string, options: TokenOptions = {}): Promise<string> {
    return (await rare()).tokens.vaultToken(this.#core, name, this.#opened, options);
  }
}

/** The one value that a vault may carry besides its documents. */
export class VaultBlob {
  readonly #core: Core;
  readonly #opened: OpenVault;

  /** Made by `vault.blob`. */
  constructor(core: Core, opened: OpenVault) {
    this.#core = core;
    this.#opened = opened;
  }

  /** The blob, if there is one. */
  async get(): Promise<Blob | undefined> {
    return (await rare()).blobs.getBlob(this.#core, this.#opened);
  }

  /**
   * Set the blob, if it is still the one that this client has last read or written; otherwise VaultConflict.
   *
   * A client that has read none sets the first one only. `after` is the blob that this one follows on, in the place of
   * the last one read: `{ after: await vault.blob.get() }` replaces whatever is there.
   */
  async put(value: unknown, { after }: { after?: Blob | undefined } = {}): Promise<Blob> {
    return (await rare()).blobs.putBlob(this.#core, this.#opened, value, after);
  }

  /** The versions of the vault whose blob was replaced and is kept, newest first: the server's word. */
  async history(): Promise<Version[]> {
    return (await rare()).history.ofBlob(this.#core, this.#opened);
  }

  /** The blob as it was at a version of the vault, verified. */
  async getVersion(version: number): Promise<Blob> {
    return (await rare()).history.getBlobVersion(this.#core, this.#opened, version);
  }

  /** Set the blob to what it was at a version. `after` is as for `put`. */
  async restore(version: number, { after }: { after?: Blob | undefined } = {}): Promise<Blob> {
    return (await rare()).history.restoreBlob(this.#core, this.#opened, version, after);
  }
}

/** Documents of one kind. Their values are JSON or bytes, or of the type `T` that the collection was opened with. */
export class Collection<T = Value> implements AsyncIterable<Document<T>> {
  readonly #core: Core;
  readonly #scope: Scope<T>;

  /** Made by `vault.collection`. */
  constructor(core: Core, scope: Scope<T>) {
    this.#core = core;
    this.#scope = scope;
  }

  /** Its plaintext name. */
  get name(): string {
    return this.#scope.name ?? "";
  }

  /** A new document. */
  async create(value: T, { uid }: { uid?: string } = {}): Promise<Document<T>> {
    return documents.create(this.#core, this.#scope, value, uid);
  }

  /** One document; a deleted one only if `deleted` is true. */
  async get(uid: string, { deleted = false }: { deleted?: boolean } = {}): Promise<Document<T>> {
    return documents.get(this.#core, this.#scope, uid, deleted);
  }

  /**
   * Another value. If the document has changed since you read it, that is a DocumentConflict.
   *
   * A deleted document is revived.
   */
  async replace(document: Document<unknown>, value: T): Promise<Document<T>> {
    return documents.replace(this.#core, this.#scope, document, value);
  }

  /** Delete a document, if it has not changed since you read it. */
  async delete(document: Document<unknown>): Promise<Document<T>> {
    return (await rare()).deletions.remove(this.#core, this.#scope, document);
  }

  /** New documents, in batches. With `uids`, one for each value, what was created before is not created again. */
  createMany(values: Many<T>, { uids }: { uids?: Many<string> } = {}): Writes<T> {
    return new Writes(this.#core, this.#scope, (made) => made.creations(values, uids));
  }

  /** Other values for documents, in batches; each as for `replace`. */
  replaceMany(changes: Many<readonly [Document<unknown>, T]>): Writes<T> {
    return new Writes(this.#core, this.#scope, (made) => made.replacements(changes));
  }

  /** Delete documents, in batches; each as for `delete`. */
  deleteMany(wanted: Many<Document<unknown>>): Writes<T> {
    return new Writes(this.#core, this.#scope, (made) => made.deletions(wanted));
  }

  /** The versions of a document that were replaced and are kept, newest first. */
  async history(uid: string): Promise<Version[]> {
    return (await rare()).history.ofDocument(this.#core, this.#scope, uid);
  }

  /** A document as it was at a version, deleted or not. */
  async getVersion(uid: string, version: number): Promise<Document<T>> {
    return (await rare()).history.getVersion(this.#core, this.#scope, uid, version);
  }

  /** Replace a document by what it was at a version, if it has not changed since you read it. */
  async restore(document: Document<unknown>, version: number): Promise<Document<T>> {
    return (await rare()).history.restore(this.#core, this.#scope, document, version);
  }

  /** The deleted documents that can be revived. */
  get trash(): Trash<T> {
    return new Trash(this.#core, this.#scope);
  }

  /** A deleted document with its last value again, if it has not changed since you read it. */
  async revive(document: Document<unknown>): Promise<Document<T>> {
    return (await rare()).trash.revive(this.#core, this.#scope, document);
  }

  /** Purge a deleted document: its content and its history, at once and for good. */
  async purge(document: Document<unknown>): Promise<void> {
    await (await rare()).trash.purge(this.#core, this.#scope, document);
  }

  /** Iterate the live documents, each once, in the order of their last change. */
  [Symbol.asyncIterator](): AsyncGenerator<Document<T>, void, undefined> {
    return new Changes(this.#core, this.#scope)[Symbol.asyncIterator]();
  }

  /** The changes after a cursor; deletions included. */
  since(cursor: number): Changes<T> {
    return new Changes(this.#core, this.#scope, checkedCursor(cursor));
  }

  /** A token (`srv_…`) that opens this collection and nothing else. */
  async token(name: string, options: TokenOptions = {}): Promise<string> {
    return (await rare()).tokens.collectionToken(this.#core, name, this.#scope, options);
  }
}

/** The type of a collection's values; anything else is the caller's mistake. */
export function checkedType<T>(type: ValueType<T> | undefined): ValueType<T> | undefined {
  const isType =
    type === undefined || (Object(type) === type && ("~standard" in type || typeof type.parse === "function"));
  if (!isType) throw new Invalid({ type: "must have a function parse, or be a validator of Standard Schema" });
  return type;
}
