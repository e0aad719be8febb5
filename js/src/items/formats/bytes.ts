// Base64 and UUIDs as other programs spell them.
import { type Bytes, toUrl } from "../../format/encoding.js";
import { strip } from "../text.js";

/** Bytes in base64url without padding, as CXF has them. */
export const b64url = toUrl;

/** The bytes that base64url spells; undefined where it is none. */
export function fromB64url(text: string): Bytes | undefined {
  return /^[A-Za-z0-9_-]*$/.test(text)
    ? fromBase64(text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat(-text.length & 3))
    : undefined;
}

/** The bytes that base64 with padding spells; undefined where it is none. */
export function fromBase64(text: string): Bytes | undefined {
  if (text.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
}

const PART = 0x8000;

/** Bytes in base64, for files of some MB. */
export function toBase64(raw: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < raw.length; at += PART)
    binary += String.fromCharCode.apply(null, raw.subarray(at, at + PART) as unknown as number[]);
  return btoa(binary);
}

export const fromHex = (text: string): Bytes => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (raw: Uint8Array): string => Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes of a UUID; undefined where a text is none. */
export function uuidBytes(text: string): Bytes | undefined {
  const plain = text.replaceAll("urn:", "").replaceAll("uuid:", "");
  const digits = strip(plain, /[{}]/).replaceAll("-", "");
  return /^[0-9A-Fa-f]{32}$/.test(digits) ? fromHex(digits) : undefined;
}

/** A UUID as a text. */
export function uuidText(raw: Uint8Array): string {
  const digits = toHex(raw);
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    "-",
  );
}

/** A UUID of the version 4 from 32 hexadecimal digits. */
export function uuidFrom(digits: string): string {
  const raw = fromHex(digits);
  raw[6] = ((raw[6] ?? 0) & 0x0f) | 0x40;
  raw[8] = ((raw[8] ?? 0) & 0x3f) | 0x80;
  return uuidText(raw);
}
