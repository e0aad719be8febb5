/** Decoders of responses. What is not a response that this server can give is Tampered. */

import { Tampered } from "../errors.js";

const unreadable = (): never => {
  throw new Tampered("The server's answer cannot be read.");
};
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A reader of a parsed value: the value as this type, or Tampered. */
export type Read<T> = (value: unknown) => T;
type Of<R> = R extends (value: never) => infer T ? T : never;
type Shape = Record<string, Read<unknown>>;
type Made<S extends Shape> = { [Name in keyof S]: Of<S[Name]> };

/** JSON in UTF-8, parsed. */
export const parse = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    return unreadable();
  }
};

/** A well-formed text. */
export const text: Read<string> = (value) => (typeof value === "string" && value.isWellFormed() ? value : unreadable());

/** An integer from 0 to 2^53 - 1. */
export const integer: Read<number> = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : unreadable();

const bool: Read<boolean> = (value) => (typeof value === "boolean" ? value : unreadable());

const matching =
  (pattern: RegExp): Read<string> =>
  (value) =>
    typeof value === "string" && pattern.test(value) ? value : unreadable();

/** A value of this kind, or null. */
export const orNull =
  <T>(read: Read<T>): Read<T | null> =>
  (value) =>
    value === null ? null : read(value);

/** A value of this kind; null where it is null or left out. */
const orNone =
  <T>(read: Read<T>): Read<T | null> =>
  (value) =>
    value === undefined ? null : orNull(read)(value);

/** A list of values of this kind. */
export const list =
  <T>(read: Read<T>): Read<T[]> =>
  (value) =>
    Array.isArray(value) ? value.map((one) => read(one)) : unreadable();

/** Whether a value is an object of JSON: no list, and not null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An object of JSON, as it is. */
const record: Read<Record<string, unknown>> = (value) => (isObject(value) ? value : unreadable());

/** An object with these members; others are left out. */
export const object = <S extends Shape>(shape: S): Read<Made<S>> => {
  const readers = Object.entries(shape);
  return (value) => {
    const own: Record<string, unknown> = { __proto__: null, ...record(value) };
    return Object.fromEntries(readers.map(([name, read]) => [name, read(own[name])])) as Made<S>;
  };
};

/** A reader of a response's body. */
export type Decode<T> = (body: Uint8Array) => T;
// Readers are made when they are used: a bundler leaves out those that an app does not need.
const json =
  <T>(read: () => Read<T>): Decode<T> =>
  (body) =>
    read()(parse(body));

/** A response whose body is not used. */
export const ignored: Decode<undefined> = () => undefined;

const user = () => object({ id: text, email: text });
/** An account as its owner sees it. */
export type User = Of<ReturnType<typeof user>>;

// A token that no header can carry is refused.
const bearer = /* @__PURE__ */ matching(/^[!-~]{1,16384}$/);
const asItIs = (value: unknown): unknown => value;
/** The tokens that replace expired ones. Who uses the key share checks it. */
export const tokens = /* @__PURE__ */ json(() => object({ accessToken: bearer, refreshToken: text, keyShare: asItIs }));
/** The tokens that replace expired ones. */
export type Renewed = Of<typeof tokens>;
/** The session that keeps a key share. */
export const keyShare = /* @__PURE__ */ json(() => object({ sessionId: text }));
/** A new session. */
export const signedIn = /* @__PURE__ */ json(() => object({ accessToken: bearer, refreshToken: text, user: user() }));
/** A new session. */
export type SignedIn = Of<typeof signedIn>;

/** Public parameters of a key derivation, as the server has them. */
const descriptor = record;
/** How the password of an email is to be derived. */
export const derivation = /* @__PURE__ */ json(() => object({ kdf: descriptor }));
/** The account's keyring. */
export const keyring = /* @__PURE__ */ json(() => object({ keyring: text, version: integer, updatedAt: integer }));
/** The account's keyring. */
export type StoredKeyring = Of<typeof keyring>;

