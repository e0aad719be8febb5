// Whether a replica holds anything below the floor of a vault; loaded where a rotation has raised one.
import { RolledBack } from "../errors.js";
import { must } from "../format/encoding.js";
import { FLOOR } from "../format/keyringBody.js";
import { blobLineage, readProof } from "../format/seal.js";
import type { VaultRow } from "../net/decoders.js";
import { get as getVault } from "../net/requests/vaults.js";
import type { Scope } from "../operations/documents.js";
import type { Local } from "./local.js";

const HELD_BACK =
  "The server holds back documents that were encrypted again under newer keys, or shows them as they were before.";

/**
 * Refuse a server that holds back what a rotation has encrypted again: nothing here may be below the floor.
 *
 * Once that holds, it stays so: no row below the floor is taken.
 */
export async function requireAbove(
  local: Local,
  scope: Scope,
  floor: number,
  pull: (row: VaultRow) => Promise<void>,
): Promise<void> {
  const [{ store, core }, { vault }] = [local, scope];
  if ((await store.fact(`${FLOOR} ${vault}`)) === `${floor}`) return;
  if (await isBelowFloor(local, scope, floor)) {
    // The floor may have risen after the server listed its vaults.
    await beginAgain(local, vault);
    const row = await core.session.send(getVault(vault));
    must(row.uid === vault);
    await pull(row);
    if (await isBelowFloor(local, scope, floor)) {
      await beginAgain(local, vault);
      throw new RolledBack(HELD_BACK);
    }
  }
  await store.transaction((tables) => tables.setFact(`${FLOOR} ${vault}`, `${floor}`));
}

/** Pull everything next time: what was held back may be from before the cursor. */
const beginAgain = ({ store }: Local, vault: string): Promise<void> =>
  store.transaction(async (tables) => {
    const record = await tables.vault(vault);
    if (record) await tables.putVault({ ...record, cursor: 0 });
  });

async function isBelowFloor({ store }: Local, { vault, vaultKeys }: Scope, floor: number): Promise<boolean> {
  const blob = vaultKeys && (await store.vault(vault))?.data;
  if (typeof blob === "string" && blobLineage(blob).generation < floor) return true;
  const repeats = await store.repeats(vault); // those may be of any time
  return (await store.heads(vault)).some(
    ({ uid, deleted, hmac }) => !deleted && !repeats.has(uid) && readProof(hmac).generation < floor,
  );
}
