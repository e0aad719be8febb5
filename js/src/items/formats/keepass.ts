// KeePass: the XML of KeePass 2, and the CSV of KeePassXC and KeePass.
import { FileRefused, InvalidTotp } from "../errors.js";
import { CONCEALED, STRING } from "../shapes.js";
import { strip } from "../text.js";
import { integer, parseTotp, totpUri } from "../totp.js";
import type { Field, Item, OneTimeCode } from "../types.js";
import { fromBase64, toBase64 } from "./bytes.js";
import {
  checked,
  type FileData,
  folder,
  type Found,
  grouped,
  innerFolder,
  type Json,
  keptBesides,
  MOST_ATTACHMENT,
  MOST_BESIDES,
  MOST_BYTES,
  named,
  Problem,
  type Reader,
  readAll,
  seconds,
  shortened,
  sizeBesides,
  sourced,
  sourceId,
} from "./common.js";
import { parseCsv } from "./csv.js";
import { Element, parseXml } from "./xml.js";
import { inflated } from "./zip.js";

const [NAME, CSV_NAME] = ["keepass-xml", "keepass-csv"];
const STANDARD: Readonly<Record<string, string>> = {
  Title: "title",
  UserName: "username",
  Password: "password",
  Notes: "notes",
};
// Of a group and of the database: kept with the first entry. The rest is for the windows of the program alone: icons,
// colours, limits of histories, which groups are open.
const OF_GROUP = [
  "Notes",
  "Tags",
  "CustomData",
  "DefaultAutoTypeSequence",
  "EnableAutoType",
  "EnableSearching",
  "CustomIconUUID",
];
const OF_DATABASE = ["DatabaseName", "DatabaseDescription", "DefaultUserName", "CustomData"];
const KNOWN = ["UUID", "String", "Binary", "Tags", "Times"];

/** The entries of a file in XML, those of the recycle bin left out. */
export const read: Reader = async function* (file) {
  const tree = parseXml(await readAll(file)).first("KeePassFile");
  const root = tree?.first("Root");
  if (!tree || !root) throw new FileRefused("The file is not XML of KeePass 2: it has no KeePassFile with a Root.");
  yield* checked(new Reading(tree.first("Meta") ?? new Element("Meta", {})).read(root));
};

/** What groups say of themselves: each is kept with the first entry below it that comes, and told where none does. */
class About {
  readonly #waiting: Json[] = [];
  readonly #sizes: number[] = [];

  /** A group begins. */
  *begin(told: string, name: string, said: readonly Json[]): Generator<Problem> {
    const about = { group: name, inner: said };
    const size = said.length ? sizeBesides(about) : 0;
    if (size === undefined || this.#sizes.reduce((sum, one) => sum + one, size) > MOST_BESIDES) {
      yield new Problem(`${told} has notes that are too large, or that no document can hold; they were left out.`);
    } else if (said.length) {
      this.#waiting.push(about);
      this.#sizes.push(size);
    }
  }

  /** The entry with what waits. */
  keptWith(item: Item): Item {
    const kept = this.#waiting.length ? keptBesides(item, { groups: [...this.#waiting] }) : undefined;
    if (kept) this.#drop(0);
    return kept ?? item;
  }

  /** A group ends, at the depth at which it began. */
  *end(told: string, depth: number): Generator<Problem> {
    if (this.depth <= depth) return;
    this.#drop(depth);
    yield new Problem(`${told} has notes or settings, and no entry that was taken over; they were left out.`);
  }

  #drop(depth: number): void {
    this.#waiting.length = this.#sizes.length = depth;
  }

  /** How many wait. */
  get depth(): number {
    return this.#waiting.length;
  }
}

/** Reads the groups of a file, from the outermost one on. */
class Reading {
  readonly #meta: Element;
  readonly #bin: string;
  readonly #binaries: Binaries;
  readonly #about = new About();
  #seen = 0; // entries, those of the recycle bin aside

  constructor(meta: Element) {
    this.#meta = meta;
    this.#bin = meta.value("RecycleBinUUID");
    this.#binaries = new Binaries(meta.first("Binaries")?.all("Binary") ?? []);
  }

