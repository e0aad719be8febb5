// 1Password's 1PUX: a zip file with `export.data`, and the files of items in `files/`.
import { isObject } from "../../format/encoding.js";
import { FileRefused, InvalidTotp } from "../errors.js";
import { CONCEALED, STRING } from "../shapes.js";
import { partition, strip } from "../text.js";
import { parseTotp } from "../totp.js";
import type { Item, ItemType } from "../types.js";
import { toBase64 } from "./bytes.js";
import {
  checked,
  fitsBesides,
  type Found,
  get,
  grouped,
  innerFolder,
  isMisfit,
  isoDate,
  itemsOf,
  type Json,
  keptBesides,
  listed,
  membersOf,
  MOST_ATTACHMENT,
  named,
  Problem,
  put,
  type Reader,
  seconds,
  shortened,
  sourced,
  sourceIdOf,
  textOf,
  unplaced,
} from "./common.js";
import { parseJson, spelled } from "./json.js";
import { Archive } from "./zip.js";

const NAME = "1pux";
const CATEGORIES: Readonly<Record<string, ItemType>> = {
  "001": "login",
  "002": "card",
  "003": "note",
  "004": "identity",
  "005": "secret",
  "006": "file",
  "103": "identity",
  "106": "identity",
  "108": "identity",
  "110": "login",
  "112": "api-credential",
  "114": "ssh-key",
};
type Names = Readonly<Record<string, string>>;
/** The fields of 1Password's categories that are members of an item, by category and id. */
const MEMBERS: Readonly<Record<string, Names>> = {
  "002": {
    ccnum: "number",
    cardholder: "fullName",
    type: "cardType",
    cvv: "verificationNumber",
    pin: "pin",
    expiry: "expiryDate",
    validFrom: "validFrom",
  },
  "110": { username: "username", password: "password" },
  "112": {
    credential: "key",
    username: "username",
    type: "keyType",
    hostname: "url",
    validFrom: "validFrom",
    expires: "expiryDate",
  },
};
const PARTS: Readonly<Record<string, readonly [string, Names]>> = {
  "004": ["name", { firstname: "given", initial: "given2", lastname: "surname" }],
  "103": [
    "license",
    {
      fullname: "fullName",
      number: "licenseNumber",
      class: "licenseClass",
      state: "territory",
      country: "country",
      birthdate: "birthDate",
      expiry_date: "expiryDate",
    },
  ],
  "106": [
    "passport",
    {
      type: "passportType",
      issuing_country: "issuingCountry",
      number: "passportNumber",
      fullname: "fullName",
      sex: "sex",
      nationality: "nationality",
      issuing_authority: "issuingAuthority",
      birthdate: "birthDate",
      birthplace: "birthPlace",
      issue_date: "issueDate",
      expiry_date: "expiryDate",
    },
  ],
  "108": ["document", { name: "fullName", number: "identificationNumber" }],
};
const ADDRESS: Names = {
  street: "streetAddress",
  city: "city",
  state: "territory",
  zip: "postalCode",
  country: "country",
};
const TYPES: Names = {
  concealed: CONCEALED,
  email: "email",
  date: "date",
  monthYear: "year-month",
  totp: CONCEALED,
  creditCardNumber: CONCEALED,
};
const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The items of all accounts and vaults; a vault becomes a folder. */
export const read: Reader = async function* (file) {
  const archive = await Archive.open(file);
  const data = await archive.read("export.data");
  if (!data) throw new FileRefused("The file is not 1PUX: it has no export.data, or that is damaged or too large.");
  const accounts = get(parseJson(data), "accounts");
  if (!Array.isArray(accounts)) throw new FileRefused("The file is not 1PUX: it has no accounts.");
  yield* checked(itemsOfAccounts(accounts, archive));
};

