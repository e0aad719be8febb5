// Reads and writes the shapes of items.
//
// Members that a program does not know are kept, at any depth. A value that does not fit its type is read as `Other`, so
// that one bad document never hides the others.
import { Invalid } from "../errors.js";
import { isObject } from "../format/encoding.js";
import type { ValueType } from "../operations/valueTypes.js";
import type { Item, ItemMembers, ItemType, OneTimeCode, Other, Source } from "./types.js";

/** The collection of a vault that holds items. */
export const ITEMS = "items";
/** The types of fields that a person adds most. */
export const STRING = "string";
export const CONCEALED = "concealed-string";
/** The members that are not shown unless somebody asks for them. */
const SECRET_MEMBERS = new Set([
  "password",
  "value",
  "privateKey",
  "key",
  "number",
  "verificationNumber",
  "pin",
  "totp",
]);
/** Types of fields that may be shown; a type that this version does not know is taken for a secret. */
const OPEN_TYPES = new Set([
  STRING,
  "email",
  "number",
  "boolean",
  "date",
  "year-month",
  "wifi-network-security-type",
  "country-code",
  "subdivision-code",
  "linked",
]);

/** Whether a member of a type of items is a secret. */
export const isSecretMember = (name: string): boolean => SECRET_MEMBERS.has(name);
/** Whether a field of this type is a secret. */
export const isConcealed = (type = STRING): boolean => !OPEN_TYPES.has(type);

/** What a member holds, as messages name it. */
type Kind = "str" | "bool" | "int" | "int | null" | "bytes" | "object" | "strs" | "objects" | Inner;
/** An object, or a list of them, with members of its own. */
type Inner = { readonly shape: Shape; readonly listed: boolean };
/** A member: what it holds, and what an empty one is besides those that are empty for all. */
type Member = { readonly kind: Kind; readonly empty?: unknown };
type Shape = ReadonlyMap<string, Member>;
type Raw = Readonly<Record<string, unknown>>;

/** An object that does not fit; the message names types and places, never contents. */
export class Misfit extends Error {}

const texts = (names: string): [string, Member][] => names.split(" ").map((name) => [name, { kind: "str" }]);
const shape = (...members: [string, Member][]): Shape => new Map(members);
const one = (inner: Shape): Member => ({ kind: { shape: inner, listed: false } });
const many = (inner: Shape): Member => ({ kind: { shape: inner, listed: true } });

const FIELD = shape(...texts("label value"), ["type", { kind: "str", empty: STRING }], ...texts("section"));
const ONE_TIME_CODE = shape(
  ...texts("secret"),
  ["algorithm", { kind: "str", empty: "sha1" }],
  ["digits", { kind: "int", empty: 6 }],
  ["period", { kind: "int", empty: 30 }],
  ...texts("issuer username"),
);
const FILE = shape(...texts("name"), ["content", { kind: "bytes" }]);
const SOURCE = shape(
  ...texts("format id"),
  ["rest", { kind: "object" }],
  ["changes", { kind: "objects" }],
  ["order", { kind: "strs" }],
);
/** The parts of an identity. */
export const PARTS: Readonly<Record<string, Shape>> = {
  name: shape(...texts("title given givenInformal given2 surnamePrefix surname surname2 credentials generation")),
  address: shape(...texts("streetAddress postalCode city territory country tel")),
  document: shape(
    ...texts("issuingCountry documentNumber identificationNumber nationality fullName birthDate birthPlace sex"),
    ...texts("issueDate expiryDate issuingAuthority"),
  ),
  passport: shape(
    ...texts("issuingCountry passportType passportNumber nationalIdentificationNumber nationality fullName birthDate"),
    ...texts("birthPlace sex issueDate expiryDate issuingAuthority"),
  ),
  license: shape(
    ...texts("fullName birthDate issueDate expiryDate issuingAuthority territory country licenseNumber licenseClass"),
  ),
};
const COMMON: [string, Member][] = [
  ...texts("title subtitle notes"),
  ["urls", { kind: "strs" }],
  ["apps", { kind: "objects" }],
  ["tags", { kind: "strs" }],
  ["favorite", { kind: "bool" }],
  ["folders", { kind: "strs" }],
  ["fields", many(FIELD)],
  ["files", many(FILE)],
  ["credentials", { kind: "objects" }],
  ["creationAt", { kind: "int | null" }],
  ["modifiedAt", { kind: "int | null" }],
  ["source", one(SOURCE)],
];
const COMMON_SHAPE = shape(...COMMON);
const OWN: Readonly<Record<ItemType, [string, Member][]>> = {
  login: [...texts("username password"), ["totp", one(ONE_TIME_CODE)]],
  note: [],
  card: texts("number fullName cardType verificationNumber pin expiryDate validFrom"),
  identity: Object.entries(PARTS).map(([name, part]) => [name, one(part)]),
  secret: texts("value"),
  "ssh-key": texts("keyType privateKey publicKey fingerprint keyComment creationDate expiryDate keyGenerationSource"),
  totp: [["totp", one(ONE_TIME_CODE)]],
  "api-credential": texts("key username keyType url validFrom expiryDate"),
  file: [],
};
const SHAPES = Object.fromEntries(
  Object.entries(OWN).map(([type, own]) => [type, shape(...COMMON, ...own)]),
) as Readonly<Record<ItemType, Shape>>;

