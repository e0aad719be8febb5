// The tables of a replica: what is asked of them, and how they change.
import { Locked } from "../errors.js";
import { compare, short, toUrl } from "../format/encoding.js";
import type { Row } from "../net/decoders.js";
import {
  type ContentsRecord,
  DIVERGED,
  type Entry,
  type Head,
  type KeptKeys,
  type Mark,
  type RefusalRecord,
  type VaultRecord,
} from "./records.js";
import { type Address, type Changed, LOST, type Storage, type Table, Unit, type View } from "./storage.js";

const EARLIER_VERSIONS = 50; // of a document, versions that are known to be earlier ones
const CHUNK = 128;
const DAMAGED = "This replica is damaged: it has a document without its content. Delete it, open a new one and sync.";
const CLOSED = "This replica is closed, or its client was closed or has logged out.";
const ASIDE = "blob aside ";
const SHOWN = new Set<Table>(["heads", "outbox", "refusals", "repeats"]);

type Uids = { readonly vault: string; readonly uid: string };
const both = ({ vault, uid }: Uids): string => `${vault}\n${uid}`;
const byUid = <T extends { uid: string }>(records: T[]): Map<string, T> =>
  new Map(records.map((one) => [one.uid, one]));

/** The records of a replica, read and, in a transaction, written. */
export class Tables {
  readonly #view: View;

  constructor(view: View) {
    this.#view = view;
  }

  #put(at: Address, value: unknown): void {
    (this.#view as Unit).put(at, value);
  }

  async #one<T>(...at: Address): Promise<T | undefined> {
    return (await this.#view.read([at]))[0] as T | undefined;
  }

