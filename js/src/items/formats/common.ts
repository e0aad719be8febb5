// What the formats share: limits, checks of what was read, and texts, times and folders of other programs.
import { Invalid } from "../../errors.js";
import { type Bytes, isObject } from "../../format/encoding.js";
import { Sha256 } from "../../format/sha256.js";
import { FileRefused } from "../errors.js";
import { fromStored, Misfit, toStored } from "../shapes.js";
import { first, quoted, strip } from "../text.js";
import type { Item } from "../types.js";
import { type FileData, type Found, type Password, Problem } from "./importTypes.js";

/** Of a text file, or of all that is read of a zip file. */
export const MOST_BYTES = 64 << 20;
/** Of a zip file itself. */
export const MOST_FILE_BYTES = 2 ** 30;
/** Of an item as JSON: encrypted, it must fit into a request. */
export const MOST_ITEM_BYTES = 4_000_000;
export const MOST_ATTACHMENT = 2_900_000;
const DEEPEST = 100;
/** Of an item, and in all paths of its folders together. */
export const MOST_FOLDERS = 100;
const LONGEST_FOLDERS = 16_384;
/** Bytes that are kept beside an item: they leave half of the room to it. */
export const MOST_BESIDES = MOST_ITEM_BYTES / 2;
const MOST_NAMES = 10;
/** Units of UTF-16 that become a text at a time. */
const PART = 8_192;
const LONGEST_TITLE = 60;

/** An object of JSON while it is made. */
export type Json = Record<string, unknown>;

export { type FileData, type Found, type Password, Problem };

/** Reads a file: its items, one after the other. */
export type Reader = (file: FileData, password?: Password) => AsyncIterable<Found>;

/** Writes items, each with the uid of its document; `now` is in seconds since 1970. */
export type Writer = (items: Iterable<readonly [string, Item]>, now: number) => Bytes;

/** A part of a file. */
export async function readPart(file: FileData, start: number, end: number): Promise<Bytes> {
  if (file instanceof Uint8Array) return new Uint8Array(file.subarray(start, end));
  return new Uint8Array(await file.slice(start, end).arrayBuffer());
}

export const sizeOf = (file: FileData): number => (file instanceof Uint8Array ? file.length : file.size);

/** The whole of a file; refused where it is larger than an export can be. */
export async function readAll(file: FileData, most = MOST_BYTES): Promise<Bytes> {
  if (sizeOf(file) > most) throw new FileRefused(`The file is larger than ${most >> 20} MiB; no export of items is.`);
  return readPart(file, 0, most);
}

/** A text in UTF-8. Bytes that are not UTF-8 become lone surrogates, which `checked` refuses with their item. */
export async function readText(file: FileData): Promise<string> {
  const data = await readAll(file);
  const mark = (data[0] ?? 0) * 256 + (data[1] ?? 0);
  if (mark !== 0xfffe && mark !== 0xfeff) return decoded(data);
  try {
    return new TextDecoder(mark === 0xfffe ? "utf-16le" : "utf-16be", { fatal: true }).decode(data);
  } catch {
    throw new FileRefused("The file says that it is UTF-16, and is not.");
  }
}

/** UTF-8, without a byte order mark. Each byte that is none becomes a lone surrogate. */
export function decoded(data: Bytes): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return decodedInParts(data[0] === 0xef && data[1] === 0xbb && data[2] === 0xbf ? data.subarray(3) : data);
  }
}