const row = () =>
  object({
    uid: text,
    vaultUid: text,
    collection: text,
    data: text,
    hmac: orNull(text),
    version: integer,
    createdAt: integer,
    updatedAt: integer,
    deletedAt: orNull(integer),
  });
/** One document, as it is stored. */
export type Row = Of<ReturnType<typeof row>>;
/** One document. */
export const document = /* @__PURE__ */ json(row);
/** A page of documents. */
export const documents = /* @__PURE__ */ json(() => object({ documents: list(row()), hasMore: bool, next: integer }));
/** A page of documents. */
export type Page = Of<typeof documents>;
/** The results of a batch. */
export const results = /* @__PURE__ */ json(() => object({ results: list(row()) }));
const replaced = () => object({ uid: text, version: integer, hmac: orNull(text), updatedAt: integer });
/** A version of a document that was replaced. */
export type ReplacedVersion = Of<ReturnType<typeof replaced>>;
/** Versions of documents that were replaced. */
export const history = /* @__PURE__ */ json(() => object({ versions: list(replaced()), hasMore: bool, next: integer }));
/** How many deleted documents were purged. */
export const purged = /* @__PURE__ */ json(() => object({ purged: integer, hasMore: bool }));

const vaultRow = () =>
  object({
    uid: text,
    name: text,
    version: integer,
    updatedAt: integer,
    documents: orNone(integer),
    bytes: orNone(integer),
    epoch: text,
    data: orNone(text),
    salt: orNone(text),
  });
/** A vault, as it is stored. */
export type VaultRow = Of<ReturnType<typeof vaultRow>>;
/** A vault, and its blob if it has one. */
export const vault = /* @__PURE__ */ json(vaultRow);
/** All vaults. */
export const vaults = /* @__PURE__ */ json(() => object({ vaults: list(vaultRow()) }));
/** Versions of a vault's blob that were replaced. */
export const blobVersions = /* @__PURE__ */ json(() =>
  object({ versions: list(object({ version: integer, updatedAt: integer })) }),
);
/** A vault's blob at a version of the vault. */
export const blobVersion = /* @__PURE__ */ json(() =>
  object({
    uid: text,
    version: integer,
    updatedAt: integer,
    data: text,
    salt: orNull(text),
    name: orNone(text),
  }),
);
/** A vault's blob at a version of the vault. */
export type BlobRow = Of<typeof blobVersion>;
/** A page of the collections of a vault. */
export const collections = /* @__PURE__ */ json(() => object({ collections: list(text), hasMore: bool }));

const apiKey = () =>
  object({
    uid: text,
    name: text,
    permissions: orNull(list(text)),
    vaultUids: orNull(list(text)),
    collections: orNull(list(text)),
    expiresAt: orNull(integer),
    createdAt: integer,
    lastUsedAt: orNull(integer),
  });
/** An API key without its secret. A scope that is null does not limit. */
export type ApiKey = Of<ReturnType<typeof apiKey>>;
/** The API keys. */
export const keys = /* @__PURE__ */ json(() => object({ keys: list(apiKey()) }));
/** A new API key. */
export const newKey = /* @__PURE__ */ json(() => object({ uid: text, key: text }));

const session = () =>
  object({
    id: text,
    createdAt: integer,
    lastUsedAt: integer,
    address: orNull(text),
    userAgent: orNull(text),
    current: bool,
    deviceName: orNone(text),
  });