  #all<T>(table: Table, vault?: string): Promise<T[]> {
    return this.#view.list(table, vault) as Promise<T[]>;
  }

  // Properties of the replica

  /** A property of the replica. */
  fact = (name: string): Promise<string | undefined> => this.#one("facts", name);

  setFact(name: string, value: string | undefined): void {
    this.#put(["facts", name], value);
  }

  async #json<T>(name: string, otherwise: T): Promise<T> {
    const found = await this.fact(name);
    return found === undefined ? otherwise : (JSON.parse(found) as T);
  }

  // Vaults

  /** All vaults of the replica. */
  vaults = (): Promise<VaultRecord[]> => this.#all("vaults");

  vault = (uid: string): Promise<VaultRecord | undefined> => this.#one("vaults", uid);

  /** Keep a vault, and of its blobs of before that they were here. */
  async putVault(vault: VaultRecord): Promise<void> {
    const before = await this.vault(vault.uid);
    if (before?.data != null && before.data !== vault.data) {
      const past = [...(await this.#pastBlobs(vault.uid)), toUrl(await short(before.data))];
      this.setFact(`blobs ${vault.uid}`, past.slice(-EARLIER_VERSIONS).join(" "));
    }
    this.#put(["vaults", vault.uid], vault);
    await this.forgetNew(vault.uid);
  }

  async #pastBlobs(uid: string): Promise<string[]> {
    return (await this.fact(`blobs ${uid}`))?.split(" ") ?? [];
  }

  /** Whether a vault had this blob earlier. */
  async hadBlob(uid: string, data: string): Promise<boolean> {
    return (await this.#pastBlobs(uid)).includes(toUrl(await short(data)));
  }

  /** Keep the blob that is here apart: a restored server has gone on with another one. */
  async putBlobAside(vault: VaultRecord): Promise<void> {
    // Otherwise what is here was the server's, and undecided.
    if (!(await this.blobAside(vault.uid))) this.setFact(`${ASIDE}${vault.uid}`, JSON.stringify(vault));
  }

  /** The vault with the blob that was kept apart. */
  blobAside = (uid: string): Promise<VaultRecord | undefined> =>
    this.#json<VaultRecord | undefined>(`${ASIDE}${uid}`, undefined);

  dropBlobAside(uid: string): void {
    this.setFact(`${ASIDE}${uid}`, undefined);
  }

  /** Advance the clock of a vault to at least this timestamp. */
  async advanceClock(uid: string, timestamp: number): Promise<void> {
    const vault = await this.vault(uid);
    if (vault && vault.clock < timestamp) this.#put(["vaults", uid], { ...vault, clock: timestamp });
  }

  /** Delete a vault and its documents; changes that are queued in it, and its keys, stay. */
  async dropVault(uid: string): Promise<void> {
    for (const head of await this.heads(uid)) {
      for (const table of ["heads", "data", "earlier", "marks"] as const) this.#put([table, uid, head.uid], undefined);
    }
    for (const table of ["repeats", "sent"] as const) {
      for (const one of await this.#all<Uids>(table, uid)) this.#put([table, uid, one.uid], undefined);
    }
    for (const one of await this.#all<Uids>("facts", this.contentsIn(uid))) this.dropContents(one);
    this.#put(["vaults", uid], undefined);
    this.setFact(`blobs ${uid}`, undefined);
    this.setFact(`floor ${uid}`, undefined);
    this.dropBlobAside(uid);
  }

  /** The vaults whose keys are kept. */
  keptKeys = (): Promise<KeptKeys[]> => this.#all("keys");

  async putKeys(vault: string, sealed: string, isNew = false): Promise<void> {
    const before = await this.#one<KeptKeys>("keys", vault);
    this.#put(["keys", vault], { vault, sealed, isNew: before?.isNew ?? isNew });
  }

  /** The server has a vault that was made here, or it was deleted. */
  async forgetNew(vault: string): Promise<void> {
    const kept = await this.#one<KeptKeys>("keys", vault);
    if (kept?.isNew) this.#put(["keys", vault], { ...kept, isNew: false });
  }

  dropKeys(vault: string): void {
    this.#put(["keys", vault], undefined);
  }

  // Documents

  /** One document. */
  async row(vault: string, uid: string): Promise<Row | undefined> {
    return (await this.rows(vault, [uid]))[0];
  }

  /** Those of these documents that are here. */
  async rows(vault: string, uids: readonly string[]): Promise<Row[]> {
    const found = await this.#view.read(
      uids.flatMap(
        (uid) =>
          [
            ["heads", vault, uid],
            ["data", vault, uid],
          ] satisfies Address[],
      ),
    );
    return uids.flatMap((uid, at) => {
      const [head, data] = [found[2 * at] as Head | undefined, found[2 * at + 1]];
      if (!head) return [];
      if (typeof data !== "string") throw new Locked(DAMAGED);
      const { collection, hmac, version, createdAt, updatedAt, deletedAt } = head;
      return [{ uid, vaultUid: vault, collection, data, hmac, version, createdAt, updatedAt, deletedAt }];
    });
  }

  /** The live documents without their content, in the order of their last change. */
  async liveHeads(vault: string, collection?: string): Promise<Head[]> {
    const found = (await this.heads(vault)).filter(
      (head) => !head.deleted && (collection ?? head.collection) === head.collection,
    );
    return found.sort((one, other) => one.updatedAt - other.updatedAt || compare(one.uid, other.uid));
  }

  /** The live documents, or these, in the order of their last change, in chunks. */
  async *live(vault: string, collection?: string, heads?: readonly Head[]): AsyncGenerator<Row[], void, undefined> {
    const wanted = heads ?? (await this.liveHeads(vault, collection));
    // Documents that have changed one after the other may lie far apart: what lies together is read in few pieces.
    const piece = Math.max(1024, Math.ceil(wanted.length / 4));
    for (let from = 0; from < wanted.length; from += piece) {
      const rows = await this.rows(
        vault,
        wanted.slice(from, from + piece).map(({ uid }) => uid),
      );
      for (let at = 0; at < rows.length; at += CHUNK) yield rows.slice(at, at + CHUNK);
    }
  }

  /** Contents that were opened before, of a place of a vault, in the order of their keys: see contents.ts. */
  async contents(vault: string, place: string): Promise<ContentsRecord[]> {
    return (await this.#all<ContentsRecord>("facts", this.contentsIn(vault))).filter(({ uid }) =>
      uid.startsWith(`${place}\n`),
    );
  }

  /** What the keys of the contents of a vault begin with. */
  contentsIn = (vault: string): string => `contents ${vault}`;

  putContents(record: ContentsRecord): void {
    this.#put(["facts", record.vault, record.uid], record);
  }

  dropContents({ vault, uid }: Uids): void {
    this.#put(["facts", vault, uid], undefined);
  }

  /** All documents of a vault, without their content. */
  heads = (vault: string): Promise<Head[]> => this.#all("heads", vault);

  head = (vault: string, uid: string): Promise<Head | undefined> => this.#one("heads", vault, uid);

  /** Those of these documents that are here, without their content, by uid. */
  async headsOf(vault: string, uids: readonly string[]): Promise<Map<string, Head>> {
    const found = await this.#view.read(uids.map((uid) => ["heads", vault, uid]));
    return byUid(found.filter((head) => head !== undefined) as Head[]);
  }

  /** Uids of the documents that have changed after a moment: what was sent from here, as a rule. */
  async changedAfter(vault: string, timestamp: number): Promise<Set<string>> {
    const repeats = await this.repeats(vault);
    const found = (await this.heads(vault)).filter((head) => head.updatedAt > timestamp && !repeats.has(head.uid));
    return new Set(found.map(({ uid }) => uid));
  }

  /** The number of documents that the server has not deleted, and the latest timestamp of any. */
  async countLive(vault: string): Promise<[count: number, last: number]> {
    const heads = await this.heads(vault);
    return [
      heads.filter((head) => head.deletedAt === null).length,
      heads.reduce((last, head) => Math.max(last, head.updatedAt), 0),
    ];
  }

  /** Keep documents as they were received, each with whether a key holder deleted it. `mine`: written here. */
  async putRows(vault: string, rows: readonly (readonly [Row, boolean])[], mine = false): Promise<void> {
    const before = await this.headsOf(
      vault,
      rows.map(([row]) => row.uid),
    );
    const marks = before.size ? await this.marks(vault) : undefined;
    for (const [{ data, vaultUid: _, ...row }, deleted] of rows) {
      const old = before.get(row.uid);
      if (old) this.#keepMark(old, row, marks?.get(row.uid));
      if (old?.hmac != null && old.hmac !== row.hmac) {
        const earlier = (await this.#one<[number, string][]>("earlier", vault, row.uid)) ?? [];
        const kept = [
          ...earlier.filter(([version]) => version > old.version - EARLIER_VERSIONS),
          [old.version, old.hmac],
        ];
        this.#put(["earlier", vault, row.uid], kept);
      }
      this.#put(["heads", vault, row.uid], { vault, ...row, deleted, mine } satisfies Head);
      this.#put(["data", vault, row.uid], data);
    }
  }

  /** Keep the mark of a document that gets a row which is not above it, and forget one that is reached. */
  #keepMark(old: Head, row: Pick<Head, "version" | "hmac">, mark: Mark | undefined): void {
    const { vault, uid, version, hmac, collection, deleted } = old;
    const at: Address = ["marks", vault, uid];
    if (row.version <= version && row.hmac !== hmac) {
      if (!mark || version > mark.version)
        this.#put(at, { vault, uid, version, hmac, collection, deleted } satisfies Mark);
    } else if (mark && (row.version > mark.version || (row.version === mark.version && row.hmac === mark.hmac))) {
      this.#put(at, undefined);
    }
  }

  /** The marks of a vault above what the server has shown since, by uid. A document without one is the newest seen. */
  async marks(vault: string): Promise<Map<string, Mark>> {
    return byUid(await this.#all<Mark>("marks", vault));
  }

  mark = (vault: string, uid: string): Promise<Mark | undefined> => this.#one("marks", vault, uid);

  /** Let what the server shows be the mark: a person has decided so. */
  lowerMark(vault: string, uid: string): void {
    this.#put(["marks", vault, uid], undefined);
  }

  /** A restored server does not have these rows: the times that another database gave them mean nothing. */
  async forgetTimes(vault: string, uids: readonly string[]): Promise<void> {
    for (const head of (await this.headsOf(vault, uids)).values()) {
      this.#put(["heads", vault, head.uid], { ...head, createdAt: 0, updatedAt: 0 });
    }
  }

  /** Whether this device had this version of a document earlier. */
  async hadVersion({ vaultUid, uid, version, hmac }: Row): Promise<boolean> {
    const earlier = (await this.#one<[number, string][]>("earlier", vaultUid, uid)) ?? [];
    return earlier.some(([one, proof]) => one === version && proof === hmac);
  }

  /** Delete a document that the server lost in a restore. */
  dropRow(vault: string, uid: string): void {
    for (const table of ["heads", "data", "marks"] as const) this.#put([table, vault, uid], undefined);
  }

  // What a restored server has forgotten

  /** Send a document again as it is; the server is at version `base`, or at 0 where it has nothing. */
  putRepeat(vault: string, uid: string, base: number): void {
    this.#put(["repeats", vault, uid], { vault, uid, base });
  }

  /** Which documents are to be sent again, and the version that the server has. */
  async repeats(vault: string): Promise<Map<string, number>> {
    return new Map((await this.#all<Uids & { base: number }>("repeats", vault)).map(({ uid, base }) => [uid, base]));
  }

  dropRepeat(vault: string, uid: string): void {
    this.#put(["repeats", vault, uid], undefined);
    this.dropRefusal(vault, uid);
  }

  // The outbox

  /** The queued changes, oldest first. */
  async entries(vault?: string): Promise<Entry[]> {
    return (await this.#all<Entry>("outbox", vault)).sort((one, other) => one.seq - other.seq);
  }

  entry = (vault: string, uid: string): Promise<Entry | undefined> => this.#one("outbox", vault, uid);

  /** The entries that can be sent, in order: their base is the server's version, and it has not refused them. */
  async ready(vault: string, after: number, limit: number): Promise<Entry[]> {
    const [entries, repeats, held] = await Promise.all([
      this.entries(vault),
      this.repeats(vault),
      this.heldBack(vault),
    ]);
    const heads = await this.headsOf(
      vault,
      entries.map(({ uid }) => uid),
    );
    const isReady = ({ seq, uid, base }: Entry): boolean =>
      seq > after && base === (heads.get(uid)?.version ?? 0) && !repeats.has(uid) && !held.has(uid);
    return entries.filter(isReady).slice(0, limit);
  }

  /**
   * The entries whose base is not the server's version.
   *
   * A new document that has the uid of one in another collection is none: it is refused.
   */
  async conflicting(): Promise<Entry[]> {
    const entries = await this.entries();
    const heads = await this.#view.read(entries.map(({ vault, uid }) => ["heads", vault, uid]));
    return entries.filter((entry, at) => {
      const head = heads[at] as Head | undefined;
      return head && head.version !== entry.base && head.collection === entry.collection;
    });
  }

  /** Whether a conflict waits in a vault with something that follows on nothing that the server has. */
  async waitsSinceRestore(vault: string): Promise<boolean> {
    const entries = (await this.entries(vault)).filter(({ base }) => base === DIVERGED);
    const uids = entries.map(({ uid }) => uid);
    return (await this.headsOf(vault, uids)).size > 0;
  }

  /** Queue a change in the place of an earlier one of the same document. `resealed`: it is the same, and stays refused. */
  async putEntry(entry: Entry, resealed = false): Promise<void> {
    const { vault, uid } = entry;
    if (!resealed) this.dropRefusal(vault, uid);
    let seq = (await this.entry(vault, uid))?.seq;
    if (seq === undefined) {
      seq = Number((await this.fact("seq")) ?? 0) + 1;
      this.setFact("seq", `${seq}`);
    }
    this.#put(["outbox", vault, uid], { ...entry, seq });
  }

  dropEntry(vault: string, uid: string): void {
    this.#put(["outbox", vault, uid], undefined);
    this.forgetSent(vault, uid);
    this.dropRefusal(vault, uid);
  }

  /** Record the proofs that are about to be sent, to recognise them if the response is lost. */
  async recordSent(vault: string, uid: string, proofs: readonly string[]): Promise<void> {
    const known = await this.#sent(vault, uid);
    this.#put(["sent", vault, uid], { vault, uid, proofs: [...new Set([...known, ...proofs])] });
  }

  async #sent(vault: string, uid: string): Promise<string[]> {
    return (await this.#one<{ proofs: string[] }>("sent", vault, uid))?.proofs ?? [];
  }

  /** Forget what was sent of a document: it is stored, or certainly not. */
  forgetSent(vault: string, uid: string): void {
    this.#put(["sent", vault, uid], undefined);
  }

  /** The documents of which something was sent from here without a response. */
  async sentUids(vault: string): Promise<Set<string>> {
    return new Set((await this.#all<Uids>("sent", vault)).map(({ uid }) => uid));
  }

  /** Whether content of this proof, or any, was sent from here without a response. */
  async wasSent(vault: string, uid: string, proof?: string): Promise<boolean> {
    const known = await this.#sent(vault, uid);
    return proof === undefined ? known.length > 0 : known.includes(proof);
  }

  /** The number of queued changes that a sync would send. */
  async countSendable(): Promise<number> {
    const entries = await this.entries();
    const heads = (await this.#view.read(entries.map(({ vault, uid }) => ["heads", vault, uid]))) as (
      | Head
      | undefined
    )[];
    const refused = new Set((await this.refusals()).map(both));
    return entries.filter((entry, at) => entry.base === (heads[at]?.version ?? 0) && !refused.has(both(entry))).length;
  }

  // Refusals

  /** Every change that the server has refused. */
  refusals = (): Promise<RefusalRecord[]> => this.#all("refusals");

  putRefusal(record: RefusalRecord): void {
    this.#put(["refusals", record.vault, record.uid], record);
  }

  dropRefusal(vault: string, uid: string): void {
    this.#put(["refusals", vault, uid], undefined);
  }

  /** Let the next push send again what was refused for one of these reasons, or as too large for a lower limit. */
  async offerAgain(kinds: readonly string[], maxBytes = 0): Promise<void> {
    for (const one of await this.refusals()) {
      const fits = one.maxBytes !== undefined && (one.size ?? Infinity) <= maxBytes;
      if (!one.again && (fits || kinds.includes(one.kind))) this.putRefusal({ ...one, again: true });
    }
  }

  /** The documents whose change was refused and is not sent again. */
  async heldBack(vault: string): Promise<Set<string>> {
    const refusals = await this.#all<RefusalRecord>("refusals", vault);
    return new Set(refusals.filter((one) => !one.again).map(({ uid }) => uid));
  }
}

/** The tables of an open replica: transactions, and whoever wants to know of changes. */
export class Store extends Tables {
  readonly storage: Storage;
  readonly #listeners = new Set<(changed: readonly Changed[]) => void>();
  #closed = false;

  constructor(storage: Storage) {
    super({ read: (wanted) => this.open().read(wanted), list: (table, first) => this.open().list(table, first) });
    this.storage = storage;
    storage.onTold = (changed) => this.#told(changed);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** The storage, while the replica is open. */
  open(): Storage {
    const { lost } = this.storage;
    if (lost !== undefined) throw new Locked(lost || LOST);
    if (this.#closed) throw new Locked(CLOSED);
    return this.storage;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.storage.close();
    this.#told([]);
    this.#listeners.clear();
  }

  /** Change something: all of it is on disk when this returns, or nothing. No other tab changes anything meanwhile. */
  async transaction<T>(task: (tables: Tables) => Promise<T> | T): Promise<T> {
    return this.open().alone("write", async () => {
      const unit = new Unit(this.open());
      const result = await task(new Tables(unit));
      const { changes } = unit;
      if (!changes.length) return result;
      await this.open().write(changes);
      const changed = new Map<string, Changed>();
      for (const [[table, vault = "", uid = ""]] of changes) {
        if (SHOWN.has(table) || (table === "facts" && vault.startsWith(ASIDE)))
          changed.set(both({ vault, uid }), [vault, uid]);
      }
      if (!changed.size) return result;
      try {
        this.storage.tell([...changed.values()]);
      } catch {
        // The replica was closed meanwhile. What was changed is on disk.
      }
      this.#told([...changed.values()]);
      return result;
    });
  }

  /** Tell the other tabs of something else than changed documents. */
  tellOthers(): void {
    this.open().tell([]);
  }

  /** Call a function with the documents of each change; what ends that. */
  listen(listener: (changed: readonly Changed[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #told(changed: readonly Changed[]): void {
    for (const listener of [...this.#listeners]) listener(changed);
  }
}
