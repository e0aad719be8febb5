// Bitwarden's JSON, plain or encrypted with a password, in; plain, out.
import { isObject } from "../../format/encoding.js";
import { FileRefused, InvalidTotp, PasswordNeeded } from "../errors.js";
import { CONCEALED, ownMembers, STRING } from "../shapes.js";
import { partition, strip } from "../text.js";
import { parseTotp, totpUri } from "../totp.js";
import type { Card, Field, Item, JsonObject, Login, Source, Totp } from "../types.js";
import { identityMembers, readIdentity } from "./bitwardenIdentity.js";
import { b64url, fromB64url, uuidBytes, uuidFrom, uuidText } from "./bytes.js";
import { applied, byName, type Change, changes, inOrder, wellFormed } from "./changes.js";
import {
  checked,
  cutFolder,
  folderNames,
  type Found,
  get,
  isMisfit,
  isoTime,
  itemsOf,
  type Json,
  listed,
  membersOf,
  named,
  type Password,
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

const NAME = "bitwarden";
const TOP = ["encrypted", "passwordProtected", "items", "folders", "collections"];
const FOLDER = ["id", "name", "organizationId"];
const [LOGIN, NOTE, CARD, IDENTITY, SSH_KEY] = [1, 2, 3, 4, 5];
const FIELD_TYPES = [STRING, CONCEALED, "boolean", "linked"];
/** Members of a passkey that CXF has not, with the values that they have in practice. */
const PASSKEY = { keyType: "public-key", keyAlgorithm: "ECDSA", keyCurve: "P-256", counter: "0", discoverable: "true" };
/** Of these, Bitwarden has nothing; their members are shown as fields of a note. */
const AS_NOTES = ["secret", "api-credential", "file"];
/** Of a login, and what names each. */
const LISTS: Readonly<Record<string, string>> = { uris: "uri", fido2Credentials: "credentialId" };

// Reading

/** The items of a file. */
export const read: Reader = async function* (file, password) {
  let raw = parseJson(await readAll(file));
  if (!isObject(raw) || !(Object.hasOwn(raw, "items") || Object.hasOwn(raw, "encrypted")))
    throw new FileRefused("The file is not an export of Bitwarden: it has no items.");
  if (raw.encrypted === true) raw = await decrypted(raw, password);
  const all = get(raw, "items");
  if (!Array.isArray(all)) throw new FileRefused("The file is not an export of Bitwarden: it has no list of items.");
  yield* checked(whole(raw as Json, all));
};

function* whole(raw: Readonly<Json>, all: readonly unknown[]): Generator<Found> {
  yield* unplaced("The file", raw, TOP);
  const names = new Map<string, string>();
  for (const one of [...listed(get(raw, "folders")), ...listed(get(raw, "collections"))]) {
    const [id, name] = [get(one, "id"), get(one, "name")];
    if (typeof id === "string" && typeof name === "string") {
      names.set(id, folderOf(name));
      yield* unplaced(`The folder ${shortened(name)}`, one as Json, FOLDER);
    } else yield new Problem("A folder of the file has no id or no name; it was left out.");
  }
  yield* items(all, names);
  const used = new Set(all.flatMap(placesOf));
  for (const [id, name] of names) {
    if (!used.has(id)) yield new Problem(`The folder ${shortened(shownFolder(name))} has no items; it was left out.`);
  }
}

/** The ids of the folder and of the collections of an item that is not in the trash. */
function placesOf(item: unknown): string[] {
  if ((get(item, "deletedDate") ?? null) !== null) return [];
  return [get(item, "folderId"), ...listed(get(item, "collectionIds"))].filter((one) => typeof one === "string");
}

/** The path of a folder of Bitwarden: its name has those around it, with slashes between them. */
const folderOf = (name: string): string => cutFolder(name.replaceAll("%", "%25"));
const shownFolder = (path: string): string => folderNames(path).join("/");

async function decrypted(raw: Readonly<Json>, password: Password | undefined): Promise<unknown> {
  if (get(raw, "passwordProtected") !== true) {
    throw new FileRefused(
      "This export can only be opened by the Bitwarden account that made it: export again as JSON, or as encrypted JSON with the option 'Password protected'.",
    );
  }
  if (!password) throw new PasswordNeeded();
  const { BadParameters, Opener } = await import("./foreignEncryption.js");
  const opener = await Opener.of(await password(), raw).catch((fault: unknown) => {
    if (!(fault instanceof BadParameters)) throw fault;
    throw new FileRefused("The file asks for a key derivation that no export of Bitwarden has.");
  });
  if (!(await opener.open(get(raw, "encKeyValidation_DO_NOT_EDIT"))))
    throw new PasswordNeeded("The password is wrong, or the file is damaged.");
  const data = await opener.open(get(raw, "data"));
  if (!data) throw new FileRefused("The file is damaged: its password is right, and its content was changed.");
  return parseJson(data);
}

function* items(all: readonly unknown[], names: ReadonlyMap<string, string>): Generator<Found> {
  for (const [at, raw] of all.entries()) {
    const title = get(raw, "name");
    if (!isObject(raw)) yield new Problem(`${named(null, at + 1)} is not an item of Bitwarden.`);
    else if ((get(raw, "deletedDate") ?? null) !== null)
      yield new Problem(`${named(title, at + 1)} is in the trash of Bitwarden, and was left out.`);
    else {
      let found: Found;
      try {
        found = readItem(raw, names);
      } catch (fault) {
        if (!isMisfit(fault)) throw fault;
        found = new Problem(`${named(title, at + 1)} is not an item of Bitwarden.`);
      }
      yield found;
    }
  }
}

function readItem(given: Readonly<Json>, names: ReadonlyMap<string, string>): Item {
  const ours = get(given, "strongroom");
  const raw = without(given, "strongroom");
  const made = toItem(raw);
  const id = textOf(get(raw, "id")) || contentId(raw);
  const kept = changes(keyed(foreign(made, id)), keyed(without(raw, "folderId")));
  const within = get(raw, "folderId");
  const folders = [...new Set(placesOf(raw).flatMap((one) => names.get(one) ?? []))];
  const source = {
    format: NAME,
    id,
    rest: within === undefined || within === null ? {} : { folderId: within },
    changes: kept,
  };
  const item = { ...made, folders, source } as unknown as Item;
  return ours === undefined || ours === null ? item : withOverlay(item, ours);
}

/** An item of Bitwarden, without its source and its folders. */
function toItem(raw: Readonly<Json>): Item {
  const made = typed(raw);
  const fields = itemsOf(get(raw, "fields")).map((one) => {
    const field = membersOf(one);
    const known = get(field, "type");
    const extra = without(
      field,
      "name",
      "value",
      "type",
      "label",
      "section",
      ...((get(field, "linkedId") ?? null) === null ? ["linkedId"] : []),
    );
    const type = FIELD_TYPES[numberOf(known) ?? -1] ?? CONCEALED;
    return { ...extra, label: textOf(get(field, "name")), value: textOf(get(field, "value")), type };
  });
  return {
    ...made,
    title: textOf(get(raw, "name")),
    notes: textOf(get(raw, "notes")),
    favorite: get(raw, "favorite") === true,
    creationAt: seconds(get(raw, "creationDate")),
    modifiedAt: seconds(get(raw, "revisionDate")),
    fields: [...((made.fields as Field[] | undefined) ?? []), ...fields],
  } as unknown as Item;
}

/** The number of a type; true and false count as 1 and 0. */
const numberOf = (value: unknown): number | undefined =>
  typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : undefined;

/** The type of an item and the members that only it has. */
function typed(raw: Readonly<Json>): Json {
  const kind = numberOf(get(raw, "type"));
  if (kind === LOGIN) return readLogin(membersOf(get(raw, "login")));
  if (kind === CARD) return readCard(membersOf(get(raw, "card")));
  if (kind === IDENTITY) return readIdentity(membersOf(get(raw, "identity")));
  if (kind !== SSH_KEY) return { type: "note" };
  const key = membersOf(get(raw, "sshKey"));
  return {
    type: "ssh-key",
    privateKey: textOf(get(key, "privateKey")),
    publicKey: textOf(get(key, "publicKey")),
    fingerprint: textOf(get(key, "keyFingerprint")),
  };
}

function readLogin(login: Readonly<Json>): Json {
  const found: Json = {
    type: "login",
    username: textOf(get(login, "username")),
    password: textOf(get(login, "password")),
    urls: itemsOf(get(login, "uris"))
      .map((one) => textOf(get(membersOf(one), "uri")))
      .filter(Boolean),
  };
  const code = get(login, "totp");
  if (typeof code === "string" && strip(code)) {
    try {
      found.totp = parseTotp(code);
    } catch (fault) {
      if (!(fault instanceof InvalidTotp)) throw fault;
      found.fields = [{ label: "totp", value: code, type: CONCEALED }];
    }
  }
  return { ...found, credentials: itemsOf(get(login, "fido2Credentials")).map((one) => readPasskey(membersOf(one))) };
}

function readCard(card: Readonly<Json>): Json {
  const [month, year] = [textOf(get(card, "expMonth")), textOf(get(card, "expYear"))];
  const isWhole = /^\d{4}$/.test(year) && /^(?:0?[1-9]|1[0-2])$/.test(month);
  return {
    type: "card",
    number: textOf(get(card, "number")),
    fullName: textOf(get(card, "cardholderName")),
    cardType: textOf(get(card, "brand")),
    verificationNumber: textOf(get(card, "code")),
    expiryDate: isWhole ? `${year}-${month.padStart(2, "0")}` : "",
  };
}

/** A passkey as CXF has it. */
function readPasskey(raw: Readonly<Json>): Json {
  const id = textOf(get(raw, "credentialId"));
  const bytes = id.startsWith("b64.") ? undefined : uuidBytes(id);
  return {
    type: "passkey",
    credentialId: id.startsWith("b64.") ? id.slice(4) : bytes ? b64url(bytes) : id,
    rpId: textOf(get(raw, "rpId")),
    username: textOf(get(raw, "userName")),
    userDisplayName: textOf(get(raw, "userDisplayName")),
    userHandle: textOf(get(raw, "userHandle")),
    key: textOf(get(raw, "keyValue")),
  };
}

// Writing

/** A plain file. The items come with the uids of their documents. */
export const write: Writer = (all) => {
  const folders = new Map<string, string>();
  const ids = new SourceIds(NAME);
  const made = [...all].map(([uid, item]) => {
    const source = item.source?.format === NAME ? item.source : undefined;
    const one = writeItem(uid, item, ids.of(item), source);
    if (!item.folders?.length) return { ...one, folderId: null };
    const name = folderName(item);
    const known = get(source?.rest, "folderId");
    if (!folders.has(name)) folders.set(name, typeof known === "string" ? known : uuidFrom(sourceId("folder", name)));
    return { ...one, folderId: folders.get(name) };
  });
  const listing = [...folders].map(([name, id]) => ({ id, name }));
  return new TextEncoder().encode(JSON.stringify({ encrypted: false, folders: listing, items: made }, null, 2));
};

/** The name of an item's folder as Bitwarden has it, the names around it included. */
const folderName = (item: Item): string => shownFolder(item.folders?.[0] ?? "");

function writeItem(uid: string, item: Item, ownId: string | undefined, source: Source | undefined): Json {
  let made = foreign(item, ownId === undefined ? uid : isNumbered(ownId) ? uuidFrom(sourceId("item", ownId)) : ownId);
  const kept = source?.changes ?? [];
  if (source && wellFormed(kept)) made = listedAgain(applied(keyed(made), kept as unknown as Change[]) as Json);
  const again = { ...toItem(made), folders: item.folders?.length ? [folderOf(folderName(item))] : [] };
  const beside = overlay(uid, item, again, NAME, get(made, "id") === ownId ? undefined : ownId);
  return Object.keys(beside).length ? { ...made, strongroom: beside } : made;
}

function keyed(raw: Readonly<Json>): Json {
  const login = get(raw, "login");
  if (!isObject(login)) return raw;
  const lists = Object.entries(LISTS).filter(([name]) => Object.hasOwn(login, name));
  return {
    ...raw,
    login: { ...login, ...Object.fromEntries(lists.map(([name, by]) => [name, byName(login[name], by)])) },
  };
}

function listedAgain(raw: Readonly<Json>): Json {
  const login = get(raw, "login");
  if (!isObject(login)) return raw;
  const lists = Object.keys(LISTS).filter((name) => Object.hasOwn(login, name));
  return { ...raw, login: { ...login, ...Object.fromEntries(lists.map((name) => [name, inOrder(login[name])])) } };
}

/** What Bitwarden has of an item, before what was kept of the original. */
function foreign(item: Item, id: string): Json {
  const when = isoTime(item.creationAt || 0);
  const found: Json = {
    passwordHistory: null,
    revisionDate: isoTime(item.modifiedAt || item.creationAt || 0),
    creationDate: when,
    deletedDate: null,
    id,
    organizationId: null,
    type: NOTE,
    reprompt: 0,
    name: item.title ?? "",
    notes: item.notes || null,
    favorite: item.favorite ?? false,
    fields: [],
    collectionIds: null,
  };
  let fields = item.fields ?? [];
  let more: Json = { secureNote: { type: 0 } };
  if (item.type === "login" || item.type === "totp") {
    let login = loginOf(item, when);
    const [first] = fields;
    // one-time codes that could not be read came as a field, the first
    if (login.totp === null && first?.label === "totp" && first.type === CONCEALED && !first.section) {
      login = { ...login, totp: first.value ?? "" };
      fields = fields.slice(1);
    }
    more = { type: LOGIN, login };
  } else if (item.type === "card") more = { type: CARD, card: cardOf(item) };
  else if (item.type === "identity") {
    const [identity, left] = identityMembers(item);
    fields = left;
    more = { type: IDENTITY, identity };
  } else if (item.type === "ssh-key") {
    const { privateKey, publicKey, fingerprint } = item;
    more = {
      type: SSH_KEY,
      sshKey: { privateKey: privateKey || null, publicKey: publicKey || null, keyFingerprint: fingerprint || null },
    };
  }
  return { ...found, ...more, fields: [...membersAsFields(item), ...fields].map(fieldOf) };
}

function membersAsFields(item: Item): Field[] {
  if (!AS_NOTES.includes(item.type)) return [];
  return ownMembers(item.type).flatMap((label) => {
    const value = get(item, label);
    return typeof value === "string" && value ? [{ label, value, type: CONCEALED }] : [];
  });
}

function fieldOf({ label, value, type = STRING, section: _section, ...extra }: Field): Json {
  const number = Math.max(0, FIELD_TYPES.indexOf(type));
  const more = Object.entries(extra).filter(([name]) => !["name", "value", "type"].includes(name));
  return {
    name: label || null,
    value: value || null,
    type: number,
    linkedId: get(extra, "linkedId") ?? null,
    ...Object.fromEntries(more),
  };
}

function loginOf(item: Login | Totp, when: string): Json {
  const passkeys = (item.credentials ?? []).filter((one) => get(one, "type") === "passkey");
  const { username = "", password = "" } = item.type === "login" ? item : {};
  return {
    uris: (item.urls ?? []).map((uri) => ({ match: null, uri })),
    fido2Credentials: passkeys.map((one) => passkeyOf(one, when)),
    username: username || null,
    password: password || null,
    totp: codeOf(item),
  };
}

function codeOf({ totp }: Login | Totp): string | null {
  if (!totp) return null;
  try {
    return totpUri(totp);
  } catch (fault) {
    if (!(fault instanceof InvalidTotp)) throw fault;
    return totp.secret || null;
  }
}

function cardOf(item: Card): Json {
  const [year, month] = partition(item.expiryDate ?? "", "-");
  const isWhole = /^\d{1,2}$/.test(month);
  return {
    cardholderName: item.fullName || null,
    brand: item.cardType || null,
    number: item.number || null,
    expMonth: isWhole ? String(Number(month)) : null,
    expYear: isWhole ? year : null,
    code: item.verificationNumber || null,
  };
}

function passkeyOf(one: JsonObject, when: string): Json {
  const text = Object.hasOwn(one, "credentialId") ? spelled(one.credentialId) : "";
  const data = fromB64url(text);
  const given = (name: string): unknown => (Object.hasOwn(one, name) ? one[name] : "");
  return {
    ...PASSKEY,
    credentialId: data?.length === 16 ? uuidText(data) : `b64.${text}`,
    keyValue: given("key"),
    rpId: given("rpId"),
    rpName: given("rpId"),
    userHandle: given("userHandle"),
    userName: given("username"),
    userDisplayName: given("userDisplayName"),
    creationDate: when,
  };
}
