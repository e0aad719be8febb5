// Sealed names: the same name is always sealed to the same text, so that the server can find it without reading it.
//
// sealed = "sr2." ‖ base64url(generation (4) ‖ digest (32) ‖ ciphertext ‖ tag (16))
import { Invalid, Refusal } from "../errors.js";
import {
  AGAIN,
  type Bytes,
  checkedName,
  equal,
  fromText,
  fromUrl,
  hasPrefix,
  isZero,
  items,
  join,
  KEY,
  list,
  must,
  NONE,
  number,
  PREFIX,
  readGeneration,
  TAG,
  text,
  toUrl,
  withoutPrefix,
} from "./encoding.js";
import { collectionKey, collectionSecret, type CollectionKeys, keyOf, type NamesKey, type VaultKeys } from "./keys.js";
import { type Key, primitives } from "./primitives.js";

/** Bytes of a name that can be sealed. */
export const LONGEST = 127;
const LONGEST_COLLECTION = 512; // bytes of one on the wire
const STEP = 32;
const LABEL = { vault: "vault-name", collection: "collection-name" } as const;

/** What a name is of. */
export type NameOf = keyof typeof LABEL;

/** Whether a name on the wire is a sealed one, of this format or of another. */
export const isSealed = hasPrefix;

/** A name to be used as it is: it must not look like a sealed one. */
export function plainName(name: unknown, field = "name"): string {
  const checked = checkedName(name, field);
  if (isSealed(checked))
    throw new Invalid({ [field]: `must not begin with ${PREFIX}, nor with another number in its place` });
  if (field === "collection" && text(checked).length > LONGEST_COLLECTION)
    throw new Invalid({ [field]: `must be at most ${LONGEST_COLLECTION} bytes in UTF-8` });
  return checked;
}

/** A new name of a vault, if it can be used; a name that is to be sealed must not be too long for that. */
export function checkedVaultName(name: unknown, sealed: boolean): string {
  const checked = plainName(name);
  if (sealed) requireShort(checked);
  return checked;
}

function requireShort(name: string): Bytes {
  const raw = text(name);
  if (raw.length > LONGEST) throw new Invalid({ name: `must be at most ${LONGEST} bytes in UTF-8 to be sealed` });
  return raw;
}

const place = ({ account, vault }: VaultKeys, of: NameOf): Bytes => items(LABEL[of], account, vault);
/** What seals names, of every generation in ascending order. */
const naming = ({ former, keys }: VaultKeys): readonly NamesKey[] => [...former, ...keys];
const paddedLength = (length: number): number => Math.ceil((1 + length) / STEP) * STEP;

async function digestOf(names: Key, where: Bytes, padded: Bytes): Promise<Bytes> {
  const key = await primitives().key("HMAC", await primitives().hkdf(names, NONE, items("name-digest"), KEY));
  return primitives().hmac(key, join(where, list(padded)));
}

/** A name as the server sees it; in another vault, and in another generation, it looks different. */
export async function sealName(keys: VaultKeys, key: NamesKey, of: NameOf, name: string): Promise<string> {
  const raw = requireShort(plainName(name, of === "vault" ? "name" : "collection"));
  const padded = new Uint8Array(paddedLength(raw.length));
  padded[0] = raw.length;
  padded.set(raw, 1);
  const where = place(keys, of);
  const digest = await digestOf(key.names, where, padded);
  const cipher = await primitives().hkdf(key.names, digest, items("name-box"), KEY);
  const box = await primitives().encrypt(cipher, padded, where);
  const sealed = PREFIX + toUrl(join(number(key.generation, 4), digest, box));
  must((await openName(keys, of, sealed)) === name, AGAIN);
  return sealed;
}

/** A name as people see it. */
export async function openName(keys: VaultKeys, of: NameOf, sealed: string): Promise<string> {
  const raw = fromUrl(withoutPrefix(sealed));
  must(raw.length >= 4 + KEY + STEP + TAG);
  const { names } = keyOf({ keys: naming(keys) }, readGeneration(raw.subarray(0, 4)));
  const [where, digest] = [place(keys, of), raw.slice(4, 4 + KEY)];
  const cipher = await primitives().hkdf(names, digest, items("name-box"), KEY);
  const padded = await primitives().decrypt(cipher, raw.slice(4 + KEY), where);
  must(padded !== null && equal(await digestOf(names, where, padded), digest));
  const length = padded[0] ?? 0;
  must(length <= LONGEST && padded.length === paddedLength(length) && isZero(padded.subarray(1 + length)));
  const name = fromText(padded.subarray(1, 1 + length));
  try {
    return plainName(name);
  } catch (fault) {
    must(!(fault instanceof Refusal));
    throw fault;
  }
}

/** The keys of a collection of every generation, and all of its names on the wire. */
export async function collectionKeys(keys: VaultKeys, name: string, sealed: boolean): Promise<CollectionKeys> {
  const wires = sealed
    ? await Promise.all(naming(keys).map((key) => sealName(keys, key, "collection", name)))
    : [plainName(name, "collection")];
  const made = keys.keys.map(async (key) => collectionKey([key.generation, await collectionSecret(key.root, name)]));
  return {
    account: keys.account,
    vault: keys.vault,
    name,
    wires: wires.reverse() as [string, ...string[]],
    keys: await Promise.all(made),
    keyring: keys.keyring,
    floor: keys.floor,
  };
}
