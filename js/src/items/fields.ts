// The fields of an item by name: members of its type, fields that a person has added, fields of kept credentials.
import { type Bytes, fromText, isObject } from "../format/encoding.js";
import { AmbiguousName, FieldNotFound, InvalidTotp } from "./errors.js";
import { CONCEALED, isConcealed, isSecretMember, memberOf, ownMembers, PARTS, STRING } from "./shapes.js";
import { folded, quoted } from "./text.js";
import { totpCode, totpUri } from "./totp.js";
import type { FileContent, Item, OneTimeCode } from "./types.js";

const OPEN_CREDENTIAL_MEMBERS = new Set([
  "rpId",
  "username",
  "userDisplayName",
  "issuer",
  "name",
  "keyType",
  "keyComment",
]);
const MAIN: Readonly<Record<Item["type"], string>> = {
  login: "password",
  note: "notes",
  card: "number",
  identity: "",
  secret: "value",
  "ssh-key": "privateKey",
  totp: "code",
  "api-credential": "key",
  file: "file",
  "": "",
};
const [MEMBER, CUSTOM, CREDENTIAL] = [0, 1, 2] as const;

/** A field: its section (or empty), its name, its content, whether it is a secret, and its type. */
export class FieldValue {
  readonly section: string;
  readonly name: string;
  readonly concealed: boolean;
  readonly type: string;
  readonly #content: () => string | Bytes; // the console of a browser shows texts in private members

  /** Made by `fieldsOf`. */
  constructor(
    section: string,
    name: string,
    content: () => string | Bytes,
    concealed: boolean,
    type = concealed ? CONCEALED : STRING,
  ) {
    this.section = section;
    this.name = name;
    this.concealed = concealed;
    this.type = type;
    this.#content = content;
  }

  /** Its content. */
  get data(): Bytes {
    const content = this.#content();
    return typeof content === "string" ? new TextEncoder().encode(content) : content;
  }

  /** Its content as text; FieldNotFound where it is none. */
  get value(): string {
    const content = this.#content();
    const text = typeof content === "string" ? content : fromText(content);
    if (text === null) throw new FieldNotFound(`The content of ${this.path} is not text.`);
    return text;
  }

  /** How it is named: `name`, or `section/name`. */
  get path(): string {
    return this.section ? `${this.section}/${this.name}` : this.name;
  }
}

/** The field that is meant where none is named: of a login, `password`; empty where the type has none. */
export const mainField = ({ type }: Item): string => MAIN[type];

/** The name of an item's type, as in JSON; empty where it has none. */
export const typeOf = (item: Item): string => (item.type === "" ? item.typeName : item.type);

/** Every field that is not empty, in the order of docs/items.md, without the one-time code of now. */
export const fieldsOf = (item: Item): FieldValue[] => [...all(item)].map(([, one]) => one);

/** Every field that is not empty, with `code`, the one-time code at `now`, in seconds since 1970. */
export const fieldsAt = async (item: Item, now: number): Promise<FieldValue[]> =>
  [...all(item, await codeAt(item, now))].map(([, one]) => one);

/** Which field of an item is wanted. */
export interface FieldOptions {
  /** Only fields of this section. */
  section?: string | undefined;
  /** The time for the field `code`, in seconds since 1970; that of the device if absent. */
  now?: number | undefined;
}

/**
 * The field of this name. Without a name, the one that is meant by the type: of a login, the password.
 *
 * A member of the type is preferred to a field that a person has added, and that to one of a kept credential. Where no
 * name is the same, capitals, spaces, hyphens and underscores do not matter.
 */
export async function field(
  item: Item,
  name = "",
  { section = "", now = Date.now() / 1000 }: FieldOptions = {},
): Promise<FieldValue> {
  const wanted = name || mainField(item);
  if (!wanted)
    throw new FieldNotFound(`Say which field: an item of the type ${typeOf(item) || "unknown"} has no main field.`);
  const found = [...all(item, await codeAt(item, now))].filter(([, one]) => !section || same(one.section, section));
  for (const fits of [(one: string, other: string) => one === other, same]) {
    for (const rank of [MEMBER, CUSTOM, CREDENTIAL]) {
      const fitting = found.filter(([of, one]) => of === rank && fits(one.name, wanted)).map(([, one]) => one);
      if (fitting.length === 1) return fitting[0] as FieldValue;
      if (fitting.length) throw ambiguous(wanted, fitting);
    }
  }
  if (wanted === "code" && totpOf(item))
    throw new FieldNotFound("The one-time codes of the item cannot be made: its secret or its settings are not valid.");
  throw new FieldNotFound(`The item has no field ${quoted(wanted)}, or it is empty.`);
}

