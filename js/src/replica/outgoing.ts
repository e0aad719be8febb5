// Pushing the outbox, in batches.
import {
  BatchConflict,
  codeOf,
  DocumentNotFound,
  ImportUnfinished,
  InsufficientScope,
  Invalid,
  KeyringConflict,
  PayloadTooLarge,
  QuotaExceeded,
  Refusal,
  type RefusalClass,
  RequestTimeout,
  StorageFull,
  Tampered,
  UidTaken,
} from "../errors.js";
import { EMPTY } from "../format/content.js";
import { type Bytes, equal, must, NO_PARENT, short } from "../format/encoding.js";
import { newest } from "../format/keys.js";
import { openPastDocument } from "../format/past.js";
import {
  DELETION,
  DOCUMENT,
  readProof,
  resealNotice,
  type Sealed,
  sealContent,
  verifyDocument,
} from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import { batch as batchCall, type Operation } from "../net/requests/documents.js";
import { checkStored, type Scope, withCiphertext } from "../operations/documents.js";
import { isNew } from "./incoming.js";
import type { Local } from "./local.js";
import { type Entry, entryRow, isSameEntry, newEntry, type RefusalRecord } from "./records.js";
import { sizeOf } from "./sizes.js";
import type { Tables } from "./tables.js";

const MOST_OPERATIONS = 500;
const MOST_BYTES = 2 << 20;
const REPEATS = 50; // documents that are sent again in one batch
const EVERYTHING = [ImportUnfinished, StorageFull]; // refusals of every change, whatever it is
const REFUSED = [PayloadTooLarge, InsufficientScope, QuotaExceeded, Invalid, ...EVERYTHING];
const is = (refusal: unknown, kinds: readonly RefusalClass[]): boolean => kinds.some((kind) => refusal instanceof kind);

/** Whether a refusal is of a change; others end the sync. */
export const isRefusal = (refusal: unknown): refusal is Refusal => is(refusal, REFUSED);

/** An outbox entry and its batch operations. */
export interface Prepared {
  readonly entry: Entry;
  readonly operations: readonly Operation[];
  readonly versions: readonly number[];
  /** The final content. */
  readonly last: Sealed;
  readonly size: number;
  /** Nothing of the document was on its way before. */
  readonly unsent: boolean;
  /** No entry, but a document that a restored server has forgotten. */
  readonly repeated: boolean;
}

/** What a token must allow for this. */
const needs = ({ entry, operations }: Prepared): string =>
  [entry.vault, entry.collection, ...operations.map(({ op }) => op)].join("\n");

/** How many documents and bytes the account has more afterwards; a deletion adds nothing. */
function added({ entry: { kind, before }, last }: Prepared): [documents: number, bytes: number] {
  const size = last.data.length + last.hmac.length;
  if (kind !== "put") return [0, 0];
  if (!before || before.deletedAt !== null) return [1, size];
  return [0, size - before.data.length - (before.hmac ?? "").length];
}

const isAdding = (prepared: Prepared): boolean => Math.max(...added(prepared)) > 0;

/** The result of a push. */
export class PushResult {
  done = 0;
  /** Uids that the server refused as out of date or missing. */
  readonly stale = new Set<string>();
  readonly missing = new Set<string>();
  readonly taken = new Set<string>();
  /** Uids of what may have been stored by a request without a response. */
  readonly inDoubt = new Set<string>();
  readonly #notAllowed = new Set<string>();
  readonly #overQuota: [number, number][] = [];

  /** Record that the server refuses a change, unless it was changed here meanwhile. */
  async refuse(local: Local, prepared: Prepared, refused: Refusal): Promise<void> {
    const {
      entry: { vault, uid, hmac },
      operations,
      repeated,
      unsent,
    } = prepared;
    if (refused instanceof InsufficientScope) this.#notAllowed.add(needs(prepared));
    if (refused instanceof QuotaExceeded) this.#overQuota.push(added(prepared));
    await local.store.transaction(async (tables) => {
      let record: RefusalRecord = { vault, uid, kind: refused.code };
      if (refused instanceof PayloadTooLarge) {
        const size = sizeOf(operations);
        local.limit.learn(tables, refused.details?.limit);
        const { maxBytes } = local.limit;
        record = { ...record, size, ...(maxBytes !== undefined && maxBytes < size ? { maxBytes } : {}) };
      }
      if (!repeated && (await tables.entry(vault, uid))?.hmac !== hmac) return;
      tables.putRefusal(record);
      if (unsent && !this.inDoubt.has(uid)) tables.forgetSent(vault, uid); // never stored: a deletion of it is nothing
    });
  }

