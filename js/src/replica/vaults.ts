// Vaults and collections of a replica: reads and writes on this device, without a server.
import { checkedVaultName, plainName } from "../format/names.js";
import type { Many } from "../operations/batches.js";
import { type Document, Scope } from "../operations/documents.js";
import { type OpenVault, renewed } from "../operations/vaults.js";
import type { Value, ValueType } from "../operations/valueTypes.js";
import { checkedType } from "../vaults.js";
import {
  type LiveDocument,
  liveDocument,
  type LiveDocuments,
  liveDocuments,
  type LiveStore,
  type Query,
  select,
} from "./live.js";
import type { Local } from "./local.js";
import { blobOf } from "./unlock.js";

/** A vault on this device. */
export class ReplicaVault implements AsyncIterable<Document> {
  readonly #local: Local;
  readonly #opened: OpenVault;

  /** Made by `replica.vault`. */
  constructor(local: Local, opened: OpenVault) {
    this.#local = local;
    this.#opened = opened;
  }

  /** The vault's uid. */
  get uid(): string {
    return this.#opened.uid;
  }

  /** Its plaintext name, by now: a sync may have changed that of a vault that was made here. */
  get name(): string {
    return this.#local.core.ring?.entry(this.uid)?.name ?? this.#opened.name;
  }

  /** A collection of documents. `type` reads its values, as for `vault.collection` of a client. */
  collection(name: string): ReplicaCollection<Value>;
  collection<T>(name: string, type: ValueType<T>): ReplicaCollection<T>;
  collection<T>(name: string, type?: ValueType<T>): ReplicaCollection<T> {
    const { keys, sealed } = this.#opened;
    checkedVaultName(plainName(name, "collection"), sealed);
    return new ReplicaCollection(this.#local, new Scope(keys, name, sealed, checkedType(type)));
  }

  /** The vault's blob, as it was when this device last saw it; undefined where there is none. */
  async blob(): Promise<unknown> {
    return blobOf(this.#local, await renewed(this.#local.core, this.#opened));
  }

  /** The documents of every collection that a query wants, as a store that follows every change on this device. */
  live(query: Query<unknown> = {}): LiveStore<LiveDocuments<unknown>> {
    return liveDocuments(this.#local, new Scope(this.#opened.keys), query);
  }

  /** Iterate the live documents of every collection. */
  [Symbol.asyncIterator](): AsyncGenerator<Document, void, undefined> {
    return this.#local.iterate(new Scope(this.#opened.keys));
  }
}

/** Documents of one kind, on this device. What is written here is sent with the next sync. */
export class ReplicaCollection<T = Value> implements AsyncIterable<Document<T>> {
  readonly #local: Local;
  readonly #scope: Scope<T>;

  /** Made by `vault.collection` of a replica. */
  constructor(local: Local, scope: Scope<T>) {
    this.#local = local;
    this.#scope = scope;
  }

  /** @internal */
  inside(): { readonly local: Local; readonly scope: Scope<T> } {
    return { local: this.#local, scope: this.#scope };
  }

  /** Its plaintext name. */
  get name(): string {
    return this.#scope.name ?? "";
  }

  /** A new document. It is on disk when the call returns. */
  async create(value: T, { uid }: { uid?: string } = {}): Promise<Document<T>> {
    const [made] = await this.#local.create(this.#scope, [value], uid);
    return made as Document<T>;
  }

  /** New documents in one transaction: all are on disk when the call returns, or none. Faster than one by one. */
  async createMany(values: Many<T>): Promise<Document<T>[]> {
    const all: T[] = [];
    for await (const value of values) all.push(value);
    return this.#local.create(this.#scope, all);
  }

  /** One document; a deleted one only if `deleted` is true. */
  get(uid: string, { deleted = false }: { deleted?: boolean } = {}): Promise<Document<T>> {
    return this.#local.get(this.#scope, uid, deleted);
  }

  /** Another value. If the document has changed since you read it, that is a DocumentConflict. */
  replace(document: Document<unknown>, value: T): Promise<Document<T>> {
    return this.#local.replace(this.#scope, document, value);
  }

  /** Delete a document, if it has not changed since you read it. */
  delete(document: Document<unknown>): Promise<Document<T>> {
    return this.#local.remove(this.#scope, document);
  }

  /** Iterate the live documents. */
  [Symbol.asyncIterator](): AsyncGenerator<Document<T>, void, undefined> {
    return this.#local.iterate(this.#scope);
  }

  /** The documents that a query wants, once. */
  async find(query: Query<T> = {}): Promise<Document<T>[]> {
    const found: Document<T>[] = [];
    for await (const document of this) found.push(document);
    return select(found, query);
  }

  /** The documents that a query wants, as a store that follows every change on this device, of other tabs too. */
  live(query: Query<T> = {}): LiveStore<LiveDocuments<T>> {
    return liveDocuments(this.#local, this.#scope, query);
  }

  /** One document, as a store that follows every change on this device. */
  liveDocument(uid: string): LiveStore<LiveDocument<T>> {
    return liveDocument(this.#local, this.#scope, uid);
  }
}
