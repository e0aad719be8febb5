// JSON that is not believed: bounded in depth and in parts, and with large integers as they are.
import type { Bytes } from "../../format/encoding.js";
import { compare } from "../../format/encoding.js";
import { FileRefused } from "../errors.js";
import { quoted } from "../text.js";
import { decoded, sourceId, spelledNumber } from "./common.js";

/** Of objects and lists, and of quotation marks: what is small in a file takes much memory. */
const MOST_OBJECTS = 2_000_000;
const MOST_QUOTES = 12_000_000;
const DEEPEST = 1_000;
const [QUOTE, BACKSLASH, OPEN, CLOSE, BEGIN, END, ZERO, NINE] = [34, 92, 91, 93, 123, 125, 48, 57];
/** Digits from which on an integer may be one that numbers of JavaScript do not hold. */
const MANY_DIGITS = 16;
const MOST_DIGITS = 4_300;
const NOT_WHOLE = "The file is not whole JSON.";

/** JSON of any encoding, or a sentence. Integers that are too large for a number are of the type bigint. */
export function parseJson(data: Bytes): unknown {
  let [objects, quotes] = [0, 0];
  for (const byte of data) {
    if (byte === BEGIN || byte === OPEN) objects += 1;
    else if (byte === QUOTE) quotes += 1;
  }
  if (objects > MOST_OBJECTS || quotes > MOST_QUOTES) throw new FileRefused("The file has too many parts.");
  const text = decoded(data);
  const large = largeIntegers(text);
  const mark = `${crypto.randomUUID()} `; // no text of the file begins with it
  try {
    return JSON.parse(marked(text, large, mark), large.length ? unmarked(mark) : undefined) as unknown;
  } catch {
    throw new FileRefused(NOT_WHOLE);
  }
}

/** Where integers are that may be too large for a number; what is nested too deeply is refused. */
function largeIntegers(text: string): [number, number][] {
  const found: [number, number][] = [];
  let [depth, digits, isText] = [0, 0, false];
  for (let at = 0; at <= text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isText = false;
      continue;
    }
    if (code >= ZERO && code <= NINE) {
      digits += 1;
      continue;
    }
    if (digits >= MANY_DIGITS && isInteger(text, at - digits, at)) found.push([at - digits, at]);
    if (digits > MOST_DIGITS) throw new FileRefused(NOT_WHOLE);
    digits = 0;
    if (code === QUOTE) isText = true;
    else if (code === OPEN || code === BEGIN) depth += 1;
    else if (code === CLOSE || code === END) depth -= 1;
    if (depth > DEEPEST) throw new FileRefused("The file is nested too deeply.");
  }
  return found;
}

/** Whether digits are a whole number of JSON, and not a part of one. */
function isInteger(text: string, start: number, end: number): boolean {
  return (
    text[start] !== "0" &&
    !/[.eE]/.test(text[end] ?? "") &&
    !/[.eE][+-]?$|\+$/.test(text.slice(Math.max(0, start - 2), start))
  );
}

/** The text with texts in the places of large integers, which begin with a mark. */
function marked(text: string, places: readonly [number, number][], mark: string): string {
  if (!places.length) return text;
  let at = 0;
  const parts = places.map(([start, end]) => {
    const sign = text[start - 1] === "-" ? 1 : 0;
    const before = text.slice(at, start - sign);
    at = end;
    return `${before}"${mark}${text.slice(start - sign, end)}"`;
  });
  return parts.join("") + text.slice(at);
}

const unmarked =
  (mark: string) =>
  (_name: string, value: unknown): unknown => {
    if (typeof value !== "string" || !value.startsWith(mark)) return value;
    const number = Number(value.slice(mark.length));
    return Number.isSafeInteger(number) ? number : BigInt(value.slice(mark.length));
  };

/** An id for an object without one, from all that it has. */
export const contentId = (raw: unknown): string => sourceId(sortedJson(raw));

/** JSON as Python writes it, in ASCII and with sorted members. */
function sortedJson(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value).replace(
      /[\u007f-\uffff]/g,
      (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  if (typeof value === "number")
    return { inf: "Infinity", "-inf": "-Infinity", nan: "NaN" }[spelledNumber(value)] ?? spelledNumber(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(", ")}]`;
  const members = Object.entries(value).sort(([one], [other]) => compare(one, other));
  return `{${members.map(([name, inner]) => `${sortedJson(name)}: ${sortedJson(inner)}`).join(", ")}}`;
}

/** A value as Python spells it in a text. */
export function spelled(value: unknown): string {
  if (typeof value === "string") return value;
  return shown(value);
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return "None";
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return spelledNumber(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  return `{${Object.entries(value)
    .map(([name, inner]) => `${shown(name)}: ${shown(inner)}`)
    .join(", ")}}`;
}
