// Local reads and writes: the outbox on top of the rows received.
import { DocumentConflict, DocumentNotFound, Locked, Tampered, UidTaken } from "../errors.js";
import { EMPTY, toContent } from "../format/content.js";
import { checkedUid } from "../format/encoding.js";
import { readDescriptor } from "../format/descriptor.js";
import { newest } from "../format/keys.js";
import { isSealed } from "../format/names.js";
import { type Content, JSON_TEXT } from "../format/padding.js";
import { openPastDocument } from "../format/past.js";
import { DELETION, DOCUMENT, parentAfter, sealContent } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import { type Core, newUid } from "../operations/core.js";
import {
  checkedDocument,
  type Document,
  Scope,
  toDocument,
  valueDocument,
  wireCollection,
} from "../operations/documents.js";
import { TWO_KEYRINGS } from "../operations/rollback.js";
import { encode } from "../operations/valueTypes.js";
import { isContentOf, keptContents } from "./contents.js";
import { type Entry, entryRow, newEntry, RENAMED } from "./records.js";
import { RequestLimit } from "./sizes.js";
import type { Store, Tables } from "./tables.js";

const SMALL = 8192; // characters of a row whose content may be kept beside others
const AT_ONCE = 128; // rows that are opened together: more would keep a page from its turn

/** The local state of a replica. */
export class Local {
  readonly core: Core;
  readonly store: Store;
  readonly limit = new RequestLimit();
  /** Everything up to it was seen, in all vaults. */
  timestamp = 0;
  /** The gaps of keyrings that a report has told. */
  keyringGaps: number;
  /** The epochs of the server, by vault, that the client outside the replica goes on with. */
  readonly epochs = new Map<string, string>();
  /** Whether the newest sync has returned its report. */
  reported = false;
  readonly #small = new WeakSet<Document<unknown>>();

  constructor(core: Core, store: Store) {
    this.core = core;
    this.store = store;
    this.keyringGaps = core.gaps.size;
    core.onLock.push(() => this.store.close()); // without keys there is nothing to read or to write
  }

  async close(): Promise<void> {
    try {
      if (!this.store.isClosed) await this.forgetTold();
    } finally {
      this.store.close();
    }
  }

  /** Forget what was kept for the report of a sync, if a program has had that report. */
  async forgetTold(): Promise<void> {
    if (this.reported && (await this.store.fact(RENAMED)) !== undefined) {
      await this.store.transaction((tables) => tables.setFact(RENAMED, undefined));
    }
    this.reported = false;
  }

  /** Use the keyring that another tab has stored, if it is newer than the one in use and was made knowing of it. */
  async followKeys(tables: Tables = this.store): Promise<void> {
    const { ring, email = "" } = this.core;
    if (!ring || Number((await tables.fact("keyring version")) ?? 0) <= ring.version) return;
    const [sealed = "", spelled] = [await tables.fact("keyring"), await tables.fact("descriptor")];
    const newer = await ring.reopened(sealed).catch((fault: unknown) => {
      throw fault instanceof Tampered ? new Locked("The account's keys were rotated; log in again.") : fault;
    });
    if (newer.followsOn(ring.version, ring.digest) === false) throw new Tampered(TWO_KEYRINGS);
    const descriptor = readDescriptor(spelled);
    if (this.core.ring !== ring) return;
    await this.core.device.recordAccount(email, newer, descriptor);
    Object.assign(this.core, { ring: newer, sealed, descriptor });
  }

  /**
   * The same place with the newest keys that the keyring in the replica has.
   *
   * This client may have newer ones in memory. What is queued must open again from the replica alone; where it was
   * sealed under an older key, it is sealed anew when it is sent.
   */
  async writable<T>(tables: Tables, given: Scope<T>): Promise<Scope<T>> {
    const scope = await given.renewed(this.core);
    const keys = scope.vaultKeys;
    const kept = (JSON.parse((await tables.fact("generations")) ?? "{}") as Record<string, number>)[scope.vault];
    if (this.core.token || !keys || kept === undefined || newest(keys).generation <= kept) return scope;
    const own = await scope.own();
    const older = { ...keys, keys: keys.keys.filter(({ generation }) => generation <= kept) };
    return new Scope(older, scope.name, own ? isSealed(own.wires[0]) : true, scope.type);
  }

  /** Find a document, deleted or not. */
  async find<T>(tables: Tables, given: Scope<T>, uid: string): Promise<Document<T> | undefined> {
    const scope = await given.renewed(this.core);
    const entry = await tables.entry(scope.vault, uid);
    const row = entry ? entryRow(entry) : await tables.row(scope.vault, uid);
    return row && this.openRow(scope, row);
  }

