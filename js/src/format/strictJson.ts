// JSON as every reader of the format takes it: bounded depth, numbers that are the same everywhere, no member lost.
import { fromText, must } from "./encoding.js";

/** How deep objects and lists may be nested, which numbers are taken, and whether all members are kept. */
export interface JsonRules {
  readonly deepest: number;
  readonly takes: (value: number) => boolean;
  /** Members are written again as they were read: then none may stand twice. */
  readonly kept?: boolean;
}

/** Whether a number is below 2^53 in magnitude. */
const isExact = (value: number): boolean => Math.abs(value) <= Number.MAX_SAFE_INTEGER;
/** Whether no program writes a number as an integer that another reads as a different one: 10^21 has an exponent. */
export const isPortable = (value: number): boolean =>
  isExact(value) || (Number.isFinite(value) && Math.abs(value) >= 1e21);

export const CONTENT: JsonRules = { deepest: 500, takes: isPortable };
export const KEYRING: JsonRules = { deepest: 32, takes: isExact, kept: true };
export const DESCRIPTOR: JsonRules = { deepest: 32, takes: Number.isFinite, kept: true };

/** A value from JSON, as text or in UTF-8; Tampered where it is none, or breaks one of the rules. */
export function readJson(
  raw: Uint8Array | string,
  message = "What was sealed says that it is JSON, and is not.",
  { deepest, takes, kept }: JsonRules = CONTENT,
): unknown {
  const spelled = typeof raw === "string" ? raw : (fromText(raw) ?? "");
  let value: unknown;
  let members = 0;
  try {
    value = JSON.parse(spelled);
  } catch {
    must(false, message);
  }
  const check = (one: unknown, depth: number): void => {
    if (typeof one === "string") must(one.isWellFormed(), message);
    if (typeof one === "number") must(takes(one), message);
    if (typeof one !== "object" || one === null) return;
    must(depth < deepest, message);
    for (const [name, inner] of Object.entries(one)) {
      check(name, depth);
      check(inner, depth + 1);
      if (!Array.isArray(one)) members += 1;
    }
  };
  check(value, 0);
  // Of a member that stands twice, the parser keeps one.
  must(!kept || spelled.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, "").split(":").length === members + 1, message);
  return value;
}
