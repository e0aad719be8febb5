// FIDO's Credential Exchange Format 1.0: JSON, in and out without loss.
import { isObject } from "../../format/encoding.js";
import { Sha256 } from "../../format/sha256.js";
import { isSame } from "../differences.js";
import { FileRefused } from "../errors.js";
import { fileData } from "../fields.js";
import { CONCEALED, Misfit, oneTimeCode, PARTS, STRING } from "../shapes.js";
import type { Field, FileContent, Item, ItemType } from "../types.js";
import { b64url, fromHex, uuidBytes } from "./bytes.js";
import { applied, byName, type Change, changes, inOrder, wellFormed } from "./changes.js";
import {
  checked,
  folder,
  folderNames,
  type Found,
  get,
  innerFolder,
  isEmpty,
  isMisfit,
  itemsOf,
  type Json,
  listed,
  membersOf,
  MOST_FOLDERS,
  named,
  Problem,
  type Reader,
  readAll,
  seconds,
  shortened,
  sourceId,
  textOf,
  unplaced,
  without,
  type Writer,
} from "./common.js";
import { contentId, parseJson, spelled } from "./json.js";
import { isNumbered, overlay, SourceIds, withOverlay } from "./overlay.js";
import * as sshKeys from "./sshKeys.js";

const NAME = "cxf";
/** No domain is ours: whoever runs strongroom has their own. */
const EXPORTER = "strongroom.invalid";
const EXTENSION = `${EXPORTER}/item`;
const DEEPEST = 50;
const HEADER = ["version", "exporterRpId", "exporterDisplayName", "timestamp", "accounts"];
const ACCOUNT = ["id", "collections", "items"];
const COLLECTION = ["id", "title", "creationAt", "modifiedAt", "items", "subCollections"];
const [DATE, MONTH] = ["date", "year-month"];
/** The credentials that become the members of an item, and the type of each member that is an editable field. */
const FLAT: Readonly<Record<string, readonly [ItemType, Readonly<Record<string, string>>]>> = {
  "basic-auth": ["login", { username: STRING, password: CONCEALED }],
  "credit-card": [
    "card",
    {
      number: CONCEALED,
      fullName: STRING,
      cardType: STRING,
      verificationNumber: CONCEALED,
      pin: CONCEALED,
      expiryDate: MONTH,
      validFrom: MONTH,
    },
  ],
  "api-key": [
    "api-credential",
    { key: CONCEALED, username: STRING, keyType: STRING, url: STRING, validFrom: DATE, expiryDate: DATE },
  ],
  "ssh-key": ["ssh-key", { creationDate: DATE, expiryDate: DATE, keyGenerationSource: STRING }],
};
/** The credentials of an identity, and the member that each becomes. */
const OF_IDENTITY: Readonly<Record<string, string>> = {
  "person-name": "name",
  address: "address",
  "identity-document": "document",
  passport: "passport",
  "drivers-license": "license",
};
const PART_TYPES: Readonly<Record<string, string>> = {
  birthDate: DATE,
  issueDate: DATE,
  expiryDate: DATE,
  country: "country-code",
  issuingCountry: "country-code",
  territory: "subdivision-code",
};
/** Which credential decides the type of an item, the first that is there. */
const DECIDING: readonly (readonly [string, ItemType])[] = [
  ...Object.entries(FLAT).map(([kind, [type]]) => [kind, type] as const),
  ["passkey", "login"],
  ...Object.keys(OF_IDENTITY).map((kind) => [kind, "identity"] as const),
  ["generated-password", "secret"],
  ["totp", "totp"],
  ["note", "note"],
];

// Reading