/** The types of items. */
export const TYPES = Object.keys(OWN) as readonly ItemType[];

/** The names of the members that only this type has, in their order. */
export const ownMembers = (type: Item["type"]): string[] => (type === "" ? [] : OWN[type].map(([name]) => name));

/** The names of the members that all items have. */
export const commonMembers = (): string[] => COMMON.map(([name]) => name);

/** A member of an object of JSON; what every object inherits is no member. */
export const memberOf = (raw: Raw, name: string): unknown => (Object.hasOwn(raw, name) ? raw[name] : undefined);

/** The item that a document holds. What does not fit is an `Other` with a `problem`. */
export function fromStored(raw: unknown): Item {
  if (!isObject(raw) || ArrayBuffer.isView(raw))
    return other(raw, "", "The document is no item: it is not a JSON object.");
  const named = memberOf(raw, "type");
  const type = typeof named === "string" ? named : "";
  const known = isType(type) ? SHAPES[type] : COMMON_SHAPE;
  let problem = typeof named === "string" ? "" : "The document is no item: it has no type.";
  try {
    const { type: _, ...rest } = raw;
    const members = read(known, rest, "$");
    if (isType(type)) return { type, ...members } as Item;
    const common = Object.fromEntries(Object.entries(members).filter(([name]) => COMMON_SHAPE.has(name)));
    return problem ? other(raw, type, problem, common) : other(raw, type, "", common);
  } catch (fault) {
    if (!(fault instanceof Misfit)) throw fault;
    problem = `The item does not fit its type: ${fault.message}.`;
  }
  const title = memberOf(raw, "title");
  return other(raw, type, problem, typeof title === "string" && title ? { title } : {});
}

const other = (document: unknown, typeName: string, problem: string, common: ItemMembers = {}): Other => ({
  ...common,
  type: "",
  typeName,
  problem,
  document,
});

const isType = (type: string): type is ItemType => Object.hasOwn(OWN, type);

const without = (raw: Raw, ...names: string[]): Raw =>
  Object.fromEntries(Object.entries(raw).filter(([name]) => !names.includes(name)));

/**
 * The item as JSON, the value of a document. Members that are empty are left out.
 *
 * A member of a wrong type is refused with Invalid. An item that does not fit is written as it was.
 */
export function toStored(item: Item): unknown {
  if (item.type === "") {
    if (item.problem) return item.document;
    const known = isObject(item.document) ? item.document : {};
    const unknown = Object.entries(known).filter(([name]) => name !== "type" && !COMMON_SHAPE.has(name));
    const members = checked(COMMON_SHAPE, without(item as unknown as Raw, "type", "typeName", "problem", "document"));
    return { ...(item.typeName ? { type: item.typeName } : {}), ...members, ...Object.fromEntries(unknown) };
  }
  const { type } = item;
  if (!isType(type)) throw new Invalid({ type: "must be a type of items" });
  return { type, ...checked(SHAPES[type], without(item as unknown as Raw, "type")) };
}

/** The members that are not empty; Invalid where one does not fit. */
function checked(known: Shape, members: Raw): Raw {
  try {
    return write(known, read(known, members, "$"));
  } catch (fault) {
    if (!(fault instanceof Misfit)) throw fault;
    throw new Invalid(
      { item: `does not fit its type: ${fault.message}` },
      `The item does not fit its type: ${fault.message}.`,
    );
  }
}

/** The type of the values of a collection of items, for `vault.collection` and `client.collection`. */
export const itemType: ValueType<Item> = { parse: fromStored, write: toStored };