async function* itemsOfAccounts(accounts: readonly unknown[], archive: Archive): AsyncGenerator<Found> {
  let number = 0;
  for (const account of accounts) {
    const besides = new Besides("account", attributesOf(account));
    for (const vault of listed(get(account, "vaults"))) {
      const attributes = attributesOf(vault);
      const given = taken(attributes, "name");
      const name = typeof given === "string" ? given : "";
      const ofVault = new Besides("vault", attributes);
      const within = innerFolder("", name);
      const all = listed(get(vault, "items"));
      for (const one of all) {
        number += 1;
        const raw = isObject(one) && Object.hasOwn(one, "item") ? one.item : one;
        for await (const found of readOne(raw, number, within, archive))
          yield found instanceof Problem ? found : ofVault.keptWith(besides.keptWith(found));
      }
      yield* ofVault.leftOut(`The vault ${shortened(name)}`);
      if (!all.length) yield new Problem(`The vault ${shortened(name)} has no items; it was left out.`);
    }
    yield* besides.leftOut("An account of the file");
  }
  const count = archive.countOthers("files/");
  if (count)
    yield new Problem(
      `The zip file has files that belong to no item that was read: ${grouped(count)}. They were left out.`,
    );
}

/** What an account or a vault says of itself. */
function attributesOf(holder: unknown): Json {
  const found = get(holder, "attrs");
  return isObject(found) ? { ...found } : {};
}

/** What an account or a vault says of itself: kept with its first item. */
class Besides {
  readonly #name: string;
  readonly #fits: boolean;
  #attributes: Json;

  constructor(name: string, attributes: Json) {
    this.#name = name;
    this.#fits = fitsBesides(attributes);
    this.#attributes = this.#fits ? (pruned(attributes) as Json) : attributes;
  }