/** The items of all accounts in a file. */
export const read: Reader = async function* (file) {
  const raw = parseJson(await readAll(file));
  let accounts = get(raw, "accounts");
  let besides: Iterable<Found> = [];
  if (Array.isArray(accounts)) {
    const version = get(raw, "version");
    const major = get(version, "major") ?? null;
    if (isObject(version) && !([null, 0, 1, false, true] as unknown[]).includes(major))
      throw new FileRefused("The file has a later version of CXF than 1.");
    besides = unplaced("The file", raw as Json, HEADER);
  } else if (isObject(raw) && Array.isArray(get(raw, "items")) && !Object.hasOwn(raw, "encrypted")) accounts = [raw];
  else throw new FileRefused("The file is not CXF: it has no accounts.");
  yield* checked(itemsOfAccounts(accounts as unknown[], besides));
};

function* itemsOfAccounts(accounts: readonly unknown[], besides: Iterable<Found>): Generator<Found> {
  yield* besides;
  let number = 0;
  for (const account of accounts) {
    const all = get(account, "items");
    if (!Array.isArray(all)) {
      yield new Problem("An account of the file has no list of items.");
      continue;
    }
    yield* unplaced("An account of the file", account as Json, ACCOUNT);
    const folders = new Map<string, Set<string>>();
    yield* collect(get(account, "collections"), "", 0, folders);
    for (const raw of all as unknown[]) {
      number += 1;
      let found: Found;
      try {
        found = isObject(raw) ? readItem(raw, folders) : new Problem(`${named(null, number)} is not an item of CXF.`);
      } catch (fault) {
        if (!isMisfit(fault)) throw fault;
        found = new Problem(`${named(get(raw, "title"), number)} is not an item of CXF.`);
      }
      yield found;
    }
  }
}

/** The folders of every item, by the collections that name it. */
function* collect(
  collections: unknown,
  path: string,
  depth: number,
  folders: Map<string, Set<string>>,
): Generator<Problem> {
  for (const one of listed(collections)) {
    const title = get(one, "title");
    if (depth > DEEPEST || typeof title !== "string") {
      yield new Problem("A collection of the file has no title, or is nested too deeply; it was left out.");
      continue;
    }
    yield* unplaced(`The collection ${shortened(title)}`, one as Json, COLLECTION);
    const here = innerFolder(path, title);
    const [links, inner] = [get(one, "items"), get(one, "subCollections")];
    for (const link of listed(links)) {
      const item = get(link, "item");
      if (typeof item !== "string") continue;
      const known = folders.get(item) ?? new Set();
      if (known.size <= MOST_FOLDERS) folders.set(item, known.add(here));
    }
    if (isEmpty(links) && isEmpty(inner))
      yield new Problem(`The collection ${shortened(title)} is empty; it was left out.`);
    yield* collect(inner, here, depth + 1, folders);
  }
}

function readItem(given: Readonly<Json>, folders: ReadonlyMap<string, ReadonlySet<string>>): Item {
  const extensions = listed(get(given, "extensions"));
  const ours = extensions.find((one) => get(one, "name") === EXTENSION);
  const others = extensions.filter((one) => one !== ours);
  const raw =
    ours === undefined ? given : { ...without(given, "extensions"), ...(others.length ? { extensions: others } : {}) };
  const made = toItem(raw);
  const id = textOf(get(raw, "id")) || contentId(raw);
  const order = itemsOf(get(raw, "credentials")).filter(isObject).map(typeName);
  const isOther = !isSame(credentialsOf(made).map(typeName), order);
  const source = { format: NAME, id, ...(isOther ? { order } : {}) };
  const kept = changes(keyed(foreign({ ...made, source }, id)), keyed(raw));
  const item = {
    ...made,
    folders: [...(folders.get(id) ?? [])],
    source: { ...source, changes: kept },
  } as unknown as Item;
  return ours === undefined ? item : withOverlay(item, get(ours, "item"));
}

const typeName = (credential: Readonly<Json>): string => spelled(get(credential, "type"));

