// The key hierarchy. Vault keys are random and have generations; each key below one is derived from it.
//
// account key ─── keyring key
// vault key   ─┬─ blob key
//              ├─ names key
//              └─ collection key ─┬─ seal key
//                                 └─ proof key
import { Locked } from "../errors.js";
import { type Bytes, checkedName, type Item, items, KEY, NONE } from "./encoding.js";
import { type Key, primitives } from "./primitives.js";
import { Secret } from "./secret.js";

/** Bytes of an account id. */
export const ACCOUNT = 16;
const NEWER = "This was written with keys that are newer than yours; log in again, or ask for a new token.";
const OLDER =
  "This was written with keys of before a rotation, which this token does not carry; ask for a token with older keys.";

/** The bytes of a key for one purpose, below another key. */
export const derive = (key: Key, purpose: string, ...parts: readonly Item[]): Promise<Bytes> =>
  primitives().hkdf(key, NONE, items(purpose, ...parts), KEY);

/** A key for one purpose, below another key, that cannot be extracted. */
export const deriveKey = async (key: Key, use: "HKDF" | "HMAC", purpose: string): Promise<Key> =>
  primitives().key(use, await derive(key, purpose));

/** The keys that follow from the key of a collection in one generation. */
export interface CollectionKey {
  readonly generation: number;
  readonly sealing: Key;
  readonly proving: Key;
}

/** The keys of a collection, of every generation. `wires` are its names on the wire, the newest first. */
export interface CollectionKeys {
  readonly account: Bytes;
  readonly vault: string;
  readonly name: string;
  readonly wires: readonly [string, ...string[]];
  readonly keys: readonly CollectionKey[];
  /** The version of the keyring that they are from; null for those of a token. */
  readonly keyring: number | null;
  /** The lowest generation of a live row. */
  readonly floor: number;
}

/** The key of one vault in one generation. */
export interface VaultKey {
  readonly generation: number;
  readonly root: Key;
  readonly blob: Key;
  readonly names: Key;
}

/** The key of the sealed names of one vault in one generation: all that a token carries of an older one. */
export type NamesKey = Pick<VaultKey, "generation" | "names">;

/** The keys of one vault, of every generation in ascending order; those of a token may lack the oldest. */
export interface VaultKeys {
  readonly account: Bytes;
  readonly vault: string;
  readonly keys: readonly VaultKey[];
  /** The names keys of generations before `keys`. */
  readonly former: readonly NamesKey[];
  /** The version of the keyring that they are from; null for those of a token. */
  readonly keyring: number | null;
  /** The lowest generation of a live row. */
  readonly floor: number;
}

/** A key with its generation, as a keyring or a token carries it. */
export type Generation = readonly [generation: number, key: Secret];

/** The keys that follow from a collection key. */
export async function collectionKey([generation, secret]: Generation): Promise<CollectionKey> {
  const key = await secret.key();
  const [sealing, proving] = await Promise.all([deriveKey(key, "HKDF", "seal"), deriveKey(key, "HMAC", "proof")]);
  return { generation, sealing, proving };
}

/** The key of a collection, by the name that people use. */
export const collectionSecret = async (vaultKey: Key, name: string): Promise<Secret> =>
  new Secret(await derive(vaultKey, "collection", checkedName(name, "collection")));

/** The keys of a vault from those that a keyring or a token carries. */
export async function vaultKeys(
  account: Bytes,
  vault: string,
  secrets: readonly Generation[],
  floor: number,
  keyring: number | null = null,
): Promise<VaultKeys> {
  const keys = secrets.map(async ([generation, secret]) => {
    const root = await secret.key();
    const [blob, names] = await Promise.all([deriveKey(root, "HKDF", "blob"), deriveKey(root, "HKDF", "names")]);
    return { generation, root, blob, names };
  });
  return { account, vault, keys: await Promise.all(keys), former: [], keyring, floor };
}

/** The key that writers use. */
export function newest<K extends { readonly generation: number }>({ keys }: { readonly keys: readonly K[] }): K {
  const found = keys.at(-1);
  if (!found) throw new Locked();
  return found;
}

/** The key of a generation; Locked where it is not here. */
export function keyOf<K extends { readonly generation: number }>(
  { keys }: { readonly keys: readonly K[] },
  generation: number,
): K {
  const found = keys.find((key) => key.generation === generation);
  if (!found) throw new Locked(generation < (keys[0]?.generation ?? 0) ? OLDER : NEWER);
  return found;
}