  /** The item with it, unless it is kept already. */
  keptWith(item: Item): Item {
    const kept =
      this.#fits && Object.keys(this.#attributes).length
        ? keptBesides(item, { [this.#name]: this.#attributes })
        : undefined;
    if (kept) this.#attributes = {};
    return kept ?? item;
  }

  /** A sentence where it is not kept. */
  leftOut(holder: string): Iterable<Problem> {
    return unplaced(holder, this.#attributes, []);
  }
}

async function* readOne(raw: unknown, number: number, within: string, archive: Archive): AsyncGenerator<Found> {
  if (!isObject(raw)) {
    yield new Problem(`${named(null, number)} is not an item of 1Password.`);
    return;
  }
  let title: unknown = null;
  let found: Found[];
  try {
    title = get(membersOf(get(raw, "overview")), "title");
    if (get(raw, "trashed") === true || get(raw, "state") === "trashed") {
      found = [new Problem(`${named(title, number)} is in the trash of 1Password, and was left out.`)];
    } else found = await new Reading(structuredClone(raw), archive).read(within);
  } catch (fault) {
    if (!isMisfit(fault)) throw fault;
    found = [new Problem(`${named(title, number)} is not an item of 1Password.`)];
  }
  yield* found;
}

/** A member of an object, which is taken out of it. */
function taken(object: Readonly<Json>, name: string): unknown {
  const value = get(object, name);
  delete (object as Json)[name];
  return value;
}

/** Reads one item: takes out what becomes a member, and keeps the rest. */
class Reading {
  readonly #raw: Json;
  readonly #archive: Archive;
  readonly #category: string;
  readonly #type: ItemType;
  readonly #item: Json;
  readonly #fields: Json[] = [];
  readonly #files: Json[] = [];
  readonly #problems: Problem[] = [];

  constructor(raw: Readonly<Json>, archive: Archive) {
    this.#raw = raw;
    this.#archive = archive;
    this.#category = textOf(get(raw, "categoryUuid"));
    this.#type = own(CATEGORIES, this.#category) ?? "note";
    this.#item = { type: this.#type, fields: this.#fields, files: this.#files };
  }

  async read(within: string): Promise<Found[]> {
    const [raw, item] = [this.#raw, this.#item];
    const [overview, details] = [membersOf(get(raw, "overview")), membersOf(get(raw, "details"))];
    item.title = textOf(taken(overview, "title"));
    const tags = itemsOf(taken(overview, "tags")).map(textOf);
    const more = itemsOf(get(overview, "urls")).map((one) => textOf(get(membersOf(one), "url")));
    const urls = [...new Set([textOf(taken(overview, "url")), ...more].filter(Boolean))];
    item.notes = textOf(taken(details, "notesPlain"));
    item.favorite = isTrue(get(raw, "favIndex"));
    item.creationAt = seconds(get(raw, "createdAt"));
    item.modifiedAt = seconds(get(raw, "updatedAt"));
    const said = { createdAt: item.creationAt, updatedAt: item.modifiedAt, favIndex: Number(item.favorite) };
    for (const [name, value] of Object.entries(said)) if (isTheSame(get(raw, name), value)) taken(raw, name);
    item.tags = get(raw, "state") === "archived" ? [...tags, "archived"] : tags;
    item.urls = urls;
    item.folders = within ? [within] : [];
    this.#loginFields(details);
    if (this.#type === "secret") item.value = textOf(taken(details, "password"));
    const described = get(details, "documentAttributes");
    if (isObject(described)) await this.#attach(described);
    for (const section of itemsOf(get(details, "sections"))) await this.#section(membersOf(section));
    const id = textOf(taken(raw, "uuid")) || sourceIdOf([item.title as string, item.notes as string, ...urls]);
    return [...this.#problems, sourced(item, NAME, id, pruned(raw) as Json)];
  }

  #loginFields(details: Readonly<Json>): void {
    const left: unknown[] = [];
    for (const one of itemsOf(get(details, "loginFields"))) {
      const field = membersOf(one);
      const [role, value] = [spelled(get(field, "designation")), textOf(get(field, "value"))];
      if (this.#type === "login" && (role === "username" || role === "password") && !this.#item[role]) {
        this.#item[role] = value;
        delete (field as Json).value;
      } else if (value) {
        const label = textOf(get(field, "name")) || textOf(get(field, "id"));
        this.#fields.push({
          label,
          value,
          type: get(field, "fieldType") === "P" ? CONCEALED : STRING,
          section: "Web form",
        });
        delete (field as Json).value;
      }
      left.push(field);
    }
    if (Object.hasOwn(details, "loginFields")) put(details, "loginFields", left);
  }

  /** The content of a file, from the zip file. */
  async #attach(described: Readonly<Json>): Promise<void> {
    const [name, id] = [textOf(get(described, "fileName")), textOf(get(described, "documentId"))];
    const content = await this.#archive.read(`files/${id}__${name}`, MOST_ATTACHMENT);
    if (content) this.#files.push({ name, content: toBase64(content) });
    else
      this.#problems.push(
        new Problem(`${named(this.#item.title)} has a file that is missing, damaged or too large; it was left out.`),
      );
  }

  async #section(section: Readonly<Json>): Promise<void> {
    const title = textOf(get(section, "title"));
    for (const one of itemsOf(get(section, "fields"))) await this.#field(membersOf(one), title);
  }

  /** Take over a field: its value is taken out where it has a place, and the kind of the value is left. */
  async #field(field: Readonly<Json>, section: string): Promise<void> {
    const given = get(field, "value");
    const wrapped = typeof given === "string" ? { string: given } : given;
    const [only, ...others] = isObject(wrapped) ? Object.entries(wrapped) : [];
    if (!only || others.length) return;
    const [kind, value] = only;
    if (await this.#value(field, section, kind, value)) put(field, "value", kind);
  }

  /** Take over the value of a field; false where it has to be kept, as far as it was not taken out of it. */
  async #value(field: Readonly<Json>, section: string, kind: string, value: unknown): Promise<boolean> {
    const id = textOf(get(field, "id"));
    const label = textOf(get(field, "title")) || id;
    if (kind === "totp" && this.#type === "login" && this.#item.totp === undefined && typeof value === "string") {
      try {
        this.#item.totp = parseTotp(value);
        return true;
      } catch (fault) {
        if (!(fault instanceof InvalidTotp)) throw fault;
      }
    }
    if (isObject(value)) {
      if (kind === "file") {
        await this.#attach(value);
        return false;
      }
      if (kind === "sshKey" && this.#type === "ssh-key") {
        this.#sshKey(value);
        return false;
      }
      if (kind === "address") return this.#address(value, label, section);
    }
    const text = textOfKind(kind, value);
    if (text === undefined) return false;
    if (text && !this.#member(id, text))
      this.#fields.push({ label, value: text, type: own(TYPES, kind) ?? STRING, section });
    if (kind !== "email" || !isObject(value)) return kind !== "date"; // a time, of which the day is shown
    taken(value, "email_address");
    return !isTrue(get(value, "provider"));
  }

  #member(id: string, text: string): boolean {
    const name = own(own(MEMBERS, this.#category) ?? {}, id);
    if (name !== undefined && !this.#item[name]) {
      this.#item[name] = text;
      return true;
    }
    const [part, names] = own(PARTS, this.#category) ?? ["", {}];
    const member = own(names, id);
    if (member === undefined) return false;
    this.#item[part] ??= {};
    const holder = this.#item[part] as Json;
    if (holder[member]) return false;
    holder[member] = text;
    return true;
  }

  #address(value: Readonly<Json>, label: string, section: string): boolean {
    const parts = Object.fromEntries(Object.keys(ADDRESS).map((name) => [name, textOf(get(value, name))])) as Record<
      string,
      string
    >;
    if (!Object.keys(value).every((name) => Object.hasOwn(ADDRESS, name))) return false;
    if (this.#type === "identity" && this.#item.address === undefined) {
      this.#item.address = Object.fromEntries(Object.entries(ADDRESS).map(([name, member]) => [member, parts[name]]));
    } else {
      const lines = [parts.street, strip(`${parts.zip} ${parts.city}`), parts.state, parts.country];
      this.#fields.push({ label, value: lines.filter(Boolean).join("\n"), section });
      return false;
    }
    return true;
  }

  #sshKey(value: Readonly<Json>): void {
    const [item, about] = [this.#item, membersOf(get(value, "metadata"))];
    if (item.privateKey) return;
    item.privateKey = textOf(taken(value, "privateKey"));
    item.publicKey = textOf(taken(about, "publicKey"));
    item.fingerprint = textOf(taken(about, "fingerprint"));
    item.keyType = partition(item.publicKey as string, " ")[0];
  }
}

/** Whether a value is a number, or, as in Python, one that true and false stand for. */
const isTheSame = (value: unknown, number: unknown): boolean =>
  (typeof value === "boolean" ? Number(value) : value) === number;

/** Whether Python takes a value for true. */
function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
}

/** The text of a value; undefined where it is of no known kind. */
function textOfKind(kind: string, value: unknown): string | undefined {
  if (kind === "email" && isObject(value)) {
    const isKnown = Object.keys(value).every((name) => name === "email_address" || name === "provider");
    return isKnown ? textOf(get(value, "email_address")) : undefined;
  }
  const number = typeof value === "boolean" ? Number(value) : Number.isInteger(value) ? (value as number) : undefined;
  if (kind === "date" && (number !== undefined || typeof value === "bigint"))
    return number === undefined ? undefined : isoDate(number);
  if (kind === "monthYear" && (number !== undefined || typeof value === "bigint")) {
    const digits = String(number).padStart(6, "0");
    return /^\d{4}(?:0[1-9]|1[0-2])$/.test(digits) ? `${digits.slice(0, 4)}-${digits.slice(4)}` : undefined;
  }
  return typeof value === "object" && value !== null ? undefined : textOf(value);
}

/** The same without what is empty. */
function pruned(value: unknown): unknown {
  const isEmpty = (one: unknown): boolean =>
    one === "" ||
    one === null ||
    (Array.isArray(one) ? one.length === 0 : isObject(one) && Object.keys(one).length === 0);
  if (Array.isArray(value)) return value.map(pruned).filter((one) => !isEmpty(one));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, one]) => [name, pruned(one)] as const)
      .filter(([, one]) => !isEmpty(one)),
  );
}
