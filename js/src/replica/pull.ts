// Pulling a vault: pages of what has changed, each verified and stored.
import { Locked, RolledBack, Tampered, UndecidedConflicts, Unsupported } from "../errors.js";
import { must } from "../format/encoding.js";
import type { Row, VaultRow } from "../net/decoders.js";
import { type Scope, WITHHELD } from "../operations/documents.js";
import { checkPage, FIRST_LIMIT, nextLimit } from "../operations/listing.js";
import { compareRows, heldRows, reconcileVault } from "./afterRestore.js";
import { reconcileBlob } from "./blobs.js";
import * as incoming from "./incoming.js";
import type { Local } from "./local.js";
import type { VaultRecord } from "./records.js";
import type { RunningReport } from "./report.js";

const OLDER =
  "The server shows a vault as it was before this device saw it last. If the server's clock was far ahead for a while, and its database was not restored since, begin a new replica; what was not sent yet is in this one alone.";
const MISSING = "The server counts other documents in a vault than it shows.";

/** Whether a vault has changes to pull; throws RolledBack if it has gone back. */
export async function hasChanges({ store }: Local, row: VaultRow): Promise<boolean> {
  const record = await store.vault(row.uid);
  if (!record || row.epoch !== record.epoch) return true;
  if (row.updatedAt < record.clock || row.version < record.version) throw new RolledBack(OLDER);
  return record.start !== null || row.updatedAt > record.cursor;
}

/** Pull what has changed in a vault. */
export async function pullVault(local: Local, running: RunningReport, scope: Scope, row: VaultRow): Promise<void> {
  const was = await local.store.vault(scope.vault);
  if (was && was.epoch !== row.epoch && (await local.store.waitsSinceRestore(scope.vault)))
    throw new UndecidedConflicts();
  try {
    await pullChanges(local, running, scope, row, was);
  } catch (fault) {
    if (
      fault instanceof Tampered ||
      fault instanceof RolledBack ||
      fault instanceof Unsupported ||
      (fault instanceof Locked && !local.store.isClosed)
    ) {
      // The next sync pulls again what a hostile server left out.
      await local.store.transaction((tables) => (was ? tables.putVault(was) : tables.dropVault(scope.vault)));
    }
    throw fault;
  }
}

/** Refuse a server that holds back what a rotation has encrypted again. Few vaults have had one. */
export async function requireFloor(local: Local, running: RunningReport, scope: Scope): Promise<void> {
  const floor = await scope.floor();
  if (floor === 1) return;
  const { requireAbove } = await import("./floor.js");
  await requireAbove(local, scope, floor, (row) => pullVault(local, running, scope, row));
}

async function pullChanges(
  local: Local,
  running: RunningReport,
  scope: Scope,
  shown: VaultRow,
  before: VaultRecord | undefined,
): Promise<void> {
  const { store } = local;
  const [row, gaps] = await reconcileBlob(local, scope, before, shown);
  running.report.gaps += gaps;
  if (before && before.epoch !== row.epoch) {
    running.add("pull", await reconcileVault(local, scope, recordOf(row, 0, null)));
    return;
  }
  const since = before?.cursor ?? 0;
  let record = recordOf(row, since, before ? before.start : row.updatedAt);
  const pages = new Pages(local, running, scope, since);
  let expected = new Set<string>();
  if (record.start !== null) {
    await pages.all(record, false, expected);
    record = { ...record, cursor: record.start, start: null };
  } else {
    expected = await store.changedAfter(scope.vault, record.cursor);
  }
  record = await pages.all(record, true, expected);
  await store.transaction((tables) => tables.putVault({ ...record, cursor: Math.max(record.cursor, row.updatedAt) }));
  await count(local, scope, row);
}

/** The pages of one pull of a vault. */
class Pages {
  readonly #local: Local;
  readonly #running: RunningReport;
  readonly #scope: Scope;
  readonly #since: number;
  readonly #history = new incoming.History();

  constructor(local: Local, running: RunningReport, scope: Scope, since: number) {
    this.#local = local;
    this.#running = running;
    this.#scope = scope;
    this.#since = since;
  }

  /**
   * All pages from the cursor on; while one is under way, the one before is verified and kept.
   *
   * `expected` are documents that must be among them, in this version or a later one.
   */
  async all(given: VaultRecord, deleted: boolean, expected: Set<string>): Promise<VaultRecord> {
    const [local, scope] = [this.#local, this.#scope];
    const filter = await scope.filter();
    let record = given;
    let limit = FIRST_LIMIT;
    const fetch = async () => local.core.session.send(await incoming.listCall(scope, record.cursor, limit, deleted));
    for (let page = await fetch(); ; ) {
      const cursor = checkPage(page, scope.vault, filter, record.cursor, limit, deleted);
      const held = await heldRows(scope, page.documents);
      for (const { uid } of held) expected.delete(uid);
      if (expected.size && !page.hasMore) throw new RolledBack(WITHHELD);
      record = { ...record, cursor };
      const rows = await this.#withoutRepeats(held);
      const heads = await local.store.headsOf(
        scope.vault,
        rows.map(({ uid }) => uid),
      );
      const traced = await incoming.descents(local, scope, rows, heads, this.#since, this.#history);
      const stored = await incoming.storedBefore(local, scope, rows);
      // As long as something is still expected, the next sync begins where this one did.
      const kept = expected.size ? { ...record, cursor: given.cursor } : record;
      limit = nextLimit(page, limit);
      const next = page.hasMore ? fetch() : undefined;
      next?.catch(() => undefined); // it is awaited, unless this page cannot be kept
      const { fresh, gaps } = await incoming.storePage(local, scope, kept, rows, { heads, stored, traced });
      this.#running.add("pull", fresh, gaps);
      if (!next) return record;
      page = await next;
    }
  }

  /** The rows but those that are to be sent again after a restore, which are met as after a restore. */
  async #withoutRepeats(rows: Row[]): Promise<Row[]> {
    const [local, scope] = [this.#local, this.#scope];
    const repeats = await local.store.repeats(scope.vault);
    if (!repeats.size || !(await local.store.vault(scope.vault))) return rows;
    await compareRows(
      local,
      scope,
      rows.filter(({ uid }) => repeats.has(uid)),
    );
    return rows.filter(({ uid }) => !repeats.has(uid));
  }
}

/** Compare the number of local documents with the server's count, unless it was written since. */
async function count({ store }: Local, scope: Scope, row: VaultRow): Promise<void> {
  if (scope.name !== undefined || row.documents === null || (await store.repeats(scope.vault)).size) return;
  const [live, last] = await store.countLive(scope.vault);
  must(last > row.updatedAt || live === row.documents, MISSING);
}

const recordOf = (
  { uid, name: wire, version, updatedAt: clock, epoch, data, salt }: VaultRow,
  cursor: number,
  start: number | null,
): VaultRecord => ({
  uid,
  wire,
  version,
  clock,
  epoch,
  cursor,
  start,
  data,
  salt,
});
