// Storing pulled rows: each is verified, checked for rollback, and matched with the outbox.
import { codeOf, NotFound, RolledBack, UidTaken } from "../errors.js";
import { equal, must } from "../format/encoding.js";
import type { Content } from "../format/padding.js";
import { type Descent, follows, type Link, trace } from "../format/parents.js";
import { openPastDocument, verifyPastDocument } from "../format/past.js";
import {
  link,
  openDocument,
  readProof,
  requireGeneration,
  resealNotice,
  type Verified,
  verifyDocument,
} from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import * as requests from "../net/requests/documents.js";
import type { Core } from "../operations/core.js";
import { readHistory } from "../operations/descent.js";
import type { Scope } from "../operations/documents.js";
import { requireCollection, TWO_CONTENTS } from "../operations/rollback.js";
import { copyRow } from "./conflicts.js";
import type { Local } from "./local.js";
import { DIVERGED, type Entry, type Head, isBelow, newEntry, type VaultRecord } from "./records.js";
import type { Tables } from "./tables.js";

const WRONG_TIME = "The server changed the time of something that it showed before.";
const isSame = (one: Content, other: Content): boolean => one.kind === other.kind && equal(one.data, other.data);

/** What the server's history of a vault says; read once in a sync, when it is first needed. */
export class History {
  #links: Promise<Map<string, Link[]>> | undefined;

  /** Versions of a document that were replaced after a time. */
  async of(core: Core, vault: string, since: number, uid: string): Promise<Link[]> {
    this.#links ??= readHistory(core, vault, since).then((all) => {
      const links = new Map<string, Link[]>();
      for (const [one, found] of all) links.set(one, [...(links.get(one) ?? []), found]);
      return links;
    });
    return (await this.#links).get(uid) ?? [];
  }
}

/** How newer rows stand to those that are here, by uid: only where they do not follow on them directly. */
export async function descents(
  { core, store }: Local,
  scope: Scope,
  rows: readonly Row[],
  heads: ReadonlyMap<string, Head>,
  since: number,
  history: History,
): Promise<Map<string, Descent>> {
  const found = new Map<string, Descent>();
  const { vault } = scope;
  for (const row of heads.size ? rows : []) {
    const head = heads.get(row.uid);
    if (!head || row.version <= head.version) continue;
    if (await isLateDeletion(scope, row, head)) {
      found.set(row.uid, "forked");
      continue;
    }
    if (await follows(row.hmac ?? "", head.hmac ?? "", readProof)) continue;
    const links = await history.of(core, vault, since, row.uid);
    const here = await store.row(vault, row.uid);
    if (here) found.set(row.uid, await trace(link(row), link(here), links, readProof));
  }
  return found;
}

/** Whether a deletion that is new here is below the floor: a rotation would have encrypted it again. */
const isLateDeletion = async (scope: Scope, { deletedAt, hmac }: Row, head: Head): Promise<boolean> =>
  deletedAt !== null && hmac !== head.hmac && readProof(hmac).generation < (await scope.floor());

/** Rows that key holders made for this place, and what their proofs say. */
export const verified = (
  scope: Scope,
  rows: readonly Row[],
  verify = verifyDocument,
): Promise<(readonly [Row, Verified])[]> =>
  Promise.all(rows.map(async (row) => [row, await verify(await scope.key(row.collection), row)] as const));

/** What is known of the rows of a page before they are stored. */
export interface Known {
  /** The documents that are here. */
  readonly heads: ReadonlyMap<string, Head>;
  /** What was sent from here and stored before some of these rows. */
  readonly stored: ReadonlyMap<string, Row>;
  readonly traced: ReadonlyMap<string, Descent>;
}

