// Canonical encodings: unambiguous lists, strict base64 and base64url, bounded texts and numbers.
import { Invalid, Tampered, Unsupported } from "../errors.js";
import { primitives } from "./primitives.js";

/** Bytes as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;
/** Gives so many random bytes. */
export type Random = (length: number) => Bytes;

export const FORMAT = 2;
/** What proofs and sealed names begin with. */
export const PREFIX = "sr2.";
/** Bytes of every key, salt, commitment and digest. */
export const KEY = 32;
export const TAG = 16;
/** Bytes of a parent and of an account id. */
export const PARENT = 16;
export const NONE: Bytes = new Uint8Array(0);
export const NO_PARENT: Bytes = new Uint8Array(PARENT);
export const MOST_VERSION = Number.MAX_SAFE_INTEGER;
export const MOST_GENERATION = 2 ** 32 - 1;
export const AGAIN = "What was sealed does not open again; nothing was sent.";

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Refuse as tampered what is not so. */
export function must(good: boolean, message?: string): asserts good {
  if (!good) throw new Tampered(message);
}

const ANY_PREFIX = /^sr([1-9][0-9]{0,3})\./;

/** Refuse what was made in another format: what a newer or an older client made was not changed by anybody. */
export function checkFormat(number: number | undefined, otherwise?: string): void {
  must(number !== undefined && number > 0, otherwise);
  if (number > FORMAT) throw new Unsupported(`This was made by a newer client, in format ${number}; update this one.`);
  if (number < FORMAT)
    throw new Unsupported(
      `This was made by an older client, in format ${number}, which this one does not read: export the account with a client of that format, and import the file into a new account.`,
    );
}

/** Whether a text begins as the proofs and sealed names of some format do. */
export const hasPrefix = (value: string): boolean => ANY_PREFIX.test(value);

/** What follows on the prefix of a proof or of a sealed name; refused where it is another. */
export function withoutPrefix(value: string, otherwise?: string): string {
  checkFormat(Number(ANY_PREFIX.exec(value)?.[1] ?? 0), otherwise);
  return value.slice(PREFIX.length);
}

/** Byte strings, joined. */
export function join(...parts: readonly Uint8Array[]): Bytes {
  const made = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}

/** A text in UTF-8; a lone surrogate is refused. */
export const text = (value: string): Bytes => encoder.encode(checkedText(value, "text"));

/** The text behind UTF-8; null where it is none. */
export function fromText(raw: Uint8Array): string | null {
  try {
    return decoder.decode(raw);
  } catch {
    return null;
  }
}

/** An unsigned number in so many bytes, most significant first. */
export function number(value: number, size = 8): Bytes {
  const made = new Uint8Array(size);
  for (let at = size - 1, rest = value; at >= 0; at -= 1, rest = Math.floor(rest / 256)) made[at] = rest % 256;
  return made;
}

/** The number that bytes stand for; not exact above 2^53. */
export const readNumber = (raw: Uint8Array): number => raw.reduce((sum, byte) => sum * 256 + byte, 0);

/** An item of a list: a text, a number in eight bytes, or bytes. */
export type Item = string | number | Uint8Array;

/** A list as one byte string: each item is preceded by its length, so no two lists look alike. */
export function list(...parts: readonly Item[]): Bytes {
  return join(
    ...parts.flatMap((part) => {
      const raw = typeof part === "string" ? text(part) : typeof part === "number" ? number(part) : part;
      return [number(raw.length, 4), raw];
    }),
  );
}

const labels = new Map<string, Bytes>();

/** A list that begins with what it is for. */
export function items(label: string, ...parts: readonly Item[]): Bytes {
  const first = labels.get(label) ?? list(`strongroom/${FORMAT}/${label}`);
  labels.set(label, first);
  return join(first, list(...parts));
}

/** The byte strings of a list; null where it is none. */
export function splitItems(data: Bytes): Bytes[] | null {
  const parts: Bytes[] = [];
  for (let at = 0; at < data.length; ) {
    const start = at + 4;
    at = start + readNumber(data.subarray(at, start));
    if (at > data.length) return null;
    parts.push(data.slice(start, at));
  }
  return parts;
}

/** Whether two byte strings are the same, in a time that does not depend on where they differ. */
export function equal(one: Uint8Array, other: Uint8Array): boolean {
  let differs = one.length ^ other.length;
  for (let at = 0; at < one.length; at += 1) differs |= (one[at] ?? 0) ^ (other[at] ?? 0);
  return differs === 0;
}

/** Whether an object is one of JSON: no list, and not null. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether all bytes are zero. */
export const isZero = (raw: Uint8Array): boolean => raw.every((byte) => byte === 0);

