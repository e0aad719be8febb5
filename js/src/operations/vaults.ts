// Operations on vaults. They are found in the directory in the keyring, not by the server's list.
import {
  Invalid, KeyringConflict, Locked, RolledBack, Tampered, TypeMismatch, VaultConflict, VaultNotFound,
} from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import { equal } from "../format/encoding.js";
import type { Keyring, VaultEntry } from "../format/keyring.js";
import { newest, type VaultKeys } from "../format/keys.js";
import { checkedVaultName, isSealed, openName, sealName } from "../format/names.js";
import type { Content } from "../format/padding.js";
import { type Descent, follows, type Link, trace } from "../format/parents.js";
import { blobLineage, openBlob, parentAfterBlob, sealBlob } from "../format/seal.js";
import type { VaultRow } from "../net/decoders.js";
import * as requests from "../net/requests/vaults.js";
import { type Core, newUid } from "./core.js";
import * as keyrings from "./keyrings.js";
import { decode, type Typed, type ValueType } from "./valueTypes.js";

const NOT_KEPT = "The server did not keep what it was given for a vault.";
const OTHER_BLOB =
  "The vault has another blob than the one that this client has last read or written; read it with blob.get, merge, and put again.";
export const WRONG_VAULT = "The server answered with another vault than the one that was asked for.";
export const GONE = "Your directory has this vault, and the server says that there is none.";
const ASKED = 3; // times that a list is asked for which the directory contradicts

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

/** A vault's blob. `version` is the vault's. */
export class Blob<T = unknown> {
  /** The uid of its vault. */
  readonly vault: string;
  readonly version: number;
  /** Whether the server's history no longer shows that this blob follows on the one that this client had seen. */
  readonly gap: boolean;
  readonly #raw: unknown;
  readonly #typed: Typed<T> | undefined;

  constructor(vault: string, raw: unknown, version: number, gap = false, typed?: Typed<T>) {
    this.vault = vault;
    this.version = version;
    this.gap = gap;
    this.#raw = raw;
    this.#typed = typed;
  }

  /** The value as it is stored, JSON or bytes. */
  get raw(): unknown {
    return this.#raw;
  }

  /** The value. If it does not fit the type of `typed`, that is a TypeMismatch; `raw` has it then. */
  get value(): T {
    const typed = this.#typed;
    if (!typed) return this.#raw as T;
    if ("problem" in typed) throw new TypeMismatch(this.vault, typed.problem, "blob of the vault");
    return typed.value;
  }