  /** The entries of all groups. The outermost one is the database itself, whose name is in no path. */
  async *read(root: Element): AsyncGenerator<Found> {
    const said = this.#meta.inner
      .filter((one) => OF_DATABASE.includes(one.name) && isSaid(one))
      .map((one) => one.asJson());
    yield* this.#about.begin("The database", "", said);
    for (const group of root.all("Group")) yield* this.#group(group);
    yield* counted("The file has entries in no group", root.all("Entry").length);
    yield* this.#about.end("The database", 0);
    yield* counted("The file has icons of its own", this.#meta.first("CustomIcons")?.all("Icon").length ?? 0);
    yield* counted("The file has files that no entry has now", this.#binaries.others);
  }

  async *#group(group: Element, within?: string): AsyncGenerator<Found> {
    const name = group.value("Name");
    if (this.#bin && group.value("UUID") === this.#bin) {
      const count = entriesBelow(group);
      const hasMore = group.inner.some((one) => (one.name === "Group" || one.name === "Notes") && isSaid(one));
      if (count || hasMore)
        yield new Problem(
          `The recycle bin of KeePass was left out: it has ${count ? `${grouped(count)} entries` : "groups or notes"}.`,
        );
      return;
    }
    const here = within === undefined ? "" : innerFolder(within, name);
    const [told, depth] = [`The group ${shortened(name)}`, this.#about.depth];
    const said = group.inner.filter((one) => OF_GROUP.includes(one.name) && isSaid(one));
    if (strip(group.value("Times", "Expires")).toLowerCase() === "true") said.push(...group.all("Times"));
    yield* this.#about.begin(
      told,
      name,
      said.map((one) => one.asJson()),
    );
    const before = this.#seen;
    for (const one of group.all("Entry")) {
      this.#seen += 1;
      for await (const found of entry(one, here, this.#binaries))
        yield found instanceof Problem ? found : this.#about.keptWith(found);
    }
    for (const one of group.all("Group")) yield* this.#group(one, here);
    if (this.#about.depth > depth) yield* this.#about.end(told, depth);
    else if (this.#seen === before && within !== undefined)
      yield new Problem(`${told} has no entries; it was left out.`);
  }
}

function* counted(told: string, count: number): Generator<Problem> {
  if (count) yield new Problem(`${told}: ${grouped(count)}. They were left out.`);
}

/** Whether an element says something: a text that is no `null`, or elements in it. */
const isSaid = (one: Element): boolean => one.inner.length > 0 || !["", "null"].includes(strip(one.text).toLowerCase());

const entriesBelow = (group: Element): number =>
  group.all("Group").reduce((sum, inner) => sum + entriesBelow(inner), group.all("Entry").length);

async function* entry(node: Element, within: string, binaries: Binaries): AsyncGenerator<Found> {
  const held = node.all("String").map((one) => [one.value("Key"), one.first("Value")] as const);
  if (held.some(([, value]) => value && isEncrypted(value))) {
    const title = held.find(([name, value]) => name === "Title" && value && !isEncrypted(value))?.[1]?.text;
    yield new Problem(
      `${named(title)} has values that are still encrypted, and was left out: export from KeePass as XML 2.x.`,
    );
    return;
  }
  const item: Json = { type: "login", folders: within ? [within] : [] };
  const [fields, codes]: [Field[], Field[]] = [[], []];
  for (const [name, value] of held) {
    const text = value?.text ?? "";
    const type = value?.attribute("ProtectInMemory") === "True" ? CONCEALED : STRING;
    if (Object.hasOwn(STANDARD, name)) item[STANDARD[name] as string] = text;
    else if (name === "URL") item.urls = text ? [text] : [];
    else if (text) (isOtp(name) ? codes : fields).push({ label: name, value: text, type });
  }
  const [totp, left] = takeOtp(codes);
  const files: Json[] = [];
  for (const one of node.all("Binary")) {
    const found = await binaries.attachment(one);
    if (found) files.push(found);
    else yield new Problem(`${named(item.title)} has a file that is missing, damaged or too large; it was left out.`);
  }
  const made: Json = {
    ...item,
    totp,
    fields: [...fields, ...left],
    files,
    tags: node
      .value("Tags")
      .replaceAll(",", ";")
      .split(";")
      .map((tag) => strip(tag))
      .filter(Boolean),
    creationAt: seconds(node.value("Times", "CreationTime")),
    modifiedAt: seconds(node.value("Times", "LastModificationTime")),
  };
  const rest = node.inner
    .filter((one) => !KNOWN.includes(one.name) && (one.inner.length || strip(one.text)))
    .map((one) => one.asJson());
  const isTaken = ({ name }: Element): boolean =>
    (name === "CreationTime" && made.creationAt !== undefined) ||
    (name === "LastModificationTime" && made.modifiedAt !== undefined);
  const times = (node.first("Times")?.inner ?? []).filter((one) => strip(one.text) && !isTaken(one));
  const kept = {
    ...(rest.length ? { entry: rest } : {}),
    ...(times.length ? { times: times.map((one) => one.asJson()) } : {}),
  };
  const id =
    node.value("UUID") ||
    sourceId(within, textIn(made, "title"), textIn(made, "username"), ...((made.urls as string[] | undefined) ?? []));
  yield sourced(asNote(made), NAME, id, kept);
}

const textIn = (item: Json, name: string): string => (item[name] as string | undefined) ?? "";

/** The files of all entries. What is read and unpacked is counted: many entries may name one file. */
class Binaries {
  readonly #stored: ReadonlyMap<string, Element>;
  #left = 2 * MOST_BYTES; // each byte of a file that is not compressed counts as text and as content

  readonly #named = new Set<string>();

  constructor(stored: readonly Element[]) {
    this.#stored = new Map(stored.map((one) => [one.attribute("ID") ?? "", one]));
  }

  /** How many no entry named. */
  get others(): number {
    return [...this.#stored.keys()].filter((number) => !this.#named.has(number)).length;
  }

  /** A file of an entry; undefined where it is missing, damaged, encrypted or too large. */
  async attachment(one: Element): Promise<Json | undefined> {
    const held = one.first("Value");
    const number = held?.attribute("Ref");
    if (number !== undefined) this.#named.add(number);
    const stored = number === undefined ? held : this.#stored.get(number);
    if (!stored || isEncrypted(stored) || stored.text.length > Math.min(2 * MOST_ATTACHMENT, this.#left))
      return undefined;
    this.#left -= stored.text.length;
    const most = Math.min(MOST_ATTACHMENT, this.#left);
    const packed = fromBase64(stored.text.replace(/\s+/g, ""));
    const data = packed && stored.attribute("Compressed") === "True" ? await inflated(packed, "gzip", most) : packed;
    if (!data) return undefined;
    this.#left -= Math.min(data.length, most);
    return data.length > most ? undefined : { name: one.value("Key"), content: toBase64(data) };
  }
}

const isEncrypted = (held: Element): boolean => held.attribute("Protected") === "True";
const isOtp = (name: string): boolean => name === "otp" || name.startsWith("TOTP ") || name.startsWith("TimeOtp-");

/** One-time codes as KeePassXC (`otp`), KeeTrayTOTP (`TOTP Seed`) and KeePass (`TimeOtp-…`) store them, and what is left. */
function takeOtp(fields: readonly Field[]): [OneTimeCode | undefined, Field[]] {
  const given = new Map(fields.map(({ label = "", value = "" }) => [label, value]));
  const taken = (name: string): string | undefined => {
    const value = given.get(name);
    given.delete(name);
    return value;
  };
  const leave = (isLeft: (label: string) => boolean): Field[] =>
    fields.filter(({ label = "" }) => isLeft(label)).map(({ label, value }) => ({ label, value, type: CONCEALED }));
  try {
    const totp = given.has("otp")
      ? parseTotp(taken("otp") ?? "")
      : given.has("TOTP Seed")
        ? seedOf(taken)
        : given.has("TimeOtp-Secret-Base32")
          ? timeOtpOf(taken)
          : undefined;
    return [totp, leave((label) => given.has(label))];
  } catch (fault) {
    if (!(fault instanceof InvalidTotp)) throw fault;
    return [undefined, leave(() => true)];
  }
}

type Taken = (name: string) => string | undefined;

function seedOf(taken: Taken): OneTimeCode {
  const [period = "", digits] = (taken("TOTP Settings") ?? "30;6").split(";");
  const found = parseTotp(taken("TOTP Seed") ?? "");
  const seconds_ = integer(period);
  if (digits === undefined) throw new InvalidTotp();
  const made =
    digits === "S"
      ? { ...found, period: seconds_, algorithm: "steam", digits: 5 }
      : { ...found, period: seconds_, digits: integer(digits) };
  totpUri(made);
  return made;
}

function timeOtpOf(taken: Taken): OneTimeCode {
  const found = parseTotp(taken("TimeOtp-Secret-Base32") ?? "");
  const made = {
    ...found,
    digits: integer(taken("TimeOtp-Length") ?? "6"),
    period: integer(taken("TimeOtp-Period") ?? "30"),
    algorithm: (taken("TimeOtp-Algorithm") ?? "HMAC-SHA-1")
      .replace(/^HMAC-/, "")
      .replaceAll("-", "")
      .toLowerCase(),
  };
  totpUri(made);
  return made;
}

/** An entry with nothing but notes is a note. */
function asNote(item: Json): Json {
  if (item.username || item.password || (item.urls as unknown[] | undefined)?.length || item.totp) return item;
  const { username: _username, password: _password, urls: _urls, totp: _totp, ...shared } = item;
  return { ...shared, type: "note" };
}

/** The columns of KeePassXC, and of KeePass 1 and 2. */
const COLUMNS: Readonly<Record<string, string>> = {
  title: "title",
  account: "title",
  username: "username",
  "user name": "username",
  "login name": "username",
  password: "password",
  notes: "notes",
  comments: "notes",
  url: "url",
  "web site": "url",
  group: "group",
  totp: "totp",
  "last modified": "modified",
  created: "created",
};
/** The head of KeePass, which writes backslashes. */
const ESCAPING = ["account", "login name"];

/** The rows of a CSV file. */
export const readCsv: Reader = (file) => checked(csvRows(file));

async function* csvRows(file: FileData): AsyncGenerator<Found> {
  for await (const [, row] of parseCsv(file, ESCAPING)) {
    if (row instanceof Problem) {
      yield row;
      continue;
    }
    const values: Record<string, string> = {};
    const rest: [string, string][] = [];
    for (const [name, value] of Object.entries(row)) {
      const column = strip(name).toLowerCase();
      const known = Object.hasOwn(COLUMNS, column) ? (COLUMNS[column] as string) : undefined;
      if (known !== undefined && values[known] === undefined) values[known] = value;
      else if (value) rest.push([name, value]);
    }
    if (values.title === undefined || values.password === undefined)
      throw new FileRefused("The file is not CSV of KeePass: it has no columns for titles and passwords.");
    yield csvItem(values, Object.fromEntries(rest));
  }
}

function csvItem(values: Readonly<Record<string, string>>, rest: Json): Found {
  const {
    title = "",
    username = "",
    password = "",
    notes = "",
    url = "",
    group = "",
    totp: code = "",
    created,
    modified,
  } = values;
  const names = group.split("/").filter(Boolean);
  const [totp, fields] = code ? takeOtp([{ label: "otp", value: code }]) : [undefined, []];
  const item = {
    type: "login",
    title,
    username,
    password,
    notes,
    urls: url ? [url] : [],
    totp,
    fields,
    folders: names.length > 1 ? [folder(...names.slice(1))] : [], // the first is the database
    creationAt: seconds(created),
    modifiedAt: seconds(modified),
  };
  if (item.creationAt === undefined && created) rest.created = created;
  if (item.modifiedAt === undefined && modified) rest.modified = modified;
  return sourced(asNote(item), CSV_NAME, sourceId(group, title, username, url), rest);
}
