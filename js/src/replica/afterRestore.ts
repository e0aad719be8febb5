// Reconciliation with a server whose database was restored from a backup: it has forgotten, this device has not.
//
// Everything is read anew. What the server has forgotten is sent again as it is, at its own version; nothing is ever
// sealed anew for that. Where both went on, that is a conflict for a person. Nothing that is here is dropped because it
// is not there.
import { equal, short } from "../format/encoding.js";
import type { Descent } from "../format/parents.js";
import { verifyPastDocument } from "../format/past.js";
import { link, readProof, type Verified } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import type { KnownDocument } from "../operations/device.js";
import { replaceVault } from "../operations/deviceMemory.js";
import type { Scope } from "../operations/documents.js";
import { checkPage, FIRST_LIMIT, nextLimit } from "../operations/listing.js";
import { requireCollection } from "../operations/rollback.js";
import * as incoming from "./incoming.js";
import type { Local } from "./local.js";
import { isBelow, type VaultRecord } from "./records.js";
import type { Tables } from "./tables.js";

/** Compare all documents of a vault; the number of rows received. The new epoch is recorded only at the end. */
export async function reconcileVault(local: Local, scope: Scope, record: VaultRecord): Promise<number> {
  const { vault } = scope;
  const history = new incoming.History();
  const seen = new Set<string>();
  let [cursor, came, limit] = [0, 0, FIRST_LIMIT];
  for (let more = true; more; ) {
    const page = await local.core.session.send(await incoming.listCall(scope, cursor, limit, true));
    cursor = checkPage(page, vault, await scope.filter(), cursor, limit, true);
    limit = nextLimit(page, limit);
    const rows = await heldRows(scope, page.documents);
    for (const { uid } of rows) seen.add(uid);
    came += await compareRows(local, scope, rows, history);
    more = page.hasMore;
  }
  await local.store.transaction(async (tables) => {
    const forgotten = (await tables.heads(vault)).filter(({ uid }) => !seen.has(uid));
    for (const { uid } of forgotten) await queueForgotten(tables, scope, uid);
    await tables.forgetTimes(
      vault,
      forgotten.map(({ uid }) => uid),
    );
    await tables.putVault({ ...record, cursor: Math.max(cursor, record.clock), start: null });
  });
  return came;
}

/** The rows of a place. */
export async function heldRows(scope: Scope, rows: readonly Row[]): Promise<Row[]> {
  const own = await scope.own();
  return rows.filter((row) => !own || own.wires.includes(row.collection));
}

/** Lay rows of the server beside those that are here; how many were new. */
export async function compareRows(
  local: Local,
  scope: Scope,
  rows: readonly Row[],
  history = new incoming.History(),
): Promise<number> {
  const heads = await local.store.headsOf(
    scope.vault,
    rows.map(({ uid }) => uid),
  );
  const traced = await incoming.descents(local, scope, rows, heads, 0, history);
  const stored = await incoming.storedBefore(local, scope, rows);
  const checked = await incoming.verified(scope, rows, verifyPastDocument);
  return local.store.transaction(async (tables) => {
    let came = 0;
    for (const [row, made] of checked) {
      came += Number(await compare(local, tables, scope, row, made, traced.get(row.uid), stored.get(row.uid)));
    }
    return came;
  });
}

/** Lay a row of the server beside the one that is here. */
async function compare(
  local: Local,
  tables: Tables,
  scope: Scope,
  row: Row,
  { deleted }: Verified,
  descent: Descent | undefined,
  stored: Row | undefined,
): Promise<boolean> {
  const { vault } = scope;
  const { uid, version, hmac } = row;
  const [here, head] = [await tables.row(vault, uid), await tables.head(vault, uid)];
  if (here) requireCollection(here.collection, row);
  tables.dropRepeat(vault, uid);
  if (here && here.version === version && here.hmac === hmac) {
    if (here.createdAt !== row.createdAt || here.updatedAt !== row.updatedAt) {
      await tables.putRows(vault, [[row, deleted]], head?.mine); // with the times of this database
    }
    return false;
  }
  if (here && (await isPast(tables, row, here))) {
    tables.putRepeat(vault, uid, version);
    return false;
  }
  await incoming.verified(scope, [row]); // no restore lowers the floor
  const isLower = isBelow(row, await tables.mark(vault, uid));
  const follows = !here || (version > here.version && (descent ?? "follows") === "follows" && !isLower);
  if (!follows) await incoming.queueLocalConflict(local, tables, scope, row);
  await tables.putRows(vault, [[row, deleted]]);
  await incoming.matchOutbox(tables, row, stored, deleted);
  return true;
}

/** Whether the row that is here was made knowing of the server's. */
async function isPast(tables: Tables, row: Row, here: Row): Promise<boolean> {
  if (row.version >= here.version) return false;
  return (await tables.hadVersion(row)) || equal(readProof(here.hmac).parent, await short(row.hmac ?? ""));
}

/** A document that is here and not there. That it was deleted stays known; anything else is sent again. */
async function queueForgotten(tables: Tables, scope: Scope, uid: string): Promise<void> {
  const { vault } = scope;
  const here = await tables.row(vault, uid);
  if (!here) return;
  const [[, { deleted }] = [here, { deleted: false }]] = await incoming.verified(scope, [here], verifyPastDocument);
  if (!deleted || (await tables.entry(vault, uid))?.kind === "put") tables.putRepeat(vault, uid, 0);
}

/**
 * Let the client outside the replica go on with a restored server too, once everything was compared and sent again, here
 * or in another tab; whether there was something to do.
 *
 * It forgets nothing of what the replica had not seen: a document of which it saw a later version stays refused.
 */
export async function updateDevice({ store, core: { device }, epochs }: Local): Promise<boolean> {
  let isRestored = false;
  for (const vault of await store.vaults()) {
    const { uid, epoch } = vault;
    const isSame = [epochs.get(uid), device.vault(uid)?.epoch].every((seen) => (seen ?? epoch) === epoch);
    epochs.set(uid, epoch);
    if (isSame) continue;
    isRestored = true;
    const compared = new Map<string, Omit<KnownDocument, "order">>();
    for (const [key, known] of device.rows(uid)) {
      const [row, head, entry] = [await store.row(uid, key), await store.head(uid, key), await store.entry(uid, key)];
      if (!row || Math.max(row.version, entry?.floor ?? 0) < known.version) continue;
      const { version, collection, createdAt, updatedAt } = row;
      compared.set(key, {
        version,
        proof: row.hmac ?? "",
        link: link(row),
        collection,
        createdAt,
        updatedAt,
        deleted: head?.deleted ?? false,
      });
    }
    replaceVault(device, uid, { version: vault.version, clock: vault.clock, data: vault.data, epoch }, compared);
  }
  return isRestored;
}
