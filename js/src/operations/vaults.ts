// Operations on vaults. They are found in the directory in the keyring, not by the server's list.
import { Invalid, Locked, RolledBack, Tampered, VaultNotFound } from "../errors.js";
import type { Keyring, VaultEntry } from "../format/keyring.js";
import type { VaultKeys } from "../format/keys.js";
import { checkedVaultName, sealName } from "../format/names.js";
import type { VaultRow } from "../net/decoders.js";
import * as requests from "../net/requests/vaults.js";
import { type Core, newUid } from "./core.js";
import * as keyrings from "./keyrings.js";
import { rare } from "../lazyImports.js";

export const WRONG_VAULT = "The server answered with another vault than the one that was asked for.";
export const GONE = "Your directory has this vault, and the server says that there is none.";

/** A vault with its keys. `name` is what people call it, `wire` what the server is to call it. */
export interface OpenVault {
  readonly uid: string;
  readonly name: string;
  readonly wire: string;
  readonly sealed: boolean;
  readonly keys: VaultKeys;
  /** What the server may call it: a name for each generation of its key, the newest first. */
  readonly wires: readonly string[];
}

/** Open the vault of this name. */
export async function openVault(core: Core, name: string, create: boolean, sealed: boolean): Promise<OpenVault> {
  checkedVaultName(name, create && sealed);
  if (core.token) throw new Locked("A token opens what it was made for, and nothing else.");
  let entry = core.ring?.vault(name);
  let found = entry && (await fetchEntry(core, entry));
  if (!found) {
    await keyrings.reload(core); // another device may have made or deleted it
    entry = core.keyring().vault(name);
    if (!entry && create) entry = await addToDirectory(core, name, sealed);
    if (!entry) throw new VaultNotFound();
    found = await fetchEntry(core, entry);
    if (!found) {
      if (entry.made || core.device.vault(entry.uid)) throw new RolledBack(GONE);
      if (!create) throw new VaultNotFound();
      found = await openEntry(core, entry);
      await make(core, found);
    }
  }
  const { uid } = found;
  await keyrings.update(core, (ring) =>
    ring.entry(uid)?.made === false ? ring.withEntry(uid, { made: true }) : undefined,
  );
  return found;
}

/** The vault with the name and the keys that it has by now, its row, and whether there is a gap before that. */
export async function currentRow(core: Core, opened: OpenVault): Promise<[OpenVault, VaultRow, boolean]> {
  let vault = await renewed(core, opened);
  const mark = core.device.mark();
  let row = await core.session.send(requests.get(vault.uid));
  if (core.token) {
    vault = await (await rare()).tokens.named(vault, row.name); // its owner may have renamed it
  } else if (!vault.wires.includes(row.name) || !(await isKnown(vault, row))) {
    await keyrings.reload(core); // another device may have renamed the vault, or rotated its key
    vault = await renewed(core, vault);
    if (!vault.wires.includes(row.name)) row = await (await rare()).vaultChanges.updateWire(core, vault);
  }
  return [vault, row, await checkVault(core, vault, row, mark)];
}

/** Whether there is a key for the vault's blob. */
const isKnown = async (vault: OpenVault, { data }: VaultRow): Promise<boolean> =>
  data === null || (await rare()).blobs.isKnown(vault, data);

/** The same vault, as the keyring has it by now. */
export async function renewed(core: Core, vault: OpenVault): Promise<OpenVault> {
  if (!core.ring || core.ring.version === vault.keys.keyring) return vault;
  const entry = core.ring.entry(vault.uid);
  return entry ? openEntry(core, entry) : vault;
}

/** Add a vault to the directory, before it is created on the server: the server never has one unknown to it. */
async function addToDirectory(core: Core, name: string, sealed: boolean): Promise<VaultEntry> {
  const uid = newUid();
  await keyrings.update(core, (ring: Keyring) => (ring.vault(name) ? undefined : ring.withVault(uid, name, sealed)));
  const entry = core.keyring().vault(name);
  if (!entry) throw new VaultNotFound();
  return entry;
}

/** A vault of the directory, if the server has it. */
export async function fetchEntry(core: Core, entry: VaultEntry): Promise<OpenVault | undefined> {
  try {
    const [vault] = await currentRow(core, await openEntry(core, entry));
    return vault.name === entry.name ? vault : undefined;
  } catch (error) {
    if (error instanceof VaultNotFound) return undefined;
    throw error;
  }
}

/** Make a vault of the directory on the server. */
export async function make(core: Core, vault: OpenVault): Promise<void> {
  const mark = core.device.mark();
  let row: VaultRow;
  try {
    row = await core.session.send(requests.create(vault.uid, vault.wire));
  } catch (error) {
    if (!(error instanceof Invalid)) throw error; // a server of blobs takes no vault without one
    const blob = await (await rare()).blobs.firstBlob(vault);
    row = await core.session.send(requests.create(vault.uid, vault.wire, blob));
  }
  await checkVault(core, vault, row, mark);
  core.device.recordBlob(row);
}

/** A vault of the directory, with its keys. */
export const openEntry = async (core: Core, entry: VaultEntry): Promise<OpenVault> =>
  openVaultWith(await core.keyring().vaultKeys(entry.uid), entry);

/** A vault with these keys, under this name. */
export async function openVaultWith(
  keys: VaultKeys,
  { uid, name, sealed }: Pick<VaultEntry, "uid" | "name" | "sealed">,
): Promise<OpenVault> {
  const wires = sealed ? await Promise.all(keys.keys.map((key) => sealName(keys, key, "vault", name))) : [name];
  return { uid, name, wire: wires.at(-1) ?? name, sealed, keys, wires: wires.reverse() };
}

/** Remember the vault, if the server responded with it and nothing speaks against it; whether none can tell. */
export async function checkVault(core: Core, vault: OpenVault, row: VaultRow, mark: number): Promise<boolean> {
  if (!vault.wires.includes(row.name)) throw new Tampered(WRONG_VAULT);
  return checkRow(core, vault, row, mark);
}

/** The same, whatever the server calls the vault. */
export async function checkRow(core: Core, vault: OpenVault, row: VaultRow, mark: number): Promise<boolean> {
  if (row.uid !== vault.uid) throw new Tampered(WRONG_VAULT);
  let gap = false;
  for (let known = core.device.vault(vault.uid), isFirst = true; isFirst || known; isFirst = false) {
    const [version, data] = known ? [known.version, known.data] : [0, null];
    if (row.data !== null && row.version >= version && (row.version !== version || row.data !== data)) {
      await (await rare()).blobs.openBlob(vault.keys, row.name, row); // before it is remembered, or anything is sealed to follow on it
    }
    if (data !== null && row.data !== null && row.version > version) {
      gap = await (await rare()).blobs.requireBlobDescent(core, row, [version, data]);
    }
    const now = core.device.vault(vault.uid);
    if (now === known) break; // otherwise another task has seen it meanwhile
    known = now;
  }
  core.device.recordVault(row, mark);
  return gap;
}