/** An item of CXF, without its source and its folders. */
function toItem(raw: Readonly<Json>): Item {
  const credentials = itemsOf(get(raw, "credentials")).map(membersOf);
  const present = credentials.map((one) => get(one, "type"));
  const type = DECIDING.find(([kind]) => present.includes(kind))?.[1] ?? "note";
  const scope = membersOf(get(raw, "scope"));
  const item: Json = {
    type,
    title: textOf(get(raw, "title")),
    subtitle: textOf(get(raw, "subtitle")),
    favorite: get(raw, "favorite") === true,
    urls: itemsOf(get(scope, "urls")).map(textOf),
    apps: itemsOf(get(scope, "androidApps")).map(membersOf),
    tags: itemsOf(get(raw, "tags")).map(textOf),
    creationAt: seconds(get(raw, "creationAt")),
    modifiedAt: seconds(get(raw, "modifiedAt")),
    fields: [],
    credentials: [],
  };
  const taken = new Set<string>();
  for (const one of credentials) {
    const kind = typeName(one);
    const repeats = taken.has(kind) && kind !== "custom-fields";
    if (repeats || !take(item, type, kind, one)) (item.credentials as unknown[]).push(one);
    else taken.add(kind);
  }
  return item as unknown as Item;
}

/** Make a credential the members of an item; false where it has to be kept as it is. */
function take(item: Json, type: ItemType, kind: string, one: Readonly<Json>): boolean {
  const flat = Object.hasOwn(FLAT, kind) ? FLAT[kind] : undefined;
  if (flat && flat[0] === type) return takeFlat(item, kind, flat[1], one);
  if (Object.hasOwn(OF_IDENTITY, kind) && type === "identity") {
    const part = OF_IDENTITY[kind] as string;
    const values = valuesOf(one, [...(PARTS[part]?.keys() ?? [])]);
    item[part] = values;
    if (!Object.keys(values).length) delete item[part];
    return Object.keys(values).length > 0;
  }
  if (kind === "note") {
    item.notes = fieldValue(get(one, "content")) ?? "";
    return item.notes !== "";
  }
  const password = get(one, "password");
  if (kind === "generated-password" && type === "secret" && typeof password === "string") {
    item.value = password;
    return password !== "";
  }
  if (kind === "totp" && (type === "login" || type === "totp")) {
    try {
      const found = oneTimeCode(without(one, "type"));
      item.totp = found;
      return Boolean(found.secret);
    } catch (fault) {
      if (!(fault instanceof Misfit)) throw fault;
      return false;
    }
  }
  return kind === "custom-fields" && takeFields(item, one);
}

function takeFlat(item: Json, kind: string, types: Readonly<Record<string, string>>, one: Readonly<Json>): boolean {
  const values = valuesOf(one, Object.keys(types));
  if (kind === "ssh-key") {
    const key = get(one, "privateKey");
    const text = typeof key === "string" ? sshKeys.pem(key) : undefined;
    if (text === undefined) return false;
    values.privateKey = text;
    for (const name of ["keyType", "keyComment"]) {
      const value = get(one, name);
      if (typeof value === "string") values[name] = value;
    }
  }
  Object.assign(item, values);
  return Object.keys(values).length > 0;
}

function takeFields(item: Json, one: Readonly<Json>): boolean {
  const [label, all] = [Object.hasOwn(one, "label") ? one.label : "", get(one, "fields")];
  if (typeof label !== "string" || !Array.isArray(all) || !all.length) return false;
  const found: Json[] = [];
  for (const raw of all as unknown[]) {
    const value = fieldValue(raw);
    if (value === undefined || !isObject(raw)) return false;
    const name = Object.hasOwn(raw, "label") ? raw.label : "";
    if (typeof name !== "string" || Object.hasOwn(raw, "section") || Object.hasOwn(raw, "type")) return false;
    const type = Object.hasOwn(raw, "fieldType") ? spelled(raw.fieldType) : STRING;
    found.push({ ...without(raw, "label", "value", "fieldType"), label: name, value, type, section: label });
  }
  for (const field of found) (item.fields as unknown[]).push(field); // more than a call takes as arguments
  return true;
}

const valuesOf = (one: Readonly<Json>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name): [string, string][] => {
      const value = fieldValue(get(one, name));
      return value ? [[name, value]] : [];
    }),
  );