  /** Those of these documents that are in a place, deleted or not, by uid. */
  async findAll<T>(given: Scope<T>, uids: readonly string[]): Promise<Map<string, Document<T>>> {
    const scope = await given.renewed(this.core);
    // The outbox first: what leaves it meanwhile is among the rows.
    const queued = new Map((await this.store.entries(scope.vault)).map((entry) => [entry.uid, entryRow(entry)]));
    const stored = new Map((await this.store.rows(scope.vault, uids)).map((row) => [row.uid, row]));
    const own = await scope.own();
    const rows = uids.flatMap((uid) => queued.get(uid) ?? stored.get(uid) ?? []);
    const held = rows.filter((row) => !own || own.wires.includes(row.collection));
    const found = new Map<string, Document<T>>();
    for (let at = 0; at < held.length; at += AT_ONCE) {
      const opened = await Promise.all(held.slice(at, at + AT_ONCE).map((row) => this.openRow(scope, row)));
      for (const document of opened) found.set(document.uid, document);
    }
    return found;
  }

  /** A row as a document. The storage is not believed either. */
  async openRow<T>(scope: Scope<T>, row: Row): Promise<Document<T>> {
    const keys = await scope.key(row.collection);
    const { content, deleted } = await openPastDocument(keys, row);
    const document = await toDocument(scope, row, content, keys.name, deleted);
    if (content.kind === JSON_TEXT && row.data.length <= SMALL) this.#small.add(document);
    return document;
  }

  /** Whether the content of a document may be kept beside others: JSON, and not much of it. */
  isSmall = (document: Document<unknown>): boolean => this.#small.has(document);