function ambiguous(name: string, fitting: FieldValue[]): AmbiguousName {
  const paths = [...new Set(fitting.map(({ path }) => path))].sort();
  const told =
    paths.length === 1
      ? `The item has ${fitting.length} fields ${quoted(paths[0] as string)}: give them different names.`
      : `The item has several fields ${quoted(name)}; say which one: ${paths.join(", ")}.`;
  return new AmbiguousName(told, paths);
}

const plain = (name: string): string => folded(name).replace(/[ _-]/g, "");
const same = (one: string, other: string): boolean => plain(one) === plain(other);

/** The one-time codes of an item; undefined where it has none. */
export const totpOf = (item: Item): OneTimeCode | undefined =>
  item.type === "login" || item.type === "totp" ? item.totp : undefined;

async function codeAt(item: Item, now: number): Promise<string> {
  const totp = totpOf(item);
  return totp ? orEmpty(() => totpCode(totp, now)) : "";
}

async function orEmpty(made: () => Promise<string>): Promise<string> {
  try {
    return await made();
  } catch (fault) {
    if (fault instanceof InvalidTotp) return "";
    throw fault;
  }
}

/** The content of a file. */
export const fileData = ({ content = "" }: FileContent): Bytes =>
  Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));

function* all(item: Item, code = ""): Generator<[number, FieldValue]> {
  const members = item as unknown as Readonly<Record<string, unknown>>;
  for (const name of ownMembers(item.type)) for (const one of ofMember(name, members[name], code)) yield [MEMBER, one];
  if (item.notes) yield [MEMBER, made("", "notes", item.notes, false)];
  for (const [number, url] of (item.urls ?? []).entries())
    yield [MEMBER, made("", number === 0 ? "url" : `url${number + 1}`, url, false)];
  for (const [number, file] of (item.files ?? []).entries()) {
    if (item.type === "file" && number === 0)
      yield [MEMBER, new FieldValue("", "file", () => fileData(file), true, "file")];
    yield [CUSTOM, fileField(file)];
  }
  for (const { section = "", label = "", value, type = STRING } of item.fields ?? [])
    if (value) yield [CUSTOM, new FieldValue(section, label, () => value, isConcealed(type), type)];
  for (const credential of item.credentials ?? []) for (const one of ofCredential(credential)) yield [CREDENTIAL, one];
}

/** A file as a field of the section `files`. */
export const fileField = (file: FileContent): FieldValue =>
  new FieldValue("files", file.name ?? "", () => fileData(file), true, "file");

function* ofMember(name: string, value: unknown, code: string): Generator<FieldValue> {
  if (name === "totp" && isObject(value)) {
    yield made("", name, totpText(value), true);
    if (code) yield made("", "code", code, true);
  } else if (isObject(value)) {
    for (const inner of PARTS[name]?.keys() ?? []) {
      const text = memberOf(value, inner);
      if (typeof text === "string" && text) yield made(name, inner, text, false);
    }
  } else if (typeof value === "string" && value) yield made("", name, value, isSecretMember(name));
}

/** One-time codes as text: the URI, or the secret alone where there is none. */
export function totpText(totp: OneTimeCode): string {
  try {
    return totpUri(totp);
  } catch (fault) {
    if (fault instanceof InvalidTotp) return totp.secret ?? "";
    throw fault;
  }
}

function* ofCredential(credential: Readonly<Record<string, unknown>>): Generator<FieldValue> {
  const kind = memberOf(credential, "type");
  const section = typeof kind === "string" ? kind : "";
  for (const [name, value] of Object.entries(credential)) {
    const inner = isObject(value) ? memberOf(value, "value") : undefined;
    if (isObject(value) && typeof inner === "string" && inner) {
      const named = memberOf(value, "fieldType");
      const type = typeof named === "string" ? named : "None";
      yield made(section, name, inner, isConcealed(type), type);
    } else if (typeof value === "string" && value && name !== "type") {
      yield made(section, name, value, !OPEN_CREDENTIAL_MEMBERS.has(name));
    }
  }
}

const made = (section: string, name: string, text: string, concealed: boolean, type?: string): FieldValue =>
  new FieldValue(section, name, () => text, concealed, type);