/** The value of an editable field; undefined where it is none. */
function fieldValue(field: unknown): string | undefined {
  const value = get(field, "value");
  return typeof value === "string" ? value : undefined;
}

// Writing

/** A collection while it is made: those in it, and links to items. */
interface Place {
  readonly inner: Map<string, Place>;
  readonly links: Json[];
}

const place = (): Place => ({ inner: new Map(), links: [] });

/** A file with one account. The items come with the uids of their documents. */
export const write: Writer = (all, now) => {
  const root = place();
  const ids = new SourceIds(NAME);
  const made = [...all].map(([uid, item]) => {
    const ownId = ids.of(item);
    const id = identifierOf(uid, ownId);
    for (const path of item.folders ?? []) {
      let here = root;
      for (const name of folderNames(path)) {
        const next = here.inner.get(name) ?? place();
        here.inner.set(name, next);
        here = next;
      }
      here.links.push({ item: id });
    }
    return writeItem(uid, item, id, ownId);
  });
  const account = {
    id: b64url(new TextEncoder().encode("strongroom")),
    username: "",
    email: "",
    collections: collectionsOf(root, ""),
    items: made,
  };
  const header = {
    version: { major: 1, minor: 0 },
    exporterRpId: EXPORTER,
    exporterDisplayName: "strongroom",
    timestamp: now,
    accounts: [account],
  };
  return new TextEncoder().encode(JSON.stringify(header, null, 1));
};

function collectionsOf({ inner }: Place, path: string): Json[] {
  return [...inner].map(([title, one]) => {
    const here = `${path}/${folder(title)}`;
    const more = one.inner.size ? { subCollections: collectionsOf(one, here) } : {};
    return { id: b64url(fromHex(sourceId(here))), title, items: one.links, ...more };
  });
}

function identifierOf(uid: string, ownId: string | undefined): string {
  if (ownId !== undefined) return isNumbered(ownId) ? b64url(fromHex(sourceId("item", ownId))) : ownId;
  return b64url(uuidBytes(uid) ?? new TextEncoder().encode(uid).slice(0, 64));
}

function writeItem(uid: string, item: Item, id: string, ownId: string | undefined): Json {
  let made = foreign(item, id);
  const kept = item.source?.changes ?? [];
  if (item.source?.format === NAME && wellFormed(kept))
    made = listedAgain(applied(keyed(made), kept as unknown as Change[]) as Json);
  const again = { ...toItem(made), folders: item.folders };
  const beside = overlay(uid, item, again, NAME, get(made, "id") === ownId ? undefined : ownId);
  if (!Object.keys(beside).length) return made;
  return { ...made, extensions: [...itemsOf(get(made, "extensions")), { name: EXTENSION, item: beside }] };
}

const keyed = (raw: Readonly<Json>): Json =>
  Object.hasOwn(raw, "credentials") ? { ...raw, credentials: byName(raw.credentials, "type") } : raw;
const listedAgain = (raw: Readonly<Json>): Json =>
  Object.hasOwn(raw, "credentials") ? { ...raw, credentials: inOrder(raw.credentials) } : raw;

/** What CXF has of an item, before what was kept of the original. */
function foreign(item: Item, id: string): Json {
  const { title = "", creationAt, modifiedAt, subtitle, favorite, urls = [], apps = [], tags = [] } = item;
  return {
    id,
    title,
    ...(creationAt === undefined ? {} : { creationAt }),
    ...(modifiedAt === undefined ? {} : { modifiedAt }),
    ...(subtitle ? { subtitle } : {}),
    ...(favorite ? { favorite } : {}),
    ...(urls.length || apps.length ? { scope: { urls, androidApps: apps } } : {}),
    credentials: credentialsOf(item),
    ...(tags.length ? { tags } : {}),
  };
}