/** The first 16 bytes of the SHA-256 of what a proof or base64 spells: what a row names its parent by. */
export async function short(value: string): Promise<Bytes> {
  const raw = value.startsWith(PREFIX) ? fromUrl(value.slice(PREFIX.length)) : fromBase64(value);
  return (await primitives().sha256(raw)).slice(0, PARENT);
}

/** The SHA-256 of a text. */
export const digest = (value: string): Promise<Bytes> => primitives().sha256(encoder.encode(value));

/** Whether a value is an integer in a range. */
const isIn = (value: unknown, most: number): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most;
/** Whether a value can be a version. */
export const isVersion = (value: unknown): value is number => isIn(value, MOST_VERSION);
/** Whether a value can be a generation. */
export const isGeneration = (value: unknown): value is number => isIn(value, MOST_GENERATION);

/** A generation from its four bytes. */
export function readGeneration(raw: Uint8Array): number {
  const value = readNumber(raw);
  must(isGeneration(value));
  return value;
}

/** What kind of value something is, for a sentence. */
const kindOf = (value: unknown): string => (value === null ? "null" : typeof value);

/** A text that UTF-8 can hold; anything else is the caller's mistake. */
export function checkedText(value: unknown, field: string): string {
  if (typeof value !== "string") throw new Invalid({ [field]: `must be a text (string), not ${kindOf(value)}` });
  if (!value.isWellFormed()) throw new Invalid({ [field]: "must be valid Unicode" });
  return value;
}

/** How many characters a text has: code points, not units of UTF-16. */
export const lengthOf = (value: string): number => [...value].length;

/** Whether a text holds a control character. */
export const hasControl = (value: string): boolean => CONTROL.test(value);

/** A name, collection or uid that the format can hold; anything else is the caller's mistake. */
export function checkedName(value: unknown, field: string): string {
  const name = checkedText(value, field);
  if (!name || lengthOf(name) > 255 || hasControl(name))
    throw new Invalid({ [field]: "must be 1 to 255 characters without control characters" });
  return name;
}

/** A uid as keys and associated data spell it: a UUID in lower case, any other text as it is. */
export const checkedUid = (value: unknown): string =>
  typeof value === "string" && UUID.test(value) ? value.toLowerCase() : checkedName(value, "uid");

/** An integer; anything else is the caller's mistake. */
export function checkedInteger(value: unknown, field: string): number {
  if (!Number.isInteger(value)) throw new Invalid({ [field]: `must be an integer, not ${kindOf(value)}` });
  return value as number;
}

/** A version that the format can hold; anything else is the caller's mistake. */
export function checkedVersion(value: unknown): number {
  if (!isVersion(value)) throw new Invalid({ version: "must be an integer from 1 to 2^53 - 1" });
  return value;
}

/** A cursor, as `cursor` of earlier changes gives it; anything else is the caller's mistake. */
export function checkedCursor(value: unknown): number {
  if (value !== 0 && !isVersion(checkedInteger(value, "cursor")))
    throw new Invalid({ cursor: "must be 0, or the cursor of earlier changes" });
  return value as number;
}

/** Whether texts or numbers ascend: texts by their code points, and none twice. */
export const ascend = (values: readonly (string | number)[]): boolean =>
  values.every((value, at) => at === 0 || compare(values[at - 1] as string | number, value) < 0);

/** The order of two texts by their code points, or of two numbers. */
export function compare(one: string | number, other: string | number): number {
  if (typeof one === "number") return one - Number(other);
  const [a, b] = [encoder.encode(one), encoder.encode(other as string)];
  const at = a.findIndex((byte, place) => byte !== b[place]);
  return at < 0 ? a.length - b.length : (a[at] as number) - (b[at] ?? -1);
}

/** base64 with padding: what the server keeps as `data` and `salt`. */
export function toBase64(raw: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < raw.length; at += 0x8000) binary += String.fromCharCode(...raw.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** The bytes behind base64. Only the one spelling that `toBase64` makes is taken. */
export function fromBase64(value: unknown): Bytes {
  let binary = "";
  try {
    if (typeof value === "string") binary = atob(value);
  } catch {
    // Not base64 at all: refused below.
  }
  must(btoa(binary) === value);
  const made = new Uint8Array(binary.length);
  for (let at = 0; at < made.length; at += 1) made[at] = binary.charCodeAt(at); // far quicker than Uint8Array.from
  return made;
}

/** base64url without padding: what stands in addresses, and what people copy. */
export const toUrl = (raw: Uint8Array): string =>
  toBase64(raw).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");

/** The bytes behind base64url. Only the one spelling that `toUrl` makes is taken. */
export function fromUrl(value: unknown): Bytes {
  must(typeof value === "string" && !/[+/=]/.test(value));
  const signs = value.replaceAll("-", "+").replaceAll("_", "/");
  return fromBase64(signs + "=".repeat(-signs.length & 3));
}