  /** What was sealed just now, and opened again to compare: it is not decrypted a second time. */
  async #written<T>(scope: Scope<T>, entry: Entry, content: Content): Promise<Document<T>> {
    const { name } = await scope.key(entry.collection);
    return toDocument(scope, entryRow(entry), content, name, entry.kind === "delete");
  }

  // What a program does

  /** One document. */
  async get<T>(given: Scope<T>, uid: string, deleted: boolean): Promise<Document<T>> {
    await this.followKeys();
    const scope = await given.renewed(this.core);
    const found = await this.find(this.store, scope, checkedUid(uid));
    if (!found || (found.deleted && !deleted) || !(await scope.holds(found.wire))) throw new DocumentNotFound();
    return found;
  }

  /** Iterate the live documents: those received, then those queued. */
  async *iterate<T>(given: Scope<T>): AsyncGenerator<Document<T>, void, undefined> {
    await this.followKeys();
    const scope = await given.renewed(this.core);
    const entries = await this.store.entries(scope.vault);
    const queued = new Set(entries.map(({ uid }) => uid));
    const own = await scope.own();
    const holds = (wire: string): boolean => !own || own.wires.includes(wire);
    for await (const rows of this.store.live(scope.vault, await scope.filter())) {
      const wanted = rows.filter((row) => !queued.has(row.uid) && holds(row.collection));
      for (const document of await Promise.all(wanted.map((row) => this.openRow(scope, row)))) {
        if (!document.deleted) yield document;
      }
    }
    for (const entry of entries) {
      if (entry.kind === "put" && holds(entry.collection)) yield await this.openRow(scope, entryRow(entry));
    }
  }

  /**
   * The live documents in parts, in no order: first those whose contents are kept, then those that are opened from their
   * rows, then those queued. `isKept` says which.
   */
  async *parts<T>(given: Scope<T>): AsyncGenerator<{ documents: Document<T>[]; isKept: boolean }, void, undefined> {
    await this.followKeys();
    const scope = await given.renewed(this.core);
    const entries = await this.store.entries(scope.vault);
    const queued = new Set(entries.map(({ uid }) => uid));
    const own = await scope.own();
    const holds = (wire: string): boolean => !own || own.wires.includes(wire);
    const { ring } = this.core;
    const [heads, kept] = await Promise.all([
      this.store.liveHeads(scope.vault, await scope.filter()),
      ring && this.store.storage.keepsContents ? keptContents(this.store, ring, scope) : [],
    ]);
    const left = new Map(
      heads.filter((head) => !queued.has(head.uid) && holds(head.collection)).map((head) => [head.uid, head]),
    );
    for (const contents of kept) {
      const documents: Document<T>[] = [];
      for (const content of await contents) {
        const head = left.get(content[0]);
        if (!head || !isContentOf(content, head)) continue;
        left.delete(head.uid);
        const { name } = await scope.key(head.collection);
        const document = await valueDocument(scope, { ...head, vaultUid: scope.vault }, content[4], name);
        this.#small.add(document);
        documents.push(document);
      }
      yield { documents, isKept: true };
    }
    for await (const rows of this.store.live(scope.vault, undefined, [...left.values()])) {
      const documents = await Promise.all(rows.map((row) => this.openRow(scope, row)));
      yield { documents: documents.filter(({ deleted }) => !deleted), isKept: false };
    }
    const puts = entries.filter(({ kind, collection }) => kind === "put" && holds(collection));
    for (let at = 0; at < puts.length; at += AT_ONCE) {
      const documents = await Promise.all(
        puts.slice(at, at + AT_ONCE).map((entry) => this.openRow(scope, entryRow(entry))),
      );
      yield { documents, isKept: false };
    }
  }

  /** New documents in one transaction: all or none. */
  async create<T>(given: Scope<T>, values: readonly unknown[], uid?: string): Promise<Document<T>[]> {
    const contents = await Promise.all(values.map((value) => encode(given.type, value)));
    return this.store.transaction((tables) => this.createIn(tables, given, contents, uid));
  }

  /** The same within a transaction, for contents as they are stored. */
  async createIn<T>(
    tables: Tables,
    given: Scope<T>,
    contents: readonly Content[],
    uid?: string,
  ): Promise<Document<T>[]> {
    await this.followKeys(tables);
    const scope = await this.writable(tables, given);
    const keys = await scope.writeKeys();
    const made: Document<T>[] = [];
    for (const content of contents) {
      const now = Date.now();
      const own = uid === undefined ? newUid(now) : checkedUid(uid);
      const sealed = await sealContent(keys, DOCUMENT, own, 1, content);
      const [collection] = keys.wires;
      this.limit.require(own, collection, sealed);
      const { vault } = scope;
      if ((await tables.entry(vault, own)) || (await tables.head(vault, own))) throw new UidTaken();
      const entry = newEntry({ vault, uid: own, collection, kind: "put", ...sealed, version: 1, base: 0, madeAt: now });
      await tables.putEntry(entry);
      made.push(await this.#written(scope, entry, content));
    }
    return made;
  }

  /** Replace the value of a document; a deleted one is revived. */
  async replace<T>(given: Scope<T>, document: Document<unknown>, value: unknown): Promise<Document<T>> {
    const content = await encode(given.type, value);
    return this.store.transaction(async (tables) => {
      await this.followKeys(tables);
      const scope = await this.writable(tables, given);
      const entry = await this.#nextEntry(tables, scope, document);
      const keys = await scope.key(entry.collection);
      if (entry.before && isPurged(entry.before)) {
        // Nothing is left there to follow on.
        tables.dropEntry(scope.vault, document.uid);
        const [made] = await this.createIn(tables, new Scope(keys, undefined, true, scope.type), [content]);
        return made as Document<T>;
      }
      const { uid, version, collection: wire } = entry;
      const sealed = await sealContent(keys, DOCUMENT, uid, version, content, {
        parent: await parentAfter(entry.before),
        wire,
      });
      this.limit.require(uid, wire, sealed);
      const changed: Entry = { ...entry, kind: "put", ...sealed };
      await tables.putEntry(changed);
      return this.#written(scope, changed, content);
    });
  }

  /** Delete a document. One that was never sent is only removed from the outbox. */
  async remove<T>(given: Scope<T>, document: Document<unknown>): Promise<Document<T>> {
    if (checkedDocument(document).deleted) throw new DocumentNotFound();
    return this.store.transaction(async (tables) => {
      await this.followKeys(tables);
      const scope = await this.writable(tables, given);
      const entry = await this.#nextEntry(tables, scope, document);
      const [keys, last] = [await scope.key(entry.collection), toContent(document.raw)];
      const { vault, uid, version, collection: wire, base } = entry;
      const place = { parent: await parentAfter(entry.before), wire };
      let sealed = await sealContent(keys, DELETION, uid, version, last, place);
      // If it is too large, then without the content that is deleted.
      if (!this.limit.takesDeletion(uid, wire, sealed))
        sealed = await sealContent(keys, DELETION, uid, version, EMPTY, place);
      const changed: Entry = { ...entry, kind: "delete", ...sealed };
      if (base === 0 && !(await tables.wasSent(vault, uid))) tables.dropEntry(vault, uid);
      else await tables.putEntry(changed);
      return this.#written(scope, changed, last);
    });
  }

  /** The next entry of a document, if it is still as the caller saw it. */
  async #nextEntry(tables: Tables, scope: Scope<unknown>, document: Document<unknown>): Promise<Entry> {
    await wireCollection(scope, document);
    const { uid } = document;
    const now = await this.find(tables, scope, uid);
    if (!now) throw new DocumentNotFound();
    if (now.proof !== document.proof) throw new DocumentConflict(now.version, now.updatedAt);
    const entry = await tables.entry(scope.vault, uid);
    if (entry) return { ...entry, madeAt: Date.now() };
    const row = await tables.row(scope.vault, uid);
    if (!row) throw new DocumentNotFound();
    const { collection, version } = row;
    return newEntry({
      vault: scope.vault,
      uid,
      collection,
      kind: "put",
      data: "",
      hmac: "",
      version: version + 1,
      base: version,
      before: row,
      madeAt: Date.now(),
    });
  }
}

/** Whether the content of a deleted document is gone from the server. */
export const isPurged = (row: Row): boolean => row.deletedAt !== null && !row.data;