function credentialsOf(item: Item): Json[] {
  const made = typedCredentials(item);
  if (item.notes) made.push({ type: "note", content: { fieldType: STRING, value: item.notes } });
  for (const [section, group] of sections(item.fields ?? [])) made.push(fieldsCredential(section, group));
  for (const file of item.files ?? []) made.push(fileCredential(file));
  for (const one of item.credentials ?? []) made.push(one);
  const order = item.source?.format === NAME ? (item.source.order ?? []) : [];
  const waiting = new Map<string, number[]>(); // places in the list, by type, the first one last
  for (const [at, one] of [...made.entries()].reverse()) {
    const places = waiting.get(typeName(one));
    if (places) places.push(at);
    else waiting.set(typeName(one), [at]);
  }
  const first = order.flatMap((kind) => waiting.get(kind)?.pop() ?? []);
  const left = [...waiting.values()].flat().sort((one, other) => one - other);
  return [...first, ...left].map((at) => made[at] as Json);
}

/** The fields by the sections that follow on each other. */
function sections(fields: readonly Field[]): [string, Field[]][] {
  const found: [string, Field[]][] = [];
  for (const one of fields) {
    const last = found.at(-1);
    if (last && last[0] === (one.section ?? "")) last[1].push(one);
    else found.push([one.section ?? "", [one]]);
  }
  return found;
}

function fileCredential(file: FileContent): Json {
  const data = fileData(file);
  const hash = fromHex(new Sha256().update(data).hex);
  return {
    type: "file",
    id: b64url(hash.subarray(0, 16)),
    name: file.name ?? "",
    decryptedSize: data.length,
    integrityHash: b64url(hash),
  };
}

/** The credentials of the members that an item's type has. */
function typedCredentials(item: Item): Json[] {
  const found: Json[] = [];
  for (const [kind, [type, types]] of Object.entries(FLAT)) {
    if (item.type !== type) continue;
    const made = { type: kind, ...editable(item, types) };
    const whole = item.type === "ssh-key" ? sshCredential(item, made) : made;
    if (Object.keys(whole).length > 1) found.push(whole);
  }
  if (item.type === "identity") {
    for (const [kind, name] of Object.entries(OF_IDENTITY)) {
      const [part, names] = [get(item, name), [...(PARTS[name]?.keys() ?? [])]];
      if (isObject(part))
        found.push({
          type: kind,
          ...editable(part, Object.fromEntries(names.map((one) => [one, PART_TYPES[one] ?? STRING]))),
        });
    }
  }
  if (item.type === "secret" && item.value) found.push({ type: "generated-password", password: item.value });
  if ((item.type === "login" || item.type === "totp") && item.totp) {
    const { secret = "", period = 30, digits = 6, username, algorithm = "sha1", issuer } = item.totp;
    found.push({
      type: "totp",
      secret,
      period,
      digits,
      ...(username ? { username } : {}),
      algorithm,
      ...(issuer ? { issuer } : {}),
    });
  }
  return found;
}

function sshCredential(item: Item & { readonly type: "ssh-key" }, found: Json): Json {
  const key = sshKeys.pkcs8(item.privateKey ?? "");
  if (key === undefined) return {};
  const keyType = item.keyType || sshKeys.algorithm(item.privateKey ?? "", item.publicKey ?? "");
  return { ...found, keyType, privateKey: key, ...(item.keyComment ? { keyComment: item.keyComment } : {}) };
}

const editable = (holder: object, types: Readonly<Record<string, string>>): Json =>
  Object.fromEntries(
    Object.entries(types).flatMap(([name, fieldType]): [string, Json][] => {
      const value = get(holder, name);
      return value ? [[name, { fieldType, value }]] : [];
    }),
  );

function fieldsCredential(section: string, group: readonly Field[]): Json {
  const fields = group.map(({ label, value = "", type = STRING, section: _section, ...extra }) => {
    const made: Json = { fieldType: type, value, ...(label ? { label } : {}) };
    return { ...made, ...Object.fromEntries(Object.entries(extra).filter(([name]) => !Object.hasOwn(made, name))) };
  });
  return { type: "custom-fields", ...(section ? { label: section } : {}), fields };
}
