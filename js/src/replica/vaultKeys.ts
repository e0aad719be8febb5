// The keys and names of vaults, kept in the replica: those of a vault that was deleted elsewhere still open what waits here.
//
// Each vault of the directory is sealed under a key that follows from the account's storage seed. A keyring has the
// seeds of all generations, so a rotation on another device does not lock what was kept before it.
import { Refusal } from "../errors.js";
import { openBox, sealBox } from "../format/box.js";
import { readJson } from "../format/strictJson.js";
import { fromBase64, items, join, KEY, must, number, readGeneration, text, toBase64 } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import { deriveKey, type Generation, vaultKeys, type VaultKeys } from "../format/keys.js";
import { type Key, primitives } from "../format/primitives.js";
import { Secret } from "../format/secret.js";
import type { Core } from "../operations/core.js";
import type { Scope } from "../operations/documents.js";
import { RENAMED, type RenamedVault } from "./records.js";
import type { Tables } from "./tables.js";

const PURPOSE = "replica-vault";
const NAMES = "replica-renamed";
const IN_THE_CLEAR = "renamed vaults"; // of an earlier release

/** A vault of the replica, or what a token opens: its keys, if they are here, and its plaintext name. */
export interface Place {
  readonly scope: Scope | undefined;
  readonly name: string;
}

/** A vault whose keys are kept. */
export interface KeptVault {
  readonly uid: string;
  readonly name: string;
  readonly sealed: boolean;
  readonly floor: number;
  readonly secrets: readonly Generation[];
}

/** Keep the keys of every vault of the directory; those of others only as long as changes wait in them. */
export async function keepAll(tables: Tables, ring: Keyring): Promise<void> {
  const before = await keptVaults(tables, ring);
  for (const { uid, name, sealed, floor } of ring.vaults)
    await keep(tables, ring, { uid, name, sealed, floor, secrets: ring.secrets(uid) });
  for (const [uid, vault] of before) if (!ring.entry(uid)) await keep(tables, ring, vault);
  for (const { vault } of await tables.keptKeys()) {
    if (ring.isGone(vault) && !(await tables.entries(vault)).length) tables.dropKeys(vault);
  }
}

/** Keep the keys of one vault, sealed under the newest seed. `isNew`: the server does not have it yet. */
async function keep(
  tables: Tables,
  ring: Keyring,
  { uid, name, sealed, floor, secrets }: KeptVault,
  isNew = false,
): Promise<void> {
  const keys = secrets.map(([one, secret]) => [one, toBase64(secret.reveal())]);
  await tables.putKeys(uid, await seal(ring, PURPOSE, { name, sealed, floor, keys }, uid), isNew);
}

/** The vaults whose keys are kept and can be opened, by uid. */
export async function keptVaults(tables: Tables, ring: Keyring): Promise<Map<string, KeptVault>> {
  const found = new Map<string, KeptVault>();
  for (const { vault, sealed } of await tables.keptKeys()) {
    try {
      found.set(vault, await open(ring, vault, sealed));
    } catch (fault) {
      // The storage was damaged or changed: what is under these keys cannot be read any more.
      if (!(fault instanceof Refusal)) throw fault;
    }
  }
  return found;
}

/** Make a vault that the server does not have yet, with a key of its own. */
export async function createVault(
  tables: Tables,
  ring: Keyring,
  uid: string,
  name: string,
  sealed: boolean,
): Promise<KeptVault> {
  const made: KeptVault = { uid, name, sealed, floor: 1, secrets: [[1, new Secret(primitives().random(KEY))]] };
  await keep(tables, ring, made, true);
  return made;
}

/** The vaults that were made here and that the server does not have yet, in the order in which they were made. */
export async function createdVaults(tables: Tables, ring: Keyring): Promise<KeptVault[]> {
  const created = new Set((await tables.keptKeys()).filter(({ isNew }) => isNew).map(({ vault }) => vault));
  if (!created.size) return [];
  return [...(await keptVaults(tables, ring)).values()].filter(({ uid }) => created.has(uid));
}

/** The keys that follow from those that are kept. */
export const keysOf = (ring: Keyring, { uid, secrets, floor }: KeptVault): Promise<VaultKeys> =>
  vaultKeys(ring.account, uid, secrets, floor, ring.version);

/** The vaults that have got another name than was wanted, which may not be told yet. */
export async function renamed(tables: Tables, { ring }: Core): Promise<RenamedVault[]> {
  const sealed = await tables.fact(RENAMED);
  if (!ring || sealed === undefined) return [];
  return unseal<RenamedVault[]>(ring, NAMES, sealed).catch((fault: unknown) => {
    if (!(fault instanceof Refusal)) throw fault;
    return []; // the storage was damaged or changed
  });
}

/** Record that vaults have got another name than was wanted, until that is told. */
export async function addRenamed(tables: Tables, core: Core, vaults: readonly RenamedVault[]): Promise<void> {
  const found = new Map([...(await renamed(tables, core)), ...vaults].map((one) => [one.uid, one]));
  tables.setFact(RENAMED, await seal(core.keyring(), NAMES, [...found.values()]));
}

/** Seal what an earlier release has kept of such names in the clear. */
export async function sealRenamed(tables: Tables, core: Core): Promise<void> {
  const clear = await tables.fact(IN_THE_CLEAR);
  if (!core.ring || clear === undefined) return;
  await addRenamed(tables, core, JSON.parse(clear) as RenamedVault[]);
  tables.setFact(IN_THE_CLEAR, undefined);
}

async function open(ring: Keyring, uid: string, sealed: string): Promise<KeptVault> {
  const { keys, ...found } = await unseal<Omit<KeptVault, "uid" | "secrets"> & { keys: [number, string][] }>(
    ring,
    PURPOSE,
    sealed,
    uid,
  );
  return {
    ...found,
    uid,
    secrets: keys.map(([one, key]) => [one, new Secret(fromBase64(key))]),
  };
}

/** Seal something under the newest seed, for a purpose and a place. */
async function seal(ring: Keyring, purpose: string, value: unknown, ...place: string[]): Promise<string> {
  const { generation } = ring;
  const key = await storageKey(ring, purpose);
  const associated = items(purpose, ring.account, ...place, generation);
  const box = await sealBox(key, primitives().random(KEY), text(JSON.stringify(value)), associated);
  return toBase64(join(number(generation, 4), box));
}

/** What was sealed; Tampered where the storage was damaged or changed. */
async function unseal<T>(ring: Keyring, purpose: string, sealed: string, ...place: string[]): Promise<T> {
  const raw = fromBase64(sealed);
  const generation = readGeneration(raw.subarray(0, 4));
  // What this key has sealed, this client has written.
  return readJson(
    await openBox(
      await storageKey(ring, purpose, generation),
      raw.slice(4),
      items(purpose, ring.account, ...place, generation),
    ),
  ) as T;
}

/** The key that seals what a device stores for a purpose: of the newest generation, or of an earlier one. */
export async function storageKey(ring: Keyring, purpose: string, generation = ring.generation): Promise<Key> {
  const found = ring.reveal().body.storage.find((one) => one.generation === generation);
  must(found !== undefined);
  return deriveKey(await new Secret(fromBase64(found.seed)).key(), "HKDF", purpose);
}