function decodedInParts(data: Bytes): string {
  const found: string[] = [];
  const units = new Uint16Array(PART);
  let count = 0;
  const add = (unit: number): void => {
    units[count] = unit;
    count += 1;
    if (count === PART) end();
  };
  const end = (): void => {
    found.push(String.fromCharCode.apply(null, units.subarray(0, count) as unknown as number[]));
    count = 0;
  };
  for (let at = 0; at < data.length; ) {
    const length = lengthAt(data, at);
    const [one = 0, two = 0, three = 0, four = 0] = [data[at], data[at + 1], data[at + 2], data[at + 3]];
    if (length === 0) add(0xdc00 + one);
    else if (length === 1) add(one);
    else if (length === 2) add(((one & 31) << 6) | (two & 63));
    else if (length === 3) add(((one & 15) << 12) | ((two & 63) << 6) | (three & 63));
    else {
      const point = (((one & 7) << 18) | ((two & 63) << 12) | ((three & 63) << 6) | (four & 63)) - 0x10000;
      add(0xd800 + (point >> 10));
      add(0xdc00 + (point & 0x3ff));
    }
    at += length || 1;
  }
  end();
  return found.join("");
}

/** How many bytes the character at a place has; 0 where there is none. */
function lengthAt(data: Bytes, at: number): number {
  const [one, two, three, four] = [data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0, data[at + 3] ?? 0];
  const follows = (byte: number): boolean => (byte & 0xc0) === 0x80;
  if (one < 0x80) return 1;
  if (one >= 0xc2 && one < 0xe0) return follows(two) ? 2 : 0;
  if (one >= 0xe0 && one < 0xf0) {
    const isGood = !(one === 0xe0 && two < 0xa0) && !(one === 0xed && two > 0x9f);
    return isGood && follows(two) && follows(three) ? 3 : 0;
  }
  if (one < 0xf0 || one > 0xf4) return 0;
  const isGood = !(one === 0xf0 && two < 0x90) && !(one === 0xf4 && two > 0x8f);
  return isGood && follows(two) && follows(three) && follows(four) ? 4 : 0;
}

/** A member of an object; what every object inherits is no member. */
export const get = (object: unknown, name: string): unknown =>
  isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;

/** Set a member of an object, whatever its name. */
export const put = (object: object, name: string | number, value: unknown): void =>
  void Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });

/** The same without some members. */
export const without = (object: Readonly<Json>, ...names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

/** Whether something does not fit: of an item, or of the file. */
export const isMisfit = (fault: unknown): boolean => fault instanceof Misfit || fault instanceof Invalid;

/** An id for what has none in its file, from what identifies it. */
export const sourceId = (...parts: readonly string[]): string => sourceIdOf(parts);

/** The same, from more parts than a call takes as arguments. */
export function sourceIdOf(parts: readonly string[]): string {
  const digest = new Sha256();
  for (const part of parts) {
    const encoded = encodedText(part);
    const head = new Uint8Array(8);
    new DataView(head.buffer).setUint32(4, encoded.length);
    digest.update(head).update(encoded);
  }
  return digest.hex.slice(0, 32);
}

/** UTF-8, in which a lone surrogate is three bytes. */
function encodedText(text: string): Bytes {
  const encoder = new TextEncoder();
  const encoded = encoder.encode(text);
  if (text.isWellFormed()) return encoded;
  let at = 0; // each lone surrogate was encoded as a replacement character, which has three bytes too
  for (const sign of text) {
    const number = sign.codePointAt(0) ?? 0;
    if (!sign.isWellFormed())
      encoded.set([0xe0 | (number >> 12), 0x80 | ((number >> 6) & 63), 0x80 | (number & 63)], at);
    at += number < 0x80 ? 1 : number < 0x800 ? 2 : number < 0x10000 ? 3 : 4;
  }
  return encoded;
}

/** A text in quotation marks, and cut, for a sentence. */
export const shortened = (text: string): string => quoted(first(text, LONGEST_TITLE));

/** An item with its source. */
export const sourced = (item: Json, format: string, id: string, rest: Json = {}): Item =>
  ({ ...item, source: { format, id, rest } }) as unknown as Item;

/** What was read, with a number after an id that is used already, and a problem in the place of what no document can hold. */
export async function* checked(found: AsyncIterable<Found> | Iterable<Found>): AsyncGenerator<Found> {
  const used = new Set<string>();
  const numbers = new Map<string, number>(); // the newest number of an id that occurs again
  const keyOf = (format: string, id: string): string => JSON.stringify([format, id]);
  for await (const one of found) {
    if (one instanceof Problem || !one.source) {
      yield one instanceof Problem ? one : checkedItem(one);
      continue;
    }
    const { format = "", id: given = "" } = one.source;
    const key = keyOf(format, given);
    let id = given;
    while (used.has(keyOf(format, id))) {
      const number = (numbers.get(key) ?? 1) + 1;
      numbers.set(key, number);
      id = `${given}#${number}`;
    }
    used.add(keyOf(format, id));
    yield checkedItem({ ...one, source: { ...one.source, id } });
  }
}

function checkedItem(item: Item): Found {
  const { fault, raw } = examined(item);
  return fault ? new Problem(`${named(item.title)} ${fault}, and was left out.`) : fromStored(raw);
}

/** The document of an item, and why no document can hold it; an empty text where one can. */
function examined(item: Item): { readonly fault: string; readonly raw?: unknown } {
  // before anything else, for many items may share a folder: what is long must not be looked at for each of them
  if (hasLongFolders(item.folders ?? [])) return { fault: "is in too many folders, or in ones with too long names" };
  try {
    const raw = toStored(item);
    return { fault: faultOf(raw, 0) || (sizeOfJson(raw) > MOST_ITEM_BYTES ? "is too large" : ""), raw };
  } catch (error) {
    if (!isMisfit(error)) throw error;
    return { fault: "has a member of a wrong type" };
  }
}

function hasLongFolders(folders: readonly string[]): boolean {
  const units = folders.reduce((sum, one) => sum + one.length, 0);
  if (folders.length > MOST_FOLDERS || units > 2 * LONGEST_FOLDERS) return true;
  return units > LONGEST_FOLDERS && folders.reduce((sum, one) => sum + Array.from(one).length, 0) > LONGEST_FOLDERS;
}

/** How many bytes of UTF-8 the JSON of a value has; exactly, where it may be more than an item can be. */
function sizeOfJson(raw: unknown): number {
  const text = JSON.stringify(raw);
  return text.length * 3 > MOST_BESIDES ? new TextEncoder().encode(text).length : text.length;
}

/** The item with what a file says besides; undefined where the item, alone or with that, fits into no document. */
export function keptBesides(item: Item, more: Json): Item | undefined {
  if (!item.source || examined(item).fault) return undefined;
  const found = { ...item, source: { ...item.source, rest: { ...item.source.rest, ...more } } } as Item;
  return examined(found).fault ? undefined : found;
}

/** How many bytes of JSON something takes that is to be kept besides; undefined where no document can hold it. */
export const sizeBesides = (kept: unknown): number | undefined => (faultOf(kept, 0) ? undefined : sizeOfJson(kept));

/** Whether something can be kept besides. */
export const fitsBesides = (kept: unknown): boolean => (sizeBesides(kept) ?? Infinity) <= MOST_BESIDES;

/** Whether a value says nothing. */
export const isEmpty = (value: unknown): boolean =>
  !value || (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0);

/** A sentence for members of a file that no item has a place for. */
export function* unplaced(holder: string, raw: Readonly<Json>, known: readonly string[]): Generator<Problem> {
  const names = Object.entries(raw)
    .filter(([name, value]) => !known.includes(name) && !isEmpty(value))
    .map(([name]) => name);
  if (!names.length) return;
  const told = names.slice(0, MOST_NAMES).map(shortened).join(", ");
  const more = names.length > MOST_NAMES ? ` and ${grouped(names.length - MOST_NAMES)} more` : "";
  yield new Problem(`${holder} has what no item has a place for; it was left out: ${told}${more}.`);
}

/** A number with commas, for a sentence. */
export const grouped = (count: number): string => count.toLocaleString("en-US");

function faultOf(value: unknown, depth: number): string {
  if (depth > DEEPEST) return "is nested too deeply";
  if (typeof value === "string") return value.isWellFormed() ? "" : "has text that is not valid Unicode";
  if (typeof value === "bigint") return "has a number that is too large";
  if (typeof value === "number") return Number.isFinite(value) ? "" : "has a number that is not finite";
  if (typeof value !== "object" || value === null) return "";
  const inner = Array.isArray(value) ? (value as unknown[]) : [...Object.keys(value), ...Object.values(value as Json)];
  for (const one of inner) {
    const fault = faultOf(one, depth + 1);
    if (fault) return fault;
  }
  return "";
}

/** An item in a sentence: by its title, or by its place in the file. */
export function named(title: unknown, number?: number): string {
  if (typeof title === "string" && strip(title)) return `The item ${quoted(first(strip(title), LONGEST_TITLE))}`;
  return number === undefined ? "An item without a title" : `The item number ${number}`;
}

/** A text of another program: null is an empty one, and a number is spelled. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return spelledNumber(value);
  throw new Misfit("Expected `str`");
}

/** A number as Python spells it. */
export function spelledNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Number.isSafeInteger(value)) return String(value);
  const [digits = "", exponent = "0"] = value.toExponential().split("e");
  const size = Number(exponent);
  if (size >= -4 && size < 16) return Number.isInteger(value) ? `${value}.0` : plainNumber(digits, size);
  return `${digits}e${size < 0 ? "-" : "+"}${String(Math.abs(size)).padStart(2, "0")}`;
}