  /** The same blob with its value as this type. */
  async typed<U>(type: ValueType<U>): Promise<Blob<U>> {
    return new Blob(this.vault, this.#raw, this.version, this.gap, await decode(type, this.#raw));
  }
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
  await keyrings.update(core, (ring) => (ring.entry(uid)?.made === false ? ring.withEntry(uid, { made: true }) : undefined));
  return found;
}

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

/** Seal the vault's name and blob anew where they are of another name or generation; the vault's row. */
export async function updateWire(core: Core, opened: OpenVault): Promise<VaultRow> {
  let vault = opened;
  for (let attempt = 0; attempt < 10; attempt++) {
    const before = core.device.mark();
    const row = await core.session.send(requests.get(vault.uid));
    await checkRow(core, vault, row, before);
    const isOld = row.data !== null && blobLineage(row.data).generation !== newest(vault.keys).generation;
    if (row.name === vault.wire && !isOld) return row;
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
  if (!core.token) await keyrings.update(core, (ring) => (ring.entry(uid) ? ring.withoutVault(uid) : undefined));
  await core.session.sendOrDone(requests.remove(uid));
  core.device.forgetVault(uid);
}

/** Get the blob of a vault, if it has one. */
export async function getBlob(core: Core, opened: OpenVault): Promise<Blob | undefined> {
  const [vault, row, gap] = await currentRow(core, opened);
  const found = await toBlob(vault, row, gap);
  core.device.recordBlob(row);
  return found;
}

/** The blob of a vault's row, if it has one. */
export async function toBlob(vault: OpenVault, row: VaultRow, gap: boolean): Promise<Blob | undefined> {
  if (row.data === null) return undefined;
  return new Blob(vault.uid, toValue(await openBlob(vault.keys, row.name, row)), row.version, gap);
}

/** Another blob. `after` is the one that it follows on; without it, the one that was last read or written here. */
export async function putBlob(core: Core, vault: OpenVault, value: unknown, after?: Blob<unknown>): Promise<Blob> {
  if (after !== undefined) {
    if (!(after instanceof Blob)) {
      throw new Invalid({ after: `must be a Blob, as get and put return it, not ${typeof after}` });
    }
    if (after.vault !== vault.uid) throw new Invalid({ after: "must be a Blob of this vault, and is one of another" });
  }
  const content = toContent(value);
  const row = await keyrings.withNewest(core, () => putBlobOnce(core, vault, content, after));
  core.device.recordBlob(row);
  return new Blob(vault.uid, toValue(content), row.version);
}

async function putBlobOnce(core: Core, opened: OpenVault, content: Content, after?: Blob<unknown>): Promise<VaultRow> {
  const [vault, before] = await currentRow(core, opened);
  const { version, updatedAt } = before;
  if (after) {
    if (after.version !== version) throw new VaultConflict(version, updatedAt);
  } else if (before.data !== null && !(await mayReplace(core, vault, before, content))) {
    throw new VaultConflict(version, updatedAt, OTHER_BLOB);
  }
  const parent = await parentAfterBlob(before.data);
  const sealed = await sealBlob(vault.keys, before.name, version + 1, content, { parent });
  const mark = core.device.mark();
  const call = requests.put(vault.uid, { version }, sealed, vault.keys.keyring ?? undefined);
  const row = await core.session.send(call);
  await checkVault(core, vault, row, mark);
  if (row.version !== version + 1 || row.data !== sealed.data || row.salt !== sealed.salt) throw new Tampered(NOT_KEPT);
  return row;
}

/**
 * Whether the blob is the one that was last read or written here, or has the new content already.
 *
 * The contents are compared: a rename and a rotation seal the same content anew.
 */
async function mayReplace(core: Core, vault: OpenVault, before: VaultRow, content: Content): Promise<boolean> {
  const known = core.device.blob(vault.uid);
  if (known && known.data === before.data) return true;
  const there = await openBlob(vault.keys, before.name, before);
  if (isSame(there, content)) return true; // by an earlier attempt without a response, perhaps
  if (!known || known.data === null) return false;
  return isSame(await openBlob(vault.keys, known.name, known), there);
}

const isSame = (one: Content, other: Content): boolean => one.kind === other.kind && equal(one.data, other.data);

/** The vault with the name and the keys that it has by now, its row, and whether there is a gap before that. */
export async function currentRow(core: Core, opened: OpenVault): Promise<[OpenVault, VaultRow, boolean]> {
  let vault = await renewed(core, opened);
  const mark = core.device.mark();
  let row = await core.session.send(requests.get(vault.uid));
  if (core.token) {
    vault = await named(vault, row.name); // its owner may have renamed it
  } else if (!vault.wires.includes(row.name) || !isKnown(vault, row)) {
    await keyrings.reload(core); // another device may have renamed the vault, or rotated its key
    vault = await renewed(core, vault);
    if (!vault.wires.includes(row.name)) row = await updateWire(core, vault);
  }
  return [vault, row, await checkVault(core, vault, row, mark)];
}

/**
 * The vault of a token under the name that the server shows, if a key holder gave it that name.
 *
 * Whether names are sealed is the token's word. A name in the clear is the server's.
 */
export async function named(vault: OpenVault, wire: string): Promise<OpenVault> {
  if (isSealed(wire) !== vault.sealed) {
    throw new Tampered("The server shows the name of a vault in another way than the one that it was made in.");
  }
  const name = vault.sealed ? await openName(vault.keys, "vault", wire) : wire;
  return { ...vault, name, wire, wires: [wire] };
}

/** Whether there is a key for the vault's blob. */
const isKnown = ({ keys }: OpenVault, { data }: VaultRow): boolean =>
  data === null || blobLineage(data).generation <= newest(keys).generation;

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
async function fetchEntry(core: Core, entry: VaultEntry): Promise<OpenVault | undefined> {
  try {
    const [vault] = await currentRow(core, await openEntry(core, entry));
    return vault.name === entry.name ? vault : undefined;
  } catch (error) {
    if (error instanceof VaultNotFound) return undefined;
    throw error;
  }
}

async function make(core: Core, vault: OpenVault): Promise<void> {
  const mark = core.device.mark();
  let row: VaultRow;
  try {
    row = await core.session.send(requests.create(vault.uid, vault.wire));
  } catch (error) {
    if (!(error instanceof Invalid)) throw error; // a server of blobs takes no vault without one
    const blob = await sealBlob(vault.keys, vault.wire, 1, toContent(null));
    row = await core.session.send(requests.create(vault.uid, vault.wire, blob));
  }
  await checkVault(core, vault, row, mark);
  core.device.recordBlob(row);
}

/** A vault of the directory, with its keys. */
export async function openEntry(core: Core, { uid, name, sealed }: VaultEntry): Promise<OpenVault> {
  const keys = await core.keyring().vaultKeys(uid);
  const wires = sealed ? await Promise.all(keys.keys.map((key) => sealName(keys, key, "vault", name))) : [name];
  return { uid, name, wire: wires.at(-1) ?? name, sealed, keys, wires: wires.reverse() };
}

/** Remember the vault, if the server responded with it and nothing speaks against it; whether none can tell. */
export async function checkVault(core: Core, vault: OpenVault, row: VaultRow, mark: number): Promise<boolean> {
  if (!vault.wires.includes(row.name)) throw new Tampered(WRONG_VAULT);
  return checkRow(core, vault, row, mark);
}

async function checkRow(core: Core, vault: OpenVault, row: VaultRow, mark: number): Promise<boolean> {
  if (row.uid !== vault.uid) throw new Tampered(WRONG_VAULT);
  let gap = false;
  for (let known = core.device.vault(vault.uid), isFirst = true; isFirst || known; isFirst = false) {
    const [version, data] = known ? [known.version, known.data] : [0, null];
    if (row.data !== null && row.version >= version && (row.version !== version || row.data !== data)) {
      await openBlob(vault.keys, row.name, row); // before it is remembered, or anything is sealed to follow on it
    }
    if (data !== null && row.data !== null && row.version > version) {
      gap = await requireBlobDescent(core, row, [version, data]);
    }
    const now = core.device.vault(vault.uid);
    if (now === known) break; // otherwise another task has seen it meanwhile
    known = now;
  }
  core.device.recordVault(row, mark);
  return gap;
}

/** Refuse a newer blob that was made without knowing of the one that was seen; whether none can tell. */
export async function requireBlobDescent(core: Core, row: VaultRow, known: Link): Promise<boolean> {
  const descent = await blobDescent(core, row, known);
  if (descent === "forked") {
    throw new Tampered("The server shows a newer blob whose writer did not know of what this device has seen.");
  }
  return descent === "gap";
}

/** How a newer blob stands to the one that was seen; a rename alone does not change it. */
export async function blobDescent(core: Core, row: VaultRow, known: Link): Promise<Descent> {
  const data = row.data ?? "";
  if (data === known[1] || (await follows(data, known[1], blobLineage))) return "follows";
  const { versions } = await core.session.send(requests.blobVersions(row.uid));
  const history: Link[] = [];
  for (const { version } of versions) {
    if (version <= known[0]) continue;
    const blob = await core.session.send(requests.blobVersion(row.uid, version));
    history.push([version, blob.data]);
  }
  return trace([row.version, data], known, history, blobLineage);
}
