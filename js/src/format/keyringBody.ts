// The body of a keyring in JSON, checked. Members that this client does not know are kept as they were read.
import { Invalid, Unsupported } from "../errors.js";
import {
  ascend,
  type Bytes,
  checkedName,
  checkedUid,
  equal,
  fromBase64,
  isGeneration,
  isObject,
  isVersion,
  KEY,
  must,
  PARENT,
  text,
} from "./encoding.js";
import { type Content, JSON_TEXT } from "./padding.js";
import { passkeyOfSlot } from "./passkey.js";
import { KEYRING, readJson } from "./strictJson.js";

export const SLOTS = 8;
export const SLOT_ID = 16; // bytes
export const MOST_GONE = 1000;
export const MOST_PAST = 100;
/** In `must` once a floor was raised: a client that does not know it would believe too much. */
export const FLOOR = "floor";
export const UNREADABLE = "The server's keyring was not made with your keys.";

/** A used slot: the public key that it is sealed to, and its associated data. */
export interface Slot {
  readonly slot: number;
  readonly type: string;
  readonly id: string;
  readonly public: string | null;
  readonly associated: string;
}

/** The account's own key pairs of one generation: an Ed25519 seed and an X25519 private key. */
interface Identity {
  readonly generation: number;
  readonly sign: string;
  readonly agree: string;
}

/** What the keys of a device's own storage follow from, in one generation of the account. */
interface StorageSeed {
  readonly generation: number;
  readonly seed: string;
}

/** A key of a vault in one generation. */
interface VaultKeyEntry {
  readonly generation: number;
  readonly key: string;
}

/** A vault in the directory, with its keys. */
export interface Vault {
  readonly uid: string;
  readonly name: string;
  readonly sealed: boolean;
  readonly made: boolean;
  readonly floor: number;
  readonly keys: readonly VaultKeyEntry[];
}

/** A vault that was deleted, and the keyring's version at which it was. */
export interface Gone {
  readonly uid: string;
  readonly version: number;
}

/** A keyring of another branch that a merge has joined, by its version and the beginning of its SHA-256. */
export interface MergedKeyring {
  readonly version: number;
  readonly digest: string;
}

/** What is sealed in the body of a keyring: secrets are in it. */
export interface Body {
  readonly account: string;
  readonly slots: readonly Slot[];
  readonly recovery: string | null;
  readonly identity: readonly Identity[];
  readonly storage: readonly StorageSeed[];
  readonly vaults: readonly Vault[];
  readonly gone: readonly Gone[];
  readonly past: readonly string[];
  /** Keyrings of other branches that this one was made knowing of. */
  readonly merged: readonly MergedKeyring[];
  readonly must: readonly string[];
}

/** What a keyring's head says of its body. */
export interface Head {
  readonly account: Bytes;
  readonly version: number;
  readonly generation: number;
  readonly previous: Bytes;
}

type Check<T> = (value: unknown) => value is T;
const isText: Check<string> = (value): value is string => typeof value === "string";
const isFlag: Check<boolean> = (value): value is boolean => typeof value === "boolean";
const isInteger: Check<number> = (value): value is number => Number.isSafeInteger(value);
const isBase64 =
  (length?: number): Check<string> =>
  (value): value is string => {
    const raw = fromBase64(value);
    return length === undefined || raw.length === length;
  };
const orNull =
  <T>(check: Check<T>): Check<T | null> =>
  (value): value is T | null =>
    value === null || check(value);
const isList =
  <T>(check: Check<T>): Check<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.every(check);
/** Members that must be there, each as it must be. Others are not looked at. */
const isRecord =
  <T>(members: { readonly [M in keyof T]: Check<T[M]> }): Check<T> =>
  (value): value is T =>
    isObject(value) && Object.entries<Check<unknown>>(members).every(([name, check]) => check(value[name]));

