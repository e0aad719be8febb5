// Operations on documents: encrypted before they are sent, verified when they are received.
import { DocumentNotFound, Invalid, Locked, RolledBack, Tampered, TypeMismatch } from "../errors.js";
import { toValue } from "../format/content.js";
import { checkedUid, short } from "../format/encoding.js";
import { type CollectionKeys, newest, type VaultKeys } from "../format/keys.js";
import { collectionKeys, isSealed, openName, plainName } from "../format/names.js";
import { type Content, NOTHING } from "../format/padding.js";
import { follows } from "../format/parents.js";
import { DOCUMENT, type Opened, openDocument, readProof, sealContent, type Sealed } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import * as requests from "../net/requests/documents.js";
import type { Core } from "./core.js";
import { newUid } from "./core.js";
import type { KnownDocument } from "./device.js";
import * as keyrings from "./keyrings.js";
import { requireCollection } from "./rollback.js";
import { decode, encode, type Typed, type ValueType } from "./valueTypes.js";
import { rare } from "../lazyImports.js";

export const WRONG_DOCUMENT = "The server answered with another document than the one that was asked for.";
export const WITHHELD = "The server left out a document that this device has seen, and that nobody deleted.";
export const NOT_STORED = "The server did not keep the document that it was given.";

/** A decrypted document. `deleted` is proven by a key holder; of a deletion, `value` is the last value, if stored. */
export class Document<T = unknown> {
  declare readonly uid: string;
  /** The uid of its vault. */
  declare readonly vault: string;
  /** The plaintext name of its collection. */
  declare readonly collection: string;
  declare readonly version: number;
  /** Milliseconds since 1970, as all times. */
  declare readonly createdAt: number;
  declare readonly updatedAt: number;
  declare readonly deleted: boolean;
  /** Whether the server's history no longer shows that this version follows on the one that this client had seen. */
  declare readonly gap: boolean;
  /** Of a deletion: its content is gone from the server, and `value` is null. */
  declare readonly purged: boolean;
  /** The name of its collection on the server. */
  declare readonly wire: string;
  /** What identifies the content. */
  declare readonly proof: string;
  readonly #raw: () => unknown; // the console of a browser shows texts in private members
  readonly #typed: Typed<T> | undefined;

  constructor(shown: Shown, raw: unknown, typed?: Typed<T>) {
    const { uid, vault, collection, version, createdAt, updatedAt, deleted, gap, purged, wire, proof } = shown;
    Object.assign(this, { uid, vault, collection, version, createdAt, updatedAt, deleted, gap, purged, wire, proof });
    this.#raw = () => raw;
    this.#typed = typed;
  }

  /** The value as it is stored, JSON or bytes. */
  get raw(): unknown {
    return this.#raw();
  }

  /** The value. If it does not fit the type that was asked for, that is a TypeMismatch; `raw` has it then. */
  get value(): T {
    const typed = this.#typed;
    if (!typed) return this.#raw() as T;
    if ("problem" in typed) throw new TypeMismatch(this.uid, typed.problem);
    return typed.value;
  }

  /** The same document with its value as this type. */
  async typed<U>(type: ValueType<U>): Promise<Document<U>> {
    return new Document(this, this.raw, await decode(type, this.raw));
  }
}

/** What a document shows besides its value. */
type Shown = Pick<
  Document,
  | "uid"
  | "vault"
  | "collection"
  | "version"
  | "createdAt"
  | "updatedAt"
  | "deleted"
  | "gap"
  | "purged"
  | "wire"
  | "proof"
>;

/**
 * Where documents lie: one collection of a vault, or all that the keys open.
 *
 * `vaultKeys` are the vault's keys; without them only the one collection of a token can be opened.
 */
export class Scope<T = unknown> {
  readonly vault: string;
  readonly vaultKeys: VaultKeys | undefined;
  /** What people call the collection; undefined for all of the vault. */
  readonly name: string | undefined;
  readonly type: ValueType<T> | undefined;
  readonly #sealed: boolean;
  #own: Promise<CollectionKeys> | undefined;
  readonly #others = new Map<string, Promise<CollectionKeys>>();
  #renewed: { readonly version: number; readonly scope: Promise<Scope<T>> } | undefined;

