// A zip file that is not believed: sizes are counted while it is read, and names never become paths.
import { type Bytes, fromText } from "../../format/encoding.js";
import { FileRefused } from "../errors.js";
import { type FileData, MOST_BYTES, MOST_FILE_BYTES, readPart, sizeOf } from "./common.js";

const MOST_ENTRIES = 50_000;
/** The end of the directory: 22 bytes, and a comment of at most 65,535. */
const END_SIZE = 22;
const MOST_COMMENT = 0xffff;
const [END_MARK, LOCATOR_MARK, END64_MARK, ENTRY_MARK, LOCAL_MARK] = [
  0x06054b50, 0x07064b50, 0x06064b50, 0x02014b50, 0x04034b50,
];
const [STORED, DEFLATED] = [0, 8];
const ALL_ONES = 0xffffffff;
/** Bytes that are unpacked at a time. Each becomes at most about a thousand. */
const FED = 16_384;
const NOT_WHOLE = "The file is not a whole zip file.";

interface Entry {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly sum: number;
  readonly packed: number;
  readonly size: number;
  readonly at: number;
}

/** The files in a zip file. */
export class Archive {
  readonly #file: FileData;
  readonly #entries: ReadonlyMap<string, Entry>;
  #left = MOST_BYTES;
  readonly #asked = new Set<string>();

  private constructor(file: FileData, entries: readonly Entry[]) {
    this.#file = file;
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
  }

  /** Read the directory of a file. */
  static async open(file: FileData): Promise<Archive> {
    const entries = sizeOf(file) <= MOST_FILE_BYTES ? await directory(file) : undefined;
    if (!entries) throw new FileRefused(NOT_WHOLE);
    if (entries.length > MOST_ENTRIES) throw new FileRefused("The zip file has more than 50,000 entries.");
    if (entries.some(({ method }) => method !== STORED && method !== DEFLATED))
      throw new FileRefused("The zip file has an entry that is compressed in a way that no export has.");
    return new Archive(file, entries);
  }

