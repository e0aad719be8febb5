// The formats by name. Each is loaded when it is used.
import { FileRefused } from "../errors.js";
import type { StoredItem } from "../references.js";
import { partition, strip } from "../text.js";
import type { Item } from "../types.js";
import type { Reader, Writer } from "./common.js";
import type { FileData, Found, Password } from "./importTypes.js";
import type { Plan } from "./plan.js";

const readers = {
  bitwarden: async () => (await import("./bitwarden.js")).read,
  cxf: async () => (await import("./cxf.js")).read,
  "1pux": async () => (await import("./onepassword.js")).read,
  "keepass-xml": async () => (await import("./keepass.js")).read,
  "keepass-csv": async () => (await import("./keepass.js")).readCsv,
  chrome: async () => (await import("./browsers.js")).readChrome,
  firefox: async () => (await import("./browsers.js")).readFirefox,
  safari: async () => (await import("./browsers.js")).readSafari,
  dotenv: async () => (await import("./dotenv.js")).read,
} satisfies Record<string, () => Promise<Reader>>;
const writers = {
  bitwarden: async () => (await import("./bitwarden.js")).write,
  cxf: async () => (await import("./cxf.js")).write,
} satisfies Record<string, () => Promise<Writer>>;

/** A format that files can be read in. `pass` is none: its entries are decrypted by `gpg`, which the command line does. */
export type ReadFormat =
  | "bitwarden"
  | "cxf"
  | "1pux"
  | "keepass-xml"
  | "keepass-csv"
  | "chrome"
  | "firefox"
  | "safari"
  | "dotenv";
/** A format that items can be written in. */
export type WriteFormat = "bitwarden" | "cxf";

/** The formats that files can be read in. */
export const READ_FORMATS = Object.keys(readers) as readonly ReadFormat[];
/** The formats that items can be written in. */
export const WRITE_FORMATS = Object.keys(writers) as readonly WriteFormat[];

/** Milliseconds of work after which a page gets its turn. */
const TURN = 30;

/**
 * The items of a file, one after the other, and problems for what cannot be taken over.
 *
 * FileRefused where the file cannot be read as a whole; PasswordNeeded where it is encrypted, and `password` is missing or
 * wrong.
 */
export async function* readItems(
  format: ReadFormat,
  file: FileData,
  { password }: { password?: string | Password | undefined } = {},
): AsyncGenerator<Found, void, undefined> {
  if (!Object.hasOwn(readers, format)) throw new FileRefused(`There is no reader for the format ${format}.`);
  const read: Reader = await readers[format]();
  const given = typeof password === "string" ? () => password : password;
  let turn = Date.now();
  for await (const one of read(file, given)) {
    yield one;
    if (Date.now() - turn < TURN) continue;
    await new Promise((go) => setTimeout(go));
    turn = Date.now();
  }
}

/**
 * A file with these items, each with the uid of its document.
 *
 * It is not encrypted. What the format has no place for travels in a member of our own, which other programs ignore.
 * `now` is in seconds since 1970.
 */
export async function writeItems(
  format: WriteFormat,
  items: Iterable<readonly [string, Item]>,
  { now = Math.floor(Date.now() / 1000) }: { now?: number | undefined } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  if (!Object.hasOwn(writers, format)) throw new FileRefused(`There is no writer for the format ${format}.`);
  return (await writers[format]())(items, now);
}

/**
 * What is new among the items of a file. An item is known by its source, which every import keeps in it.
 *
 * `present` are the items of the vault: documents, or their collection. `progress` is told how many items of the file were
 * read.
 */
export async function makePlan(
  found: AsyncIterable<Found> | Iterable<Found>,
  present: AsyncIterable<StoredItem> | Iterable<StoredItem>,
  progress?: (count: number) => void,
): Promise<Plan> {
  return (await import("./plan.js")).makePlan(found, present, progress);
}

/** The columns that tell a CSV file. */
const COLUMNS: readonly (readonly [ReadFormat, readonly string[]])[] = [
  ["firefox", ["url", "username", "password", "guid"]],
  ["chrome", ["name", "url", "username", "password"]],
  ["keepass-csv", ["group", "title", "username", "password"]],
  ["keepass-csv", ["account", "login name", "password"]],
  ["safari", ["title", "url", "username", "password"]],
];

/** The format of a file, by its name and its first bytes; undefined where it cannot be told. */
export function guessFormat(name: string, head: Uint8Array): ReadFormat | undefined {
  const text = strip(new TextDecoder().decode(head));
  if (head[0] === 0x50 && head[1] === 0x4b && head[2] === 3 && head[3] === 4) return "1pux";
  if (text.startsWith("<") && text.includes("KeePassFile")) return "keepass-xml";
  if (text.startsWith("{")) {
    if (text.includes('"accounts"') || text.includes('"exporterRpId"')) return "cxf";
    return text.includes('"encrypted"') ? "bitwarden" : undefined;
  }
  const columns = strip(partition(text, "\n")[0])
    .split(",")
    .map((column) => strip(column, /[ "]/).toLowerCase());
  const found = COLUMNS.find(([, needed]) => needed.every((one) => columns.includes(one)));
  if (found) return found[0];
  const small = name.toLowerCase();
  return small.slice(small.lastIndexOf("/") + 1).startsWith(".env") || small.endsWith(".env") ? "dotenv" : undefined;
}