  constructor(keys: VaultKeys | CollectionKeys, name?: string, sealed = true, type?: ValueType<T>) {
    this.vault = keys.vault;
    this.type = type;
    this.#sealed = sealed;
    if ("wires" in keys) {
      this.name = keys.name;
      this.#own = Promise.resolve(keys);
    } else {
      this.name = name;
      this.vaultKeys = keys;
    }
  }

  /** The keys of the collection; undefined for all of the vault. */
  async own(): Promise<CollectionKeys | undefined> {
    if (this.name !== undefined && this.vaultKeys) {
      this.#own ??= collectionKeys(this.vaultKeys, this.name, this.#sealed);
    }
    return this.#own;
  }

  /** The keys of a collection, by its name on the wire. */
  async key(wire: string): Promise<CollectionKeys> {
    const own = await this.own();
    if (own?.wires.includes(wire)) return own;
    const { vaultKeys } = this;
    if (!vaultKeys) throw new Tampered(WRONG_DOCUMENT);
    const found = this.#others.get(wire) ?? otherKeys(vaultKeys, wire);
    this.#others.set(wire, found);
    found.catch(() => this.#others.delete(wire));
    return found;
  }

  /** The version of the keyring that the keys are from; undefined for those of a token. */
  get keyring(): number | undefined {
    return this.vaultKeys?.keyring ?? undefined;
  }

  /** The generation that writers use. */
  async generation(): Promise<number> {
    return (this.vaultKeys ? newest(this.vaultKeys) : newest(await this.writeKeys())).generation;
  }

  /** The lowest generation of a live row. */
  async floor(): Promise<number> {
    return (this.vaultKeys ?? (await this.writeKeys())).floor;
  }

  /** Whether a deletion is under a key of before those that a token carries. */
  async isBeyond({ deletedAt, hmac }: Row): Promise<boolean> {
    const [oldest] = (this.vaultKeys ?? (await this.own()))?.keys ?? [];
    return deletedAt !== null && readProof(hmac).generation < (oldest?.generation ?? 1);
  }

  /** Whether a collection on the wire is part of this place. */
  async holds(wire: string): Promise<boolean> {
    const own = await this.own();
    return !own || own.wires.includes(wire);
  }

  /** The collection to ask the server for. One that has several names on the wire is sifted here. */
  async filter(): Promise<string | undefined> {
    const own = await this.own();
    return own?.wires.length === 1 ? own.wires[0] : undefined;
  }

  /** The keys to write with. */
  async writeKeys(): Promise<CollectionKeys> {
    const own = await this.own();
    if (!own) throw new Locked("Say which collection to write in.");
    return own;
  }

  /** The same place with the keys that the keyring has by now: writers use those of the highest generation. */
  async renewed(core: Core): Promise<Scope<T>> {
    const { ring } = core;
    const entry = ring?.entry(this.vault);
    if (!ring || !entry || !this.vaultKeys || this.keyring === ring.version) return this;
    if (this.#renewed?.version !== ring.version) {
      const scope = ring.vaultKeys(this.vault).then((keys) => new Scope(keys, this.name, entry.sealed, this.type));
      this.#renewed = { version: ring.version, scope };
    }
    return this.#renewed.scope;
  }
}

async function otherKeys(keys: VaultKeys, wire: string): Promise<CollectionKeys> {
  const sealed = isSealed(wire);
  const name = sealed ? await openName(keys, "collection", wire) : wire;
  try {
    plainName(name, "collection");
  } catch {
    throw new Tampered(WRONG_DOCUMENT);
  }
  return collectionKeys(keys, name, sealed);
}

/** Seals something once for each generation: the same text is recognised where it is stored already. */
type Once = (keys: CollectionKeys, seal: () => Promise<Sealed>) => Promise<Sealed>;

/** A fresh one of these. */
export function once(): Once {
  const made = new Map<number, Promise<Sealed>>();
  return (keys, seal) => {
    const { generation } = newest(keys);
    const sealed = made.get(generation) ?? seal();
    made.set(generation, sealed);
    return sealed;
  };
}

/** Create a document. The client generates the uid, so that a retry is idempotent. */
export async function create<T>(core: Core, scope: Scope<T>, value: unknown, uid?: string): Promise<Document<T>> {
  const made = uid === undefined ? newUid() : checkedUid(uid);
  const content = await encode(scope.type, value);
  const sealOnce = once();
  return keyrings.withNewest(core, async () => {
    const now = await scope.renewed(core);
    const keys = await now.writeKeys();
    const sealed = await sealOnce(keys, () => sealContent(keys, DOCUMENT, made, 1, content));
    const mark = core.device.mark();
    const call = requests.create(now.vault, made, keys.wires[0], sealed, now.keyring);
    const row = await core.session.sendOrDone(call);
    if (!row) return get(core, now, made, true); // made by a sending whose answer was lost, and changed since
    checkStored(row, sealed, now.vault, keys.wires[0], made, 1);
    return recordWritten(core, now, row, content, mark);
  });
}

/** Get a document; a deleted one only if `deleted` is true. */
export async function get<T>(core: Core, scope: Scope<T>, uid: string, deleted = false): Promise<Document<T>> {
  const wanted = checkedUid(uid);
  for (let attempt = 0; attempt < 10; attempt++) {
    const now = await scope.renewed(core);
    const mark = core.device.mark();
    const row = await core.session.send(requests.get(now.vault, wanted)).catch((error: unknown) => {
      const isKnown = core.device.known(now.vault, wanted) !== undefined;
      throw error instanceof DocumentNotFound && isKnown ? new RolledBack(WITHHELD) : error;
    });
    if (row.uid !== wanted) throw new Tampered(WRONG_DOCUMENT);
    const found = await openRow(core, now, row, mark);
    if (!found) continue; // something newer was seen while this answer was under way
    const after = await now.renewed(core);
    if ((found.deleted && !deleted) || !(await after.holds(row.collection))) throw new DocumentNotFound();
    return found;
  }
  throw new Tampered();
}

/** Another value in the place of the one that was seen. */
export async function replace<T>(
  core: Core,
  scope: Scope<T>,
  document: Document<unknown>,
  value: unknown,
): Promise<Document<T>> {
  return replaceContent(core, scope, document, await encode(scope.type, value));
}

/** The same for content as it is stored. */
export function replaceContent<T>(
  core: Core,
  scope: Scope<T>,
  document: Document<unknown>,
  content: Content,
): Promise<Document<T>> {
  const sealOnce = once();
  return keyrings.withNewest(core, async () => {
    const now = await scope.renewed(core);
    const wire = await wireCollection(now, document);
    const keys = await now.key(wire);
    const { uid, version } = document;
    const sealed = await sealOnce(keys, async () =>
      sealContent(keys, DOCUMENT, uid, version + 1, content, { parent: await short(document.proof), wire }),
    );
    const mark = core.device.mark();
    const row = await core.session.send(requests.put(now.vault, uid, sealed, version, now.keyring));
    checkStored(row, sealed, now.vault, wire, uid, version + 1);
    return recordWritten(core, now, row, content, mark);
  });
}

/** A document; anything else is the caller's mistake. */
export function checkedDocument(document: unknown): Document<unknown> {
  if (document instanceof Document) return document;
  throw new Invalid({ document: `must be a Document, as get and create return it, not ${typeof document}` });
}

/** The collection of a document on the wire, if it lies in this place. */
export async function wireCollection(scope: Scope<unknown>, document: Document<unknown>): Promise<string> {
  const { vault, wire } = checkedDocument(document);
  if (vault !== scope.vault || !(await scope.holds(wire))) throw new DocumentNotFound();
  return wire;
}

/** A tombstone with its notice of deletion, which responses leave out. */
export const withCiphertext = (row: Row, sealed: Sealed): Row =>
  row.data || row.hmac !== null ? row : { ...row, ...sealed };

/** Refuse the response to a write unless it shows exactly what was written, and where. */
export function checkStored(
  row: Row,
  sealed: Sealed,
  vault: string,
  wire: string,
  uid: string,
  version: number,
  deleted = false,
): void {
  const isThere = row.vaultUid === vault && row.collection === wire && row.uid === uid && row.version === version;
  const isSame = row.data === sealed.data && row.hmac === sealed.hmac && (row.deletedAt !== null) === deleted;
  if (!isThere || !isSame) throw new Tampered(NOT_STORED);
}

/**
 * A row as a document, if it is believed; undefined if this device has meanwhile seen a newer one.
 *
 * It is remembered, unless `keep` is false.
 */
export async function openRow<T>(
  core: Core,
  scope: Scope<T>,
  row: Row,
  mark: number,
  verified = verifyRow(core, scope, row),
  keep = true,
): Promise<Document<T> | undefined> {
  const [keys, made] = await verified;
  let gap = false;
  for (let known = core.device.known(scope.vault, row.uid); known; ) {
    requireCollection(known.collection, row);
    const isLate = made.deleted && !known.deleted && made.generation < keys.floor;
    if (known.version < row.version) gap = await requireDescent(core, row, known, isLate);
    const now = core.device.known(scope.vault, row.uid);
    if (now === known) break; // otherwise another task has seen it meanwhile
    known = now;
  }
  if (!core.device.record(row, mark, made.deleted, keep)) return undefined;
  return toDocument(scope, row, made.content, keys.name, made.deleted, gap);
}

/** A row that a key holder made for this place and version, opened, and the keys of its collection. */
export async function verifyRow(
  core: Core,
  scope: Scope<unknown>,
  row: Row,
  opened = openDocument,
): Promise<[CollectionKeys, Opened]> {
  if (row.vaultUid !== scope.vault) throw new Tampered(WRONG_DOCUMENT);
  const open = async (place: Scope<unknown>): Promise<[CollectionKeys, Opened]> => {
    const keys = await place.key(row.collection);
    return [keys, await opened(keys, row)];
  };
  const { ring } = core;
  try {
    return await open(scope);
  } catch (error) {
    if (!(error instanceof Locked) || !ring) throw error;
  }
  // Perhaps another device has rotated the vault's key. Of many rows at the same time, one asks.
  await core.session.locks.run("rotated", async () => {
    if (core.ring === ring) await keyrings.reload(core);
  });
  return open(await scope.renewed(core));
}

/**
 * Refuse a newer row that was made without knowing of the one that was seen; whether none can tell.
 *
 * `isLate`: it is a deletion below the floor, which a rotation would have encrypted again.
 */
async function requireDescent(core: Core, row: Row, known: KnownDocument, isLate: boolean): Promise<boolean> {
  if (!isLate && (await follows(row.hmac ?? "", known.proof, readProof))) return false;
  return (await rare()).descent.requireDescent(core, row, known, isLate); // there were others in between
}

/** What was just written, as a document. Sealing has opened it again, so it is not decrypted a second time. */
export async function recordWritten<T>(
  core: Core,
  scope: Scope<T>,
  row: Row,
  content: Content,
  mark: number,
  deleted = false,
): Promise<Document<T>> {
  core.device.record(row, mark, deleted);
  return toDocument(scope, row, content, (await scope.key(row.collection)).name, deleted);
}

/** The document of a row that was verified. `name` is the plaintext name of its collection. */
export async function toDocument<T>(
  scope: Scope<T>,
  row: Row,
  content: Content,
  name: string,
  deleted: boolean,
  gap = false,
): Promise<Document<T>> {
  return valueDocument(scope, row, toValue(content), name, deleted, gap, content.kind === NOTHING);
}

/** The same for a value that was read from its content. */
export async function valueDocument<T>(
  scope: Scope<T>,
  row: Omit<Row, "data">,
  raw: unknown,
  name: string,
  deleted = false,
  gap = false,
  purged = false,
): Promise<Document<T>> {
  const typed = scope.type && !purged ? await decode(scope.type, raw) : undefined;
  const { vaultUid: vault, collection: wire, hmac } = row;
  return new Document({ ...row, vault, collection: name, wire, proof: hmac ?? "", deleted, gap, purged }, raw, typed);
}