  /** An entry; undefined where there is none, it is damaged, or larger than `largest`. */
  async read(name: string, largest = MOST_BYTES): Promise<Bytes | undefined> {
    this.#asked.add(name);
    const entry = this.#entries.get(name);
    if (!entry || entry.flags & 1) return undefined;
    const most = Math.min(largest, this.#left);
    if (entry.size > most) {
      // nothing of it is read: many items may name one file
      this.#left -= most;
      return undefined;
    }
    const packed = await this.#packed(entry);
    if (!packed) return undefined;
    const data = entry.method === STORED ? packed.subarray(0, most + 1) : await inflated(packed, "deflate-raw", most);
    if (!data) return undefined;
    this.#left -= Math.min(data.length, most);
    if (data.length > most) return undefined;
    return data.length === entry.size && sumOf(data) === entry.sum ? data.slice() : undefined;
  }

  /** How many entries of a folder in it nobody asked for. */
  countOthers(folder: string): number {
    return [...this.#entries.keys()].filter(
      (name) => name.startsWith(folder) && !name.endsWith("/") && !this.#asked.has(name),
    ).length;
  }

  async #packed({ name, at, packed }: Entry): Promise<Bytes | undefined> {
    const head = await readPart(this.#file, Math.max(0, at), at + 30);
    if (at < 0 || head.length < 30) return undefined;
    const view = new DataView(head.buffer);
    if (view.getUint32(0, true) !== LOCAL_MARK || view.getUint16(6, true) & 1) return undefined;
    const [named, extra] = [view.getUint16(26, true), view.getUint16(28, true)];
    const start = at + 30 + named + extra;
    if (nameOf(await readPart(this.#file, at + 30, at + 30 + named), view.getUint16(6, true)) !== name)
      return undefined;
    if (start + packed > sizeOf(this.#file)) return undefined;
    return readPart(this.#file, start, start + packed);
  }
}

/** The entries of a zip file; undefined where it is none. */
async function directory(file: FileData): Promise<Entry[] | undefined> {
  const size = sizeOf(file);
  const tailAt = Math.max(0, size - END_SIZE - MOST_COMMENT);
  const tail = await readPart(file, tailAt, size);
  const view = new DataView(tail.buffer);
  let at = tail.length - END_SIZE;
  while (at >= 0 && view.getUint32(at, true) !== END_MARK) at -= 1;
  if (at < 0) return undefined;
  let [length, offset] = [view.getUint32(at + 12, true), view.getUint32(at + 16, true)];
  let endAt = tailAt + at;
  const end64 = await end64Of(file, endAt);
  if (end64 === null) return undefined;
  if (end64) ({ length, offset, at: endAt } = end64);
  const before = endAt - length - offset; // bytes before the zip file itself; fewer than none where some were cut out
  if (endAt < length || length > MOST_BYTES) return undefined;
  const found = await readPart(file, endAt - length, endAt);
  return found.length === length ? entriesOf(found, before) : undefined;
}

/** The place of the directory of a large zip file; undefined where it is none, null where that is damaged. */
async function end64Of(
  file: FileData,
  endAt: number,
): Promise<{ length: number; offset: number; at: number } | undefined | null> {
  const locator = new DataView((await readPart(file, Math.max(0, endAt - 20), endAt)).buffer);
  if (locator.byteLength < 20 || locator.getUint32(0, true) !== LOCATOR_MARK) return undefined;
  if (locator.getUint32(4, true) !== 0 || locator.getUint32(16, true) > 1) return null;
  const at = endAt - 20 - 56;
  const record = new DataView((await readPart(file, Math.max(0, at), endAt - 20)).buffer);
  if (record.byteLength < 56 || record.getUint32(0, true) !== END64_MARK) return undefined;
  return { length: Number(record.getBigUint64(40, true)), offset: Number(record.getBigUint64(48, true)), at };
}

function entriesOf(raw: Bytes, before: number): Entry[] | undefined {
  const view = new DataView(raw.buffer);
  const found: Entry[] = [];
  for (let at = 0; at < raw.length; ) {
    if (at + 46 > raw.length || view.getUint32(at, true) !== ENTRY_MARK) return undefined;
    const [flags, method, sum] = [
      view.getUint16(at + 8, true),
      view.getUint16(at + 10, true),
      view.getUint32(at + 16, true),
    ];
    const [named, extra, comment] = [
      view.getUint16(at + 28, true),
      view.getUint16(at + 30, true),
      view.getUint16(at + 32, true),
    ];
    const end = at + 46 + named + extra + comment;
    if (end > raw.length || view.getUint16(at + 6, true) > 63) return undefined;
    const name = nameOf(raw.subarray(at + 46, at + 46 + named), flags);
    const sizes = [view.getUint32(at + 24, true), view.getUint32(at + 20, true), view.getUint32(at + 42, true)];
    const whole = sizes64(new DataView(raw.buffer, at + 46 + named, extra), sizes);
    if (name === undefined || !whole) return undefined;
    const [size = 0, packed = 0, place = 0] = whole;
    found.push({ name, flags, method, sum, packed, size, at: place + before });
    at = end;
  }
  return found;
}

/** Size, packed size and place, where an extra field has those that 32 bits do not hold. */
function sizes64(extra: DataView, sizes: readonly number[]): number[] | undefined {
  for (let at = 0; at + 4 <= extra.byteLength; ) {
    const [kind, length] = [extra.getUint16(at, true), extra.getUint16(at + 2, true)];
    if (at + 4 + length > extra.byteLength) return undefined;
    if (kind === 1) {
      const needed = 8 * sizes.filter((size) => size === ALL_ONES).length;
      return needed <= length ? readSizes(extra, at + 4, sizes) : undefined;
    }
    at += 4 + length;
  }
  return [...sizes];
}

function readSizes(extra: DataView, start: number, sizes: readonly number[]): number[] {
  let at = start;
  return sizes.map((size) => {
    if (size !== ALL_ONES) return size;
    at += 8;
    return Number(extra.getBigUint64(at - 8, true));
  });
}

/** The name of an entry: in UTF-8, or in the code page 437 of MS-DOS, of which only ASCII is read. */
function nameOf(raw: Bytes, flags: number): string | undefined {
  const text =
    flags & 0x800
      ? fromText(raw)
      : Array.from(raw, (byte) => String.fromCharCode(byte < 128 ? byte : 0xf000 + byte)).join("");
  return text?.split("\0")[0];
}

/** What is unpacked, at most one byte more than `most`; undefined where it is damaged. */
export async function inflated(
  packed: Bytes,
  format: "deflate-raw" | "gzip",
  most: number,
): Promise<Bytes | undefined> {
  let fed = 0;
  const source = new ReadableStream<Bytes>(
    {
      pull(controller) {
        // in small parts, each of which unpacks to a bounded size
        controller.enqueue(packed.subarray(fed, fed + FED));
        fed += FED;
        if (fed >= packed.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const reader = source.pipeThrough(new DecompressionStream(format) as ReadableWritablePair<Bytes, Bytes>).getReader();
  const parts: Bytes[] = [];
  let size = 0;
  try {
    while (size <= most) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
    }
  } catch {
    return undefined;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
  const whole = new Uint8Array(Math.min(size, most + 1));
  let at = 0;
  for (const part of parts) {
    whole.set(part.subarray(0, whole.length - at), at);
    at += part.length;
    if (at >= whole.length) break;
  }
  return whole;
}

let table: Uint32Array | undefined;

/** The CRC-32 of bytes. */
function sumOf(data: Bytes): number {
  table ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    let rest = byte;
    for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
    return rest;
  });
  let sum = ALL_ONES;
  for (const byte of data) sum = (table[(sum ^ byte) & 255] as number) ^ (sum >>> 8);
  return (sum ^ ALL_ONES) >>> 0;
}