/** The members of a source that are not empty; Misfit where it is none. */
export const storedSource = (raw: unknown): Source => write(SOURCE, readInner(SOURCE, raw, "$")) as Source;
/** The members of one-time codes that this version knows; Misfit where one does not fit. */
export function oneTimeCode(raw: unknown): OneTimeCode {
  const found = readInner(ONE_TIME_CODE, raw, "$");
  return Object.fromEntries(Object.entries(found).filter(([name]) => ONE_TIME_CODE.has(name)));
}

/** What an object holds, in the order of its shape; unknown members behind it. It is called for every item of a list. */
function read(known: Shape, raw: Raw, place: string): Raw {
  const found: Record<string, unknown> = {};
  let fault: unknown; // of a plain member: those of inner objects are told first
  for (const [name, { kind }] of known) {
    const value = memberOf(raw, name) ?? undefined; // null is the same as no member
    if (value === undefined) continue;
    if (typeof kind !== "string") {
      found[name] = readMember(kind, value, `${place}.${name}`);
      continue;
    }
    try {
      found[name] = plainValue(kind, value, place, name);
    } catch (misfit) {
      fault ??= misfit;
    }
  }
  if (fault) throw fault;
  const extra = Object.entries(raw).filter(([name, value]) => !known.has(name) && value !== undefined);
  return extra.length ? { ...found, ...Object.fromEntries(extra) } : found;
}

function readMember({ shape: inner, listed }: Inner, value: unknown, place: string): unknown {
  if (!listed) return readInner(inner, value, place);
  if (!Array.isArray(value)) throw new Misfit(`Expected \`array\` - at \`${place}\``);
  return value.map((entry, at) => readInner(inner, entry, `${place}[${at}]`));
}

function readInner(inner: Shape, value: unknown, place: string): Raw {
  if (!isObject(value)) throw new Misfit(`Expected \`object\`, got \`${pythonName(value)}\` - at \`${place}\``);
  return read(inner, value, place);
}

/** What Python calls the type of a value. */
const pythonName = (value: unknown): string =>
  Array.isArray(value) ? "list" : value === null || value === undefined ? "NoneType" : jsonName(value);

const JSON_NAMES: Readonly<Record<string, string>> = { string: "str", boolean: "bool", bigint: "int" };

/** What JSON calls the type of a value, as in the messages of the Python client. */
function jsonName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "int" : "float";
  return JSON_NAMES[typeof value] ?? "object";
}

/** The value of a member that is no object of its own shape; Misfit where it does not fit. */
function plainValue(kind: Kind, value: unknown, place: string, name: string): unknown {
  const at = (): string => `${place}.${name}`;
  if (kind === "strs" || kind === "objects") {
    if (!Array.isArray(value)) throw misfit("array", value, at());
    const inner = kind === "strs" ? "str" : "object";
    for (let one = 0; one < value.length; one += 1) {
      if (jsonName(value[one]) !== inner) throw misfit(inner, value[one], `${at()}[${one}]`);
    }
    return value;
  }
  const wanted = kind === "int | null" ? "int" : kind;
  if (kind === "bytes") {
    if (typeof value !== "string") throw misfit("bytes", value, at());
    const spelled = normalBase64(value);
    if (spelled === undefined) throw new Misfit(`Invalid base64 encoded string - at \`${at()}\``);
    return spelled;
  }
  if (jsonName(value) !== wanted) throw misfit(kind as string, value, at());
  return value;
}

const misfit = (wanted: string, value: unknown, place: string): Misfit =>
  new Misfit(`Expected \`${wanted}\`, got \`${jsonName(value)}\` - at \`${place}\``);

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Base64 with the bits that stand for nothing as zeros; undefined where it is none. */
function normalBase64(text: string): string | undefined {
  if (text.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (!padding) return text;
  const at = text.length - padding - 1;
  const digit = DIGITS.indexOf(text[at] ?? "");
  return text.slice(0, at) + DIGITS[digit - (digit % (padding === 2 ? 16 : 4))] + "=".repeat(padding);
}

/** The same without members that are empty. */
function write(known: Shape, members: Raw): Raw {
  const found = Object.entries(members).flatMap(([name, value]): [string, unknown][] => {
    const member = known.get(name);
    if (!member) return [[name, value]];
    if (isEmpty(member, value)) return [];
    if (typeof member.kind === "string") return [[name, value]];
    const { shape: inner, listed } = member.kind;
    return [[name, listed ? (value as Raw[]).map((entry) => write(inner, entry)) : write(inner, value as Raw)]];
  });
  return Object.fromEntries(found);
}

function isEmpty({ kind, empty }: Member, value: unknown): boolean {
  if (empty !== undefined) return value === empty;
  if (value === "" || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return kind === "object" && Object.keys(value as object).length === 0;
}
