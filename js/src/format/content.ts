// Serialisation of values: JSON or bytes.
import { Invalid } from "../errors.js";
import { NONE, text } from "./encoding.js";
import { type Content, JSON_TEXT, NOTHING, RAW } from "./padding.js";
import { CONTENT, isPortable, readJson } from "./strictJson.js";

/** No content. */
export const EMPTY: Content = { kind: NOTHING, data: NONE };
const TOO_DEEP = "is nested too deeply, or holds itself";

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
  if (value === null || typeof value === "boolean") return null;
  if (typeof value === "number" && !Number.isFinite(value)) return `has a number that is not finite${at}`;
  if (typeof value === "bigint" || (typeof value === "number" && !isPortable(value)))
    return `has an integer beyond 2^53 - 1${at}; store it as a text`;
  if (typeof value === "number") return null;
  if (typeof value === "string") return value.isWellFormed() ? null : `has a text that is not valid Unicode${at}`;
  if (depth === CONTENT.deepest && (Array.isArray(value) || isPlain(value))) return TOO_DEEP;
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