/** Keep a page of rows, and the place in the list that it leads to; how many rows were new, and gaps among them. */
export async function storePage(
  local: Local,
  scope: Scope,
  record: VaultRecord,
  rows: readonly Row[],
  { heads, stored, traced }: Known,
): Promise<{ fresh: number; gaps: number }> {
  const checked = await verified(scope, rows);
  const { vault } = scope;
  return local.store.transaction(async (tables) => {
    let gaps = 0;
    const fresh = checked
      .filter(([row]) => isNew(heads.get(row.uid), row))
      .map(([row, { deleted }]) => [row, deleted] as const);
    const marks = heads.size ? await tables.marks(vault) : undefined;
    for (const [row] of fresh) {
      const descent = traced.get(row.uid);
      const isFork = descent === "forked" || isBelow(row, marks?.get(row.uid));
      if (isFork || (descent === "gap" && (await tables.head(vault, row.uid))?.mine)) {
        await queueLocalConflict(local, tables, scope, row);
      } else if (descent === "gap") {
        gaps += 1;
      }
    }
    await tables.putRows(vault, fresh);
    const queued = new Set((await tables.entries(vault)).map(({ uid }) => uid));
    for (const [row, deleted] of fresh) {
      if (!queued.has(row.uid)) continue;
      if (await rebaseSame(tables, scope, row, heads.get(row.uid), traced.get(row.uid))) continue;
      await matchOutbox(tables, row, stored.get(row.uid), deleted);
    }
    await tables.putVault(record);
    return { fresh: fresh.length, gaps };
  });
}

/** Rebase a change on a row that says the same as the one that it was made from: a rotation has sealed that anew. */
async function rebaseSame(
  tables: Tables,
  scope: Scope,
  row: Row,
  head: Head | undefined,
  descent: Descent | undefined,
): Promise<boolean> {
  const entry = await tables.entry(scope.vault, row.uid);
  if (!entry?.before || !head || entry.base !== head.version) return false;
  if ((descent ?? "follows") !== "follows" || (await tables.wasSent(scope.vault, row.uid))) return false;
  const before = await openPastDocument(await scope.key(entry.before.collection), entry.before);
  const now = await openDocument(await scope.key(row.collection), row);
  if (now.deleted || before.deleted || !isSame(now.content, before.content)) return false;
  await tables.putEntry({ ...entry, base: row.version, before: row });
  return true;
}

/**
 * Queue what is here as a change of its own that conflicts with a row that did not know of it.
 *
 * What waits already, a change or a conflict, stays as it is, and stands against the row. A row that says that it knew of
 * what is here, under an older key, is refused.
 */
export async function queueLocalConflict(local: Local, tables: Tables, scope: Scope, row: Row): Promise<void> {
  const { vault } = scope;
  const [here, entry] = [await tables.row(vault, row.uid), await tables.entry(vault, row.uid)];
  if (!here) return;
  await requireGeneration(here.hmac ?? "", row.hmac ?? "");
  const mark = await tables.mark(vault, row.uid);
  const floor = mark?.version ?? here.version;
  const mine = await openPastDocument(await scope.key(here.collection), here);
  const theirs = await openDocument(await scope.key(row.collection), row);
  const isEqual = mine.deleted === theirs.deleted && (mine.deleted || isSame(mine.content, theirs.content));
  if (entry && entry.kind !== "bury") {
    // It waited to be decided against what is here, which may be nowhere else any more.
    if (entry.base !== here.version && !mark && !isEqual && !mine.deleted) await copyRow(local, tables, scope, here);
    // By its version alone, the row or a later one could be taken for what the change was made from.
    await tables.putEntry({ ...entry, base: DIVERGED, floor: Math.max(entry.floor, floor) });
    return;
  }
  if (isEqual) return;
  const { uid, collection, hmac, version, updatedAt, deletedAt } = here;
  const { data } = mine.purged ? await resealNotice(await scope.key(collection), here) : here;
  await tables.putEntry(
    newEntry({
      vault,
      uid,
      collection,
      kind: mine.deleted ? "delete" : "put",
      data,
      hmac: hmac ?? "",
      version: version - (deletedAt === null ? 0 : 1),
      base: DIVERGED,
      floor,
      madeAt: updatedAt,
    }),
  );
}

/** The request for a page of this replica's part of a vault. */
export const listCall = async (scope: Scope, since: number, limit: number, deleted: boolean) =>
  requests.listPage(scope.vault, { collection: await scope.filter(), since, limit, deleted });

/**
 * Lost responses: versions sent from here that the server's history shows before these rows; by uid.
 *
 * Without this, a later change or deletion would seem to be a conflict with it.
 */