/** An open session; `current` is the one that asks. */
export type ListedSession = Of<ReturnType<typeof session>>;
/** The open sessions. */
export const sessions = /* @__PURE__ */ json(() => object({ sessions: list(session()) }));
const event = () => object({ id: text, type: text, createdAt: integer, address: text, userAgent: text });
/** An entry of the account's log. */
export type Event = Of<ReturnType<typeof event>>;
/** A page of the account's log. */
export const events = /* @__PURE__ */ json(() => object({ events: list(event()), hasMore: bool }));
/** The account, its usage and its limits. */
export const me = /* @__PURE__ */ json(() =>
  object({
    user: user(),
    usage: orNone(object({ documents: integer, bytes: integer, kept: integer })),
    limits: orNone(object({ documents: orNull(integer), bytes: orNull(integer) })),
  }),
);
/** The server's state; `epoch` names the lineage of its database. */
export const health = /* @__PURE__ */ json(() =>
  object({ status: text, epoch: text, version: text, maxBodyBytes: orNone(integer) }),
);

const recoveryCode = /* @__PURE__ */ matching(/^[0-9A-Z-]{16,40}$/);
const codes: Read<RecoveryCodes> = (value) => {
  const found = list(recoveryCode)(value);
  return found.length > 100 ? unreadable() : new RecoveryCodes(found);
};
/** Recovery codes, each good once. A loop over them gives the texts, to be shown or printed; no console shows them. */
export class RecoveryCodes implements Iterable<string> {
  readonly #codes: readonly string[];

  constructor(codes: readonly string[]) {
    this.#codes = codes;
  }

  /** How many there are. */
  get length(): number {
    return this.#codes.length;
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.#codes.values();
  }
}

/** Recovery codes. */
export const recoveryCodes: Decode<RecoveryCodes> = (body) =>
  object({ recoveryCodes: codes })(parse(body)).recoveryCodes;
const enrolled = () =>
  object({ secret: matching(/^[A-Z2-7]{16,128}$/), uri: matching(/^otpauth:\/\/totp\/[!-~]{1,2048}$/) });
/** The secret of one-time codes that are being enrolled, in base32 and as a URI for a QR code. No console shows it. */
export class Enrolment {
  readonly #shown: { readonly secret: string; readonly uri: string };

  constructor(shown: { readonly secret: string; readonly uri: string }) {
    this.#shown = shown;
  }

  /** The secret, for typing. */
  get secret(): string {
    return this.#shown.secret;
  }

  /** The same as a URI, for a QR code. */
  get uri(): string {
    return this.#shown.uri;
  }
}

/** The secret of one-time codes. The URI is shown or opened, so it is one of one-time codes with this secret. */
export const enrolment: Decode<Enrolment> = (body) => {
  const found = enrolled()(parse(body));
  return found.uri.includes(found.secret) ? new Enrolment(found) : unreadable();
};
/** The second factors of the account: one-time codes since when, how many passkeys, how many recovery codes. */
export const secondFactors = /* @__PURE__ */ json(() =>
  object({ totpSince: orNull(integer), passkeys: integer, recoveryCodes: integer }),
);
/** The second factors of the account. */
export type SecondFactors = Of<typeof secondFactors>;
const passkey = () =>
  object({
    uid: text,
    credentialId: text,
    name: text,
    prf: bool,
    createdAt: integer,
    lastUsedAt: orNull(integer),
  });
/** A passkey as its owner sees it. */
export type Passkey = Of<ReturnType<typeof passkey>>;
/** The passkeys. */
export const passkeys = /* @__PURE__ */ json(() => object({ passkeys: list(passkey()) }));
/** A new passkey, and recovery codes if it is the first second factor. */
export const addedPasskey = /* @__PURE__ */ json(() => object({ passkey: passkey(), recoveryCodes: orNull(codes) }));
/** The options of a ceremony with a passkey; what they may hold is checked where they are used. */
export const ceremony = /* @__PURE__ */ json(() => object({ publicKey: descriptor }));
/** What an import brought. */
export const imported = /* @__PURE__ */ json(() =>
  object({
    keyrings: integer,
    keyringVersions: integer,
    vaults: integer,
    documents: integer,
    versions: integer,
    blobVersions: integer,
    leftOut: integer,
  }),
);