/** The digits of a number with an exponent, without one. */
function plainNumber(digits: string, size: number): string {
  if (size >= 0) return String(Number(`${digits}e${size}`));
  const sign = digits.startsWith("-") ? "-" : "";
  return `${sign}0.${"0".repeat(-size - 1)}${digits.replace(/[-.]/g, "")}`;
}

/** A list of another program: null is an empty one. */
export function itemsOf(value: unknown): unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Misfit("Expected `array`");
  return value;
}

/** An object of another program: null is an empty one. */
export function membersOf(value: unknown): Readonly<Json> {
  if (value === null || value === undefined) return {};
  if (!isObject(value)) throw new Misfit("Expected `object`");
  return value;
}

/** A list, or an empty one where it is something else. */
export const listed = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The path of a folder, by the names of it and of those around it. */
export const folder = (...names: readonly string[]): string =>
  names.map((name) => name.replaceAll("%", "%25").replaceAll("/", "%2F")).join("/");

/** The path of a folder in another. One that is too long is cut, and stays too long. */
export const innerFolder = (path: string, name: string): string =>
  cutFolder(path ? `${path}/${folder(name)}` : folder(name));

/** The path of a folder. One that is too long is cut, and stays too long. */
export const cutFolder = (path: string): string => path.slice(0, 2 * LONGEST_FOLDERS + 2);

/** The names in the path of a folder. */
export const folderNames = (path: string): string[] =>
  path.split("/").map((name) => name.replaceAll("%2F", "/").replaceAll("%25", "%"));

const WHEN = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|([+-])(\d\d):(\d\d))$/;

/** A time in ISO 8601, or in seconds, as seconds since 1970; undefined where it is none. */
export function seconds(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  const match = typeof value === "string" ? WHEN.exec(value) : null;
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const [, , , , , , , fraction = "", sign = "+", hours = "0", minutes = "0"] = match;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isDate = year > 0 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isDate || hour > 23 || minute > 59 || second > 59 || Number(hours) > 23 || Number(minutes) > 59)
    return undefined;
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -60 : 60);
  return Math.trunc(date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset + Number(`0${fraction}`)) + 0;
}

/** Seconds since 1970 as a date, YYYY-MM-DD; undefined where it is none that can be written. */
export function isoDate(value: number): string | undefined {
  const date = new Date(value * 1000);
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9999)) return undefined;
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${year}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
}

/** Seconds since 1970 as Bitwarden writes a time. */
export function isoTime(value: number): string {
  const date = isoDate(value);
  return date === undefined
    ? "1970-01-01T00:00:00.000Z"
    : `${date}T${new Date(value * 1000).toISOString().slice(-13, -5)}.000Z`;
}