export async function storedBefore(
  { core, store }: Local,
  scope: Scope,
  rows: readonly Row[],
): Promise<Map<string, Row>> {
  const found = new Map<string, Row>();
  const { vault } = scope;
  const queued = new Map((await store.entries(vault)).map((entry) => [entry.uid, entry]));
  for (const row of queued.size ? rows : []) {
    const entry = queued.get(row.uid);
    if (!entry || entry.base >= entry.version || entry.version >= row.version || !(await store.wasSent(vault, row.uid)))
      continue;
    let then: Row;
    try {
      then = await core.session.send(requests.getVersion(vault, row.uid, entry.version));
    } catch (refusal) {
      if (refusal instanceof NotFound) continue; // the history does not go back so far, or there is none
      throw refusal;
    }
    if (
      then.uid !== row.uid ||
      then.version !== entry.version ||
      !(await store.wasSent(vault, row.uid, then.hmac ?? ""))
    )
      continue;
    await verifyPastDocument(await scope.key(then.collection), then);
    const kept = (await readHistory(core, vault, 0, row.uid)).map(([, one]) => one);
    // Its author knew of it: the history is the server's word, a parent is not.
    if ((await trace(link(row), link(then), kept, readProof)) === "follows") found.set(row.uid, then);
  }
  return found;
}

/** Whether a row is newer than the stored one; throws if it is older or contradicts it. */
export function isNew(seen: Head | undefined, row: Row): boolean {
  if (!seen) return true;
  requireCollection(seen.collection, row);
  if (row.version < seen.version) throw new RolledBack();
  must(row.version !== seen.version || row.hmac === seen.hmac, TWO_CONTENTS);
  if (!seen.updatedAt) return true; // a restored server did not have it; somebody has sent it again
  must(
    row.createdAt === seen.createdAt && (row.updatedAt !== seen.updatedAt) === (row.version !== seen.version),
    WRONG_TIME,
  );
  must(row.updatedAt >= seen.updatedAt, WRONG_TIME);
  return row.version !== seen.version;
}

/**
 * Match a pulled row with the outbox entry of its document: the row is that change, or a conflicting one.
 *
 * `stored` is a version before it that was sent from here: the author of the row has seen that.
 */
export async function matchOutbox(tables: Tables, row: Row, stored: Row | undefined, deleted: boolean): Promise<void> {
  const { vaultUid: vault, uid, hmac } = row;
  const entry = await tables.entry(vault, uid);
  if (!entry) return;
  if (entry.collection !== row.collection && !(await tables.wasSent(vault, uid))) {
    tables.putRefusal({ vault, uid, kind: codeOf(UidTaken) });
    return;
  }
  requireCollection(entry.collection, row);
  if (entry.base === DIVERGED && entry.hmac === hmac && row.version >= entry.floor)
    tables.dropEntry(vault, uid); // the server shows it again
  else if (hmac !== null && (await tables.wasSent(vault, uid, hmac))) await confirmSent(tables, entry, row);
  else if (stored && stored.hmac === entry.hmac) tables.dropEntry(vault, uid);
  else if ((deleted && entry.kind !== "put") || entry.kind === "bury")
    tables.dropEntry(vault, uid); // both deleted it
  else if (stored) await confirmSent(tables, entry, stored); // changed here since: a conflict, with what was stored as its base
  // Otherwise it is a conflict: the row is no longer the one that the change was made from.
}

/** Update or remove an entry whose content was stored without a response. */
async function confirmSent(tables: Tables, entry: Entry, row: Row): Promise<void> {
  const { version, vaultUid: vault, uid } = row;
  if (row.hmac !== entry.hmac) {
    // Changed again since it was sent, or one of several on the way above the floor.
    await tables.putEntry({ ...entry, base: version, before: row, floor: version <= entry.floor ? entry.floor : 0 });
  } else if (entry.kind === "delete" && row.deletedAt === null) {
    await tables.putEntry({ ...entry, kind: "bury", base: version, version, floor: 0 });
  } else {
    tables.dropEntry(vault, uid);
  }
}
