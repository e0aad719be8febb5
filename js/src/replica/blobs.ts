// Comparing a vault's blob with the one that is here.
import { equal, must, short } from "../format/encoding.js";
import { blobLineage, openBlob } from "../format/seal.js";
import type { VaultRow } from "../net/decoders.js";
import * as requests from "../net/requests/vaults.js";
import type { Scope } from "../operations/documents.js";
import { checkBlob } from "../operations/rollback.js";
import { blobDescent, NOT_KEPT, requireBlobDescent } from "../operations/blobs.js";
import type { Local } from "./local.js";
import { isRefusal } from "./outgoing.js";
import type { VaultRecord } from "./records.js";

/**
 * Compare a vault's blob with the one that is here; the vault's row then, and the number of gaps.
 *
 * What a restored server has forgotten is sent again.
 */
export async function reconcileBlob(
  { core, store }: Local,
  { vaultKeys }: Scope,
  record: VaultRecord | undefined,
  row: VaultRow,
): Promise<[VaultRow, number]> {
  if (!vaultKeys) return [row, 0];
  if (row.data !== null) await openBlob(vaultKeys, row.name, row);
  const isSameEpoch = record?.epoch === row.epoch;
  if (record && isSameEpoch) checkBlob(record.version, record.data, row.version, row.data);
  if (!record || record.data === null || (record.version === row.version && record.data === row.data)) return [row, 0];
  const { data, version, wire, salt } = record;
  if (isSameEpoch) return [row, Number(await requireBlobDescent(core, row, [version, data]))];
  if ((await store.blobAside(row.uid))?.data === row.data) {
    await store.transaction((tables) => tables.dropBlobAside(row.uid)); // the server has it again
    return [row, 0];
  }
  if (row.version > version && row.data !== null && (await blobDescent(core, row, [version, data])) !== "forked")
    return [row, 0];
  const aside = async (): Promise<[VaultRow, number]> => {
    await store.transaction((tables) => tables.putBlobAside(record));
    return [row, 0];
  };
  const isPast = async (past: string): Promise<boolean> =>
    equal(blobLineage(data).parent, await short(past)) || (await store.hadBlob(row.uid, past));
  if (row.version >= version || (row.data !== null && !(await isPast(row.data)))) return aside();
  let again: VaultRow;
  try {
    const change = { name: wire, version: row.version, newVersion: version };
    again = await core.session.send(requests.put(row.uid, change, { data, salt: salt ?? "" }));
  } catch (refusal) {
    if (isRefusal(refusal)) return aside();
    throw refusal;
  }
  must(again.version === version && again.data === data && again.salt === salt && again.name === wire, NOT_KEPT);
  return [again, 0];
}
