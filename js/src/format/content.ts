// Serialisation of values: JSON or bytes.
import { Invalid } from "../errors.js";
import { fromText, must, NONE, text } from "./encoding.js";
import { type Content, JSON_TEXT, NOTHING, RAW } from "./padding.js";

/** No content. */
export const EMPTY: Content = { kind: NOTHING, data: NONE };
const DEEPEST = 500;
const TOO_DEEP = "is nested too deeply, or holds itself";
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** A value as what is sealed. Bytes stay bytes, everything else is JSON. */
export function toContent(value: unknown): Content {
  if (value instanceof ArrayBuffer) return { kind: RAW, data: new Uint8Array(value.slice(0)) };
  if (ArrayBuffer.isView(value))
    return { kind: RAW, data: new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice() };
  const fault = value === undefined ? "must be bytes, or a value that JSON can hold" : faultOf(value, "", 0);
  if (fault) throw new Invalid({ value: fault });
  return { kind: JSON_TEXT, data: text(JSON.stringify(value)) };
}

/** What JSON cannot hold of a value, and where. It names types and places, never contents. */
function faultOf(value: unknown, place: string, depth: number): string | null {
  const at = place && ` at ${place}`;
  if (depth > DEEPEST) return TOO_DEEP;
  if (value === null || typeof value === "boolean") return null;
  if (typeof value === "bigint" || (Number.isInteger(value) && isRounded(value as number)))
    return `has an integer beyond 2^53 - 1${at}; store it as a text`;
  if (typeof value === "number") return Number.isFinite(value) ? null : `has a number that is not finite${at}`;
  if (typeof value === "string") return value.isWellFormed() ? null : `has a text that is not valid Unicode${at}`;
  if (Array.isArray(value))
    return firstFault(value.length, (one) => faultOf(value[one], `${place}[${one}]`, depth + 1));
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return `has bytes${at}, which JSON cannot hold; store them as a value of their own, or in base64`;
  if (!isPlain(value)) return `has a ${nameOf(value)}${at}, which JSON cannot hold`;
  if (Object.getOwnPropertySymbols(value).length) return `has a key that is not a text but symbol${at}`;
  const members = Object.entries(value);
  return firstFault(members.length, (one) => {
    const [name, inner] = members[one] as [string, unknown];
    if (inner === undefined) return faultOf(name, place, depth); // as JSON.stringify: a member that is not there
    const shown = /^[A-Za-z_]\w{0,39}$/.test(name) ? name : "…";
    return faultOf(inner, `${place}['${shown}']`, depth + 1) ?? faultOf(name, place, depth);
  });
}

function firstFault(count: number, fault: (at: number) => string | null): string | null {
  for (let at = 0; at < count; at += 1) {
    const found = fault(at);
    if (found) return found;
  }
  return null;
}

/** Whether JSON would write a number as an integer that not every reader keeps. */
const isRounded = (value: number): boolean => !Number.isSafeInteger(value) && Math.abs(value) < 1e21;

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

const nameOf = (value: unknown): string =>
  typeof value === "object" ? String(value?.constructor?.name ?? "object") : typeof value;

/** The value that was sealed; null where there is none. */
export function toValue({ kind, data }: Content): unknown {
  if (kind === RAW) return data;
  return kind === NOTHING ? null : readJson(data);
}

/** A value from JSON in UTF-8; Tampered where it is none, or holds what not every reader takes. */
export function readJson(raw: Uint8Array, message = "What was sealed says that it is JSON, and is not."): unknown {
  const spelled = fromText(raw);
  let value: unknown;
  try {
    value = JSON.parse(spelled ?? "");
  } catch {
    must(false, message);
  }
  must(!mayBeUnsound(spelled ?? "") || isSound(value), message);
  return value;
}

/** Whether a text of JSON holds an escaped surrogate or a large exponent: then the value is looked at. */
const mayBeUnsound = (spelled: string): boolean => ESCAPED_SURROGATE.test(spelled) || /\d{3}/.test(spelled);

/** Whether all texts are valid Unicode and all numbers finite. */
function isSound(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  return Object.entries(value ?? {}).every(([name, inner]) => name.isWellFormed() && isSound(inner));
}
