// Padding by Padmé, to at least 256 bytes.
import { Invalid } from "../errors.js";
import { type Bytes, isZero, must, number, readNumber } from "./encoding.js";

export const NOTHING = 0;
export const JSON_TEXT = 1;
export const RAW = 2;
const LEAST = 256;
const MOST = 2 ** 30;
const HEAD = 5; // kind of content, and its length in four bytes

/** What is sealed: its kind, and its bytes. */
export interface Content {
  readonly kind: number;
  readonly data: Bytes;
}

/** The length that this many bytes are padded to: at most twelve in a hundred more, from 256 on. */
export function paddedLength(length: number): number {
  if (length <= LEAST) return LEAST;
  const exponent = 31 - Math.clz32(length);
  const step = 2 ** (exponent - (32 - Math.clz32(exponent)));
  return Math.ceil(length / step) * step;
}

/** Content with its head and its padding. */
export function pad({ kind, data }: Content): Bytes {
  if (data.length > MOST) throw new Invalid({ value: `must be at most ${MOST} bytes, and has ${data.length}` });
  const padded = new Uint8Array(paddedLength(HEAD + data.length));
  padded[0] = kind;
  padded.set(number(data.length, 4), 1);
  padded.set(data, HEAD);
  return padded;
}

/** The content, if head, length and padding are exactly those that `pad` makes. */
export function unpad(padded: Bytes): Content {
  const kind = padded[0] ?? RAW + 1;
  const size = readNumber(padded.subarray(1, HEAD));
  const end = HEAD + size;
  must(size <= MOST && paddedLength(end) === padded.length && kind <= RAW);
  must(isZero(padded.subarray(end)) && (kind !== NOTHING || size === 0));
  return { kind, data: padded.slice(HEAD, end) };
}
