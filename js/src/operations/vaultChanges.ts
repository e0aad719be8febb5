// All vaults, and changes of one: another name, its end.
import { KeyringConflict, RolledBack, Tampered, VaultConflict, VaultNotFound } from "../errors.js";
import { withoutVault } from "../format/keyringDirectory.js";
import { newest } from "../format/keys.js";
import { checkedVaultName } from "../format/names.js";
import type { Link } from "../format/parents.js";
import { blobLineage, openBlob, parentAfterBlob, sealBlob } from "../format/seal.js";
import type { VaultRow } from "../net/decoders.js";
import * as requests from "../net/requests/vaults.js";
import { NOT_KEPT } from "./blobs.js";
import type { Core } from "./core.js";
import * as keyrings from "./keyrings.js";
import { checkRow, checkVault, GONE, openEntry, type OpenVault, renewed } from "./vaults.js";

const ASKED = 3; // times that a list is asked for which the directory contradicts

/** Every vault of the directory. One that was made and that the server hides is missed. */
export async function listVaults(core: Core): Promise<OpenVault[]> {
  const mark = core.device.mark();
  const found = await listWithRows(core);
  const shown = new Set(found.map(([{ uid }]) => uid));
  if (core.keyring().vaults.some((entry) => entry.made && !shown.has(entry.uid))) throw new RolledBack(GONE);
  for (const [vault, row] of found) {
    if (vault.wires.includes(row.name)) await checkVault(core, vault, row, mark);
    else await updateWire(core, vault); // a rename that was interrupted
  }
  return found.map(([vault]) => vault);
}

/** Every vault of the directory that the server shows, and how it shows it. */
export async function listWithRows(core: Core): Promise<[OpenVault, VaultRow][]> {
  core.keyring();
  let rows = new Map<string, VaultRow>();
  for (let asked = 0; asked < ASKED; asked++) {
    const { vaults } = await core.session.send(requests.listAll());
    rows = new Map(vaults.map((row) => [row.uid, row]));
    if (rows.size !== vaults.length) throw new Tampered("The server lists a vault twice.");
    await keyrings.reload(core);
    // Otherwise another device may have made or deleted one between the two responses.
    if (core.keyring().vaults.every((entry) => !entry.made || rows.has(entry.uid))) break;
  }
  const found: [OpenVault, VaultRow][] = [];
  for (const entry of core.keyring().vaults) {
    const row = rows.get(entry.uid);
    if (row) found.push([await openEntry(core, entry), row]);
  }
  return found;
}

/** Another name: first in the directory, then on the wire. A blob is sealed anew for it. */
export async function renameVault(core: Core, { uid, sealed }: OpenVault, name: string): Promise<OpenVault> {
  checkedVaultName(name, sealed);
  await keyrings.update(core, (ring) => ring.withEntry(uid, { name }));
  const entry = core.keyring().entry(uid);
  if (!entry) throw new VaultNotFound();
  const renamed = await openEntry(core, entry);
  await updateWire(core, renamed);
  return renamed;
}

/**
 * Encrypt the vault's name and blob again where they are of another name or generation; the vault's row.
 *
 * Where a replica has `seen` another blob, or a later version, that is compared first, and nothing is encrypted here.
 * In a rotation, a blob under an older key that is not among the `believed` ones is left, with the vault's name.
 */
export async function updateWire(
  core: Core,
  opened: OpenVault,
  seen?: Link,
  believed?: ReadonlySet<string>,
): Promise<VaultRow> {
  let vault = opened;
  for (let attempt = 0; attempt < 10; attempt++) {
    const before = core.device.mark();
    const row = await core.session.send(requests.get(vault.uid));
    await checkRow(core, vault, row, before);
    const isOld = row.data !== null && blobLineage(row.data).generation !== newest(vault.keys).generation;
    if (row.name === vault.wire && !isOld) return row;
    if (seen && (row.version < seen[0] || (row.data !== null && row.data !== seen[1]))) return row;
    if (believed && isOld && !believed.has(row.data ?? "")) return row;
    let blob: requests.SealedBlob | undefined;
    if (row.data !== null) {
      const content = await openBlob(vault.keys, row.name, row);
      const parent = await parentAfterBlob(row.data);
      blob = await sealBlob(vault.keys, vault.wire, row.version + 1, content, { parent });
    }
    const mark = core.device.mark();
    const { version } = row;
    let changed: VaultRow;
    try {
      const call = requests.put(vault.uid, { name: vault.wire, version }, blob, vault.keys.keyring ?? undefined);
      changed = await core.session.send(call);
    } catch (error) {
      if (error instanceof KeyringConflict) {
        await keyrings.reload(core); // another device may have renamed the vault, or rotated its key
        vault = await renewed(core, vault);
      } else if (!(error instanceof VaultConflict)) {
        throw error;
      }
      continue; // another device was quicker, or an answer was lost
    }
    await checkVault(core, vault, changed, mark);
    const isKept = !blob || (changed.data === blob.data && changed.salt === blob.salt);
    if (changed.version !== version + 1 || !isKept) throw new Tampered(NOT_KEPT);
    return changed;
  }
  throw new Tampered(NOT_KEPT);
}

/** The end of a vault and of everything in it: a key holder says so in the directory, then it is deleted. */
export async function deleteVault(core: Core, { uid }: OpenVault): Promise<void> {
  if (!core.token) await keyrings.update(core, (ring) => (ring.entry(uid) ? withoutVault(ring, uid) : undefined));
  await core.session.sendOrDone(requests.remove(uid));
  core.device.forgetVault(uid);
}