const isKey = isBase64(KEY);
const isUid: Check<string> = (value): value is string => checkedUid(value) === value;
const MEMBERS: { readonly [M in keyof Body]: Check<Body[M]> } = {
  account: isBase64(),
  slots: isList(
    isRecord<Slot>({
      slot: (value): value is number => isInteger(value) && value >= 0 && value < SLOTS,
      type: (value): value is string => isText(value) && value !== "",
      id: isBase64(SLOT_ID),
      public: orNull(isKey),
      associated: isBase64(),
    }),
  ),
  recovery: orNull(isKey),
  identity: isList(isRecord<Identity>({ generation: isGeneration, sign: isKey, agree: isKey })),
  storage: isList(isRecord<StorageSeed>({ generation: isGeneration, seed: isKey })),
  vaults: isList(
    isRecord<Vault>({
      uid: isUid,
      name: (value): value is string => checkedName(value, "name") === value,
      sealed: isFlag,
      made: isFlag,
      floor: isGeneration,
      keys: isList(isRecord<VaultKeyEntry>({ generation: isGeneration, key: isKey })),
    }),
  ),
  gone: isList(isRecord<Gone>({ uid: isUid, version: isVersion })),
  past: isList(isBase64(PARENT)),
  merged: isList(isRecord<MergedKeyring>({ version: isVersion, digest: isBase64(PARENT) })),
  must: isList(isText),
};
const isBody = isRecord<Body>(MEMBERS);

/** A body as the content of a box. */
export const encodeBody = (body: Body): Content => ({ kind: JSON_TEXT, data: text(JSON.stringify(body)) });

type Tree = Record<string, unknown>;
/** Whether two values have the same members, where one that is undefined is none. */
export const isSame = (one: unknown, other: unknown): boolean =>
  one === other ||
  (Object(one) === one &&
    Object(other) === other &&
    Object.keys({ ...(one as Tree), ...(other as Tree) }).every((name) =>
      isSame((one as Tree)[name], (other as Tree)[name]),
    ));

/** A body, checked against the head of its keyring; whatever is wrong with it is one refusal. */
export function decodeBody(content: Content, head: Head): Body {
  must(content.kind === JSON_TEXT, UNREADABLE);
  const whole = readJson(content.data, UNREADABLE, KEYRING);
  must(isObject(whole) && isList(isText)(whole.must), UNREADABLE);
  const unknown = (whole.must as string[]).find((name) => name !== FLOOR && !Object.hasOwn(MEMBERS, name));
  if (unknown !== undefined)
    throw new Unsupported(`This account uses something that this client does not know: ${unknown}.`);
  try {
    must(isBody(whole) && isConsistent(whole, head), UNREADABLE);
    return whole;
  } catch (fault) {
    must(!(fault instanceof Invalid), UNREADABLE);
    throw fault;
  }
}

const areDifferent = (values: readonly string[]): boolean => new Set(values).size === values.length;

const generationsOf = (list: readonly { readonly generation: number }[]): number[] =>
  list.map(({ generation }) => generation);

/** Whether the parts of a body fit each other and the keyring's head. */
function isConsistent(body: Body, head: Head): boolean {
  const { account, slots, recovery, identity, storage, vaults, gone, past, merged } = body;
  const uids = vaults.map(({ uid }) => uid);
  const count = (type: string): number => slots.filter((slot) => slot.type === type).length;
  return (
    ascend(slots.map(({ slot }) => slot)) &&
    ascend(generationsOf(identity)) &&
    isSame(generationsOf(storage), generationsOf(identity)) &&
    ascend(uids) &&
    ascend(gone.map(({ uid }) => uid)) &&
    vaults.every(({ keys, floor }) => floor <= (keys.at(-1)?.generation ?? 0) && ascend(generationsOf(keys))) &&
    areDifferent(vaults.map(({ name }) => name)) &&
    areDifferent(slots.map(({ id }) => id)) &&
    areDifferent(slots.flatMap(({ type, associated }) => (type === "passkey" ? [associated] : []))) &&
    slots.every(
      (slot) =>
        (slot.public === null) === (slot.type === "password") &&
        (slot.type !== "passkey" || passkeyOfSlot(fromBase64(slot.associated), head.account) !== null),
    ) &&
    count("password") <= 1 &&
    count("recovery") === (recovery === null ? 0 : 1) &&
    gone.length <= MOST_GONE &&
    gone.every(({ uid, version }) => !uids.includes(uid) && version <= head.version) &&
    equal(fromBase64(account), head.account) &&
    identity.at(-1)?.generation === head.generation &&
    past.length === Math.min(head.version - 1, MOST_PAST) &&
    merged.length <= MOST_PAST &&
    areDifferent(merged.map(({ version, digest }) => version + digest)) &&
    merged.every(
      ({ version, digest }) =>
        version < head.version &&
        version >= head.version - past.length &&
        past.at(version - head.version) !== digest &&
        body.must.includes("merged"),
    ) &&
    (past.length === 0 || equal(fromBase64(past.at(-1)), head.previous.subarray(0, PARENT)))
  );
}