  /** The refusal that this entry is certain to get, by those before it. */
  likeBefore(prepared: Prepared): Refusal | undefined {
    if (this.#notAllowed.has(needs(prepared))) return new InsufficientScope();
    const [documents, size] = added(prepared);
    return this.#overQuota.some(([least, bytes]) => documents >= least && size >= bytes)
      ? new QuotaExceeded()
      : undefined;
  }
}

/** The next batch of entries, sealed for their new versions and recorded as sent. */
export function nextBatch(local: Local, scope: Scope, after: number): Promise<Prepared[]> {
  return local.store.transaction(async (tables) => {
    const made: Prepared[] = [];
    const most = Math.min(MOST_BYTES, local.limit.maxBytes ?? MOST_BYTES);
    const { vault } = scope;
    const ready = await tables.ready(vault, after, MOST_OPERATIONS);
    const heads = await tables.headsOf(
      vault,
      ready.map(({ uid }) => uid),
    );
    const [sent, marks] = [await tables.sentUids(vault), await tables.marks(vault)];
    let [operations, size] = [0, 0];
    for (const queued of ready) {
      // What is sent lies above all that was seen.
      const entry = { ...queued, floor: Math.max(queued.floor, marks.get(queued.uid)?.version ?? 0) };
      const hmac = heads.get(entry.uid)?.hmac;
      const prepared = await prepare(scope, entry, hmac == null ? NO_PARENT : await short(hmac));
      operations += prepared.operations.length;
      size += prepared.size;
      if (made.length && (operations > MOST_OPERATIONS || size > most)) break;
      made.push({ ...prepared, unsent: !sent.has(entry.uid) });
      await tables.putEntry(prepared.entry, true);
      const proofs = prepared.operations.flatMap((one) => one.hmac ?? []);
      if (proofs.length) await tables.recordSent(vault, entry.uid, proofs);
    }
    return made;
  });
}

const putOperation = (uid: string, { data, hmac }: Sealed, version: number, newVersion: number): Operation => ({
  op: "put",
  uid,
  data,
  hmac,
  version,
  ...(newVersion === version + 1 ? {} : { newVersion }),
});
const createOperation = (uid: string, collection: string, { data, hmac }: Sealed, version: number): Operation => ({
  op: "create",
  collection,
  data,
  hmac,
  uid,
  ...(version === 1 ? {} : { newVersion: version }),
});

/** The operations that bring a document from version `base` to this content; with its deletion, where it is one. */
function operationsFor(
  uid: string,
  collection: string,
  sealed: Sealed,
  base: number,
  version: number,
  deleted: boolean,
) {
  const first =
    base === 0 ? createOperation(uid, collection, sealed, version) : putOperation(uid, sealed, base, version);
  const operations: Operation[] = deleted ? [first, { op: "delete", uid, version }] : [first];
  return { operations, versions: operations.map((_, at) => version + at), last: sealed };
}

async function prepare(scope: Scope, entry: Entry, parent: Bytes): Promise<Prepared> {
  const { uid, collection, kind, base } = entry;
  if (kind === "bury") {
    const operations: Operation[] = [{ op: "delete", uid, version: base }];
    const { data, hmac } = entry;
    return { entry, operations, versions: [base + 1], last: { data, hmac }, size: 100, unsent: false, repeated: false };
  }
  const version = Math.max(base, entry.floor) + 1; // above all that this device has seen, also where a restore took some
  const sealed = await resealed(scope, entry, version, parent);
  const made = operationsFor(uid, collection, sealed, base, version, kind === "delete");
  const size = made.operations.length * (sealed.data.length + 300);
  return { entry: { ...entry, ...sealed, version }, ...made, size, unsent: false, repeated: false };
}

/** The content of an entry, sealed for this version and parent, under the newest key. */
async function resealed(scope: Scope, entry: Entry, version: number, parent: Bytes): Promise<Sealed> {
  const { uid, collection: wire, data, hmac, kind } = entry;
  const keys = await scope.key(wire);
  const proof = readProof(hmac);
  if (entry.version === version && equal(proof.parent, parent) && proof.generation === newest(keys).generation)
    return { data, hmac };
  const { content } = await openPastDocument(keys, entryRow(entry));
  return sealContent(keys, kind === "delete" ? DELETION : DOCUMENT, uid, version, content, { parent, wire });
}

/** Send again, identical, what a restored server has forgotten; the uids that it has something else for by now. */
export async function repeat(local: Local, scope: Scope): Promise<Set<string>> {
  const pushed = new PushResult();
  for (;;) {
    const held = await local.store.heldBack(scope.vault);
    const repeats = [...(await local.store.repeats(scope.vault))].filter(
      ([uid]) => !pushed.stale.has(uid) && !held.has(uid),
    );
    if (!repeats.length) return pushed.stale;
    const batch: Prepared[] = [];
    for (const [uid, base] of repeats.slice(0, REPEATS)) batch.push(await prepareRepeat(local, scope, uid, base));
    await push(local, scope, batch, pushed);
  }
}

async function prepareRepeat({ store }: Local, scope: Scope, uid: string, base: number): Promise<Prepared> {
  const row = await store.row(scope.vault, uid);
  if (!row) throw new DocumentNotFound();
  const { collection, data, hmac, deletedAt } = row;
  const gone = deletedAt !== null;
  const version = row.version - (gone ? 1 : 0);
  // Where the content was thrown away, the proof of a deletion stands without it.
  const sealed = data ? { data, hmac: hmac ?? "" } : await resealNotice(await scope.key(collection), row);
  const entry = newEntry({
    vault: scope.vault,
    uid,
    collection,
    kind: gone ? "delete" : "put",
    ...sealed,
    version,
    base,
  });
  return {
    entry,
    ...operationsFor(uid, collection, sealed, base, version, gone),
    size: sealed.data.length,
    unsent: false,
    repeated: true,
  };
}

/** Send one batch. Where the server refuses it, in parts: what it refuses in the end holds up nothing else. */
export async function push(local: Local, scope: Scope, given: readonly Prepared[], pushed: PushResult): Promise<void> {
  const batch: Prepared[] = [];
  for (const prepared of given) {
    const refused = pushed.likeBefore(prepared);
    if (refused) await pushed.refuse(local, prepared, refused);
    else batch.push(prepared);
  }
  if (!batch.length) return;
  const operations = batch.flatMap((prepared) => prepared.operations);
  const [found, inDoubt] = await local.core.session.sendInDoubt(batchCall(scope.vault, operations, scope.keyring));
  if (inDoubt) for (const { entry } of batch) pushed.inDoubt.add(entry.uid);
  if (found instanceof KeyringConflict && !inDoubt) {
    // Nothing of it is on its way: it can be rebased on a row that a rotation sealed anew.
    await local.store.transaction((tables) => {
      for (const { unsent, entry } of batch) if (unsent) tables.forgetSent(entry.vault, entry.uid);
    });
  }
  if (found instanceof BatchConflict) return recordConflicts(batch, found, pushed);
  if (found instanceof Refusal) return pushParts(local, scope, batch, pushed, found);
  must(found.results.length === operations.length, "The server did not answer every operation of a batch.");
  await confirmAll(local, scope, batch, found.results, pushed);
}

/** Send a refused batch in parts, or record that it is refused. */
async function pushParts(
  local: Local,
  scope: Scope,
  batch: Prepared[],
  pushed: PushResult,
  refused: Refusal,
): Promise<void> {
  const isLate = refused instanceof RequestTimeout;
  if (!isRefusal(refused) && !isLate) throw refused;
  const [first] = batch;
  if (batch.length > 1 && !is(refused, EVERYTHING)) {
    for (const part of partsOf(batch, refused)) await push(local, scope, part, pushed);
    return;
  }
  if (isLate) throw refused;
  const smaller = refused instanceof PayloadTooLarge && first ? await withoutContent(local, scope, first) : undefined;
  if (smaller) return push(local, scope, [smaller], pushed);
  for (const prepared of batch) await pushed.refuse(local, prepared, refused);
}

/** Smaller batches, so that one change that is refused does not hold up the others. */
function partsOf(batch: Prepared[], refused: Refusal): Prepared[][] {
  if (refused instanceof InsufficientScope) {
    const groups = new Map<string, Prepared[]>();
    for (const prepared of batch) groups.set(needs(prepared), [...(groups.get(needs(prepared)) ?? []), prepared]);
    return groups.size > 1 ? [...groups.values()] : [batch.slice(0, 1), batch.slice(1)];
  }
  if (refused instanceof QuotaExceeded) {
    // What frees room first.
    const adding = batch.filter(isAdding);
    if (adding.length < batch.length) return [batch.filter((prepared) => !isAdding(prepared)), adding];
  }
  const half = batch.length >> 1;
  return [batch.slice(0, half), batch.slice(half)];
}

/** A deletion without the content that was deleted; undefined where that makes it no smaller. */
async function withoutContent(local: Local, scope: Scope, prepared: Prepared): Promise<Prepared | undefined> {
  const { entry, repeated } = prepared;
  const { vault, uid, collection: wire, version } = entry;
  if (entry.kind !== "delete" || repeated) return undefined;
  const { parent } = readProof(entry.hmac);
  const sealed = await sealContent(await scope.key(wire), DELETION, uid, version, EMPTY, { parent, wire });
  if (sealed.data.length >= entry.data.length) return undefined;
  const smaller: Entry = { ...entry, ...sealed };
  return local.store.transaction(async (tables) => {
    if (!isSameEntry(await tables.entry(vault, uid), entry)) return undefined;
    await tables.putEntry(smaller, true);
    await tables.recordSent(vault, uid, [sealed.hmac]);
    const operations = prepared.operations.map((one) => (one.data === undefined ? one : { ...one, ...sealed }));
    return { ...prepared, entry: smaller, operations, last: sealed };
  });
}

/** Record which entries made the server refuse the batch. The others are sent in the next round. */
function recordConflicts(batch: readonly Prepared[], refused: BatchConflict, pushed: PushResult): void {
  const uids = new Set(batch.map(({ entry }) => entry.uid));
  const named: unknown = refused.details?.operations;
  for (const one of Array.isArray(named) ? (named as unknown[]) : []) {
    const { uid, code } = Object(one) as { uid?: unknown; code?: unknown };
    if (typeof uid !== "string" || !uids.has(uid)) continue;
    pushed.stale.add(uid);
    if (code === codeOf(DocumentNotFound)) pushed.missing.add(uid);
    if (code === codeOf(UidTaken)) pushed.taken.add(uid);
  }
  if (![...uids].some((uid) => pushed.stale.has(uid)))
    throw new Tampered("The server refused a batch and does not say why.");
}

async function confirmAll(
  local: Local,
  scope: Scope,
  batch: readonly Prepared[],
  results: readonly Row[],
  pushed: PushResult,
): Promise<void> {
  await local.store.transaction(async (tables) => {
    let start = 0;
    for (const prepared of batch) {
      const end = start + prepared.operations.length;
      const row = checkedRow(prepared, results.slice(start, end));
      if (prepared.repeated) await confirmRepeat(tables, prepared, row);
      else await confirm(tables, scope, prepared, row);
      await tables.advanceClock(row.vaultUid, row.updatedAt);
      start = end;
    }
  });
  pushed.done += batch.length;
}

/** The row that an entry became, if the server says exactly what was sent. */
function checkedRow({ entry, operations, versions, last }: Prepared, results: readonly Row[]): Row {
  let row: Row | undefined;
  results.forEach((found, at) => {
    const isDelete = operations[at]?.op === "delete";
    row = isDelete ? withCiphertext(found, last) : found;
    checkStored(row, last, entry.vault, entry.collection, entry.uid, versions[at] ?? 0, isDelete);
  });
  must(row !== undefined);
  return row;
}

/** The server has a document again that it had forgotten. */
async function confirmRepeat(tables: Tables, { entry }: Prepared, row: Row): Promise<void> {
  const mine = (await tables.head(row.vaultUid, row.uid))?.mine ?? false;
  await tables.putRows(row.vaultUid, [[row, entry.kind === "delete"]], mine);
  tables.dropRepeat(row.vaultUid, row.uid);
}

/** The server has stored an entry: it leaves the outbox, unless it was changed again meanwhile. */
async function confirm(tables: Tables, scope: Scope, { entry }: Prepared, row: Row): Promise<void> {
  const { vault, uid } = entry;
  await verifyDocument(await scope.key(row.collection), row);
  isNew(await tables.head(vault, uid), row);
  await tables.putRows(vault, [[row, entry.kind !== "put"]], true);
  const now = await tables.entry(vault, uid);
  if (!now || now.hmac === entry.hmac) tables.dropEntry(vault, uid);
  else await tables.putEntry({ ...now, base: row.version, before: row, floor: 0 });
}
