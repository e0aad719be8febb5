// The lines of an account's file (docs/export.md): the rules of each line, their order, the counts and the hash.
import { Invalid, Tampered } from "../errors.js";
import { type Bytes, fromText, hasControl, isObject, lengthOf } from "../format/encoding.js";
import { Sha256 } from "../format/sha256.js";

/** The first line: what the file is. */
export interface HeaderLine {
  readonly kind: "header";
  readonly format: string;
  readonly version: number;
  readonly id: string;
  readonly epoch: string;
  readonly exportedAt: number;
  readonly clock: number;
  readonly kdf: Record<string, unknown> | null;
}

/** The account's keyring. */
export interface KeyringLine {
  readonly kind: "keyring";
  readonly keyring: string;
  readonly version: number;
  readonly updatedAt: number;
}

/** A keyring that was replaced. */
export interface KeyringVersionLine extends Omit<KeyringLine, "kind"> {
  readonly kind: "keyringVersion";
  readonly replacedAt: number;
  readonly kdf: Record<string, unknown> | null;
}

/** A vault. */
export interface VaultLine {
  readonly kind: "vault";
  readonly uid: string;
  readonly name: string;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly data: string | null;
  readonly salt: string | null;
}

/** A document, deleted or not; one whose ciphertext was purged has no data. */
export interface DocumentLine {
  readonly kind: "document";
  readonly uid: string;
  readonly vaultUid: string;
  readonly collection: string;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly data: string | null;
  readonly hmac: string | null;
  readonly deletedAt: number | null;
  readonly purgedAt: number | null;
}

/** What a document was before it was replaced. */
export interface VersionLine extends Omit<DocumentLine, "kind" | "data" | "purgedAt"> {
  readonly kind: "version";
  readonly data: string;
  readonly replacedAt: number;
}

/** What a vault's blob was before it was replaced. */
export interface BlobLine {
  readonly kind: "blobVersion";
  readonly uid: string;
  readonly version: number;
  readonly updatedAt: number;
  readonly replacedAt: number;
  readonly data: string;
  readonly salt: string;
  readonly name: string | null;
}

/** The last line: how many of each kind there were, and the SHA-256 of every byte before it. */
export interface TrailerLine {
  readonly kind: "trailer";
  readonly counts: Readonly<Record<string, unknown>>;
  readonly sha256: string;
}

/** A line of what is in vaults. */
export type RowLine = VaultLine | DocumentLine | VersionLine | BlobLine;
/** A line of a file. */
export type Line = HeaderLine | KeyringLine | KeyringVersionLine | RowLine | TrailerLine;

export const MEDIA_TYPE = "application/x-ndjson";
export const FORMAT = "strongroom-export";
/** The version of the format. */
export const FORMAT_VERSION = 2;
const MOST = 2 ** 52; // of a time and of a version
const MOST_KEYRINGS = 128;
const LONGEST = 2 ** 28; // bytes of a line
const END = 10;
const PARTS = ["document", "version", "blobVersion"]; // of a vault, in this order

/** What a field must be, and whether a value is that. */
interface Rule {
  readonly says: string;
  readonly good: (value: unknown) => boolean;
}

const integer = (least: number, says: string): Rule => ({
  says,
  good: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= MOST,
});
const string = (says: string, good: (value: string) => boolean = () => true): Rule => ({
  says,
  good: (value) => typeof value === "string" && value.isWellFormed() && good(value),
});
const isBase64 = (value: string): boolean => /^[A-Za-z0-9+/_-]*={0,2}$/.test(value) && !/^=/.test(value);
const isUid = (value: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

const text = string("must be a string");
const time = integer(0, "must be an integer of Unix milliseconds, from 0");
const ordinal = integer(1, "must be an integer from 1");
const uid = string("must be a UUID, like 0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", isUid);
const name = string(
  "must be 1 to 255 characters without control characters",
  (value) => value !== "" && lengthOf(value) <= 255 && !hasControl(value),
);
const ciphertext = string(
  "must be base64 or base64url ciphertext of 1 character or more",
  (value) => value !== "" && isBase64(value),
);
const blob = string("must be a string of 1 character or more", (value) => value !== "");
const salt = string(
  "must be base64 or base64url, up to 1024 characters",
  (value) => value.length <= 1024 && isBase64(value),
);
const hmac = string("must be a string of up to 1024 characters, or null", (value) => value.length <= 1024);
const keyring = string(
  "must be base64 or base64url of 1 to 262144 characters",
  (value) => value !== "" && value.length <= 262_144 && isBase64(value),
);
const object: Rule = { says: "must be an object", good: isObject };

type Fields = Readonly<Record<string, Rule>>;
const ROW = { uid, vaultUid: uid, collection: name, version: ordinal, createdAt: time, updatedAt: time };
/** The fields that a line of each kind must have, and those that it may have. */
const SHAPES: Readonly<Record<string, readonly [required: Fields, optional: Fields]>> = {
  header: [{ format: text, version: ordinal, id: uid, epoch: text, exportedAt: time, clock: time }, { kdf: object }],
  keyring: [{ keyring, version: ordinal, updatedAt: time }, {}],
  keyringVersion: [{ keyring, version: ordinal, updatedAt: time, replacedAt: time }, { kdf: object }],
  vault: [
    { uid, name, version: ordinal, createdAt: time, updatedAt: time },
    { data: blob, salt },
  ],
  document: [ROW, { data: ciphertext, hmac, deletedAt: time, purgedAt: time }],
  version: [
    { ...ROW, data: ciphertext, replacedAt: time },
    { hmac, deletedAt: time },
  ],
  blobVersion: [{ uid, version: ordinal, updatedAt: time, replacedAt: time, data: blob, salt }, { name }],
  trailer: [{ counts: object, sha256: text }, {}],
};

/** The fields of a line that do not go together, with what is wrong. */
function together(line: Line): Record<string, string> {
  const bad: Record<string, string> = {};
  const inOrder = (...names: readonly string[]): void => {
    const told = names.flatMap((one) => {
      const at = (line as unknown as Record<string, unknown>)[one];
      return typeof at === "number" ? [[one, at] as const] : [];
    });
    told.forEach(([later, at], place) => {
      const before = told[place - 1];
      if (before && at < before[1]) bad[later] = `must not be before ${before[0]}`;
    });
  };
  if (line.kind === "vault") {
    inOrder("createdAt", "updatedAt");
    if (line.data !== null && line.salt === null) bad.salt = "is required together with data";
    if (line.data === null && line.salt !== null) bad.data = "is required together with salt";
  } else if (line.kind === "document") {
    inOrder("createdAt", "deletedAt", "updatedAt");
    inOrder("deletedAt", "purgedAt");
    const purged = line.purgedAt !== null;
    if (purged && line.deletedAt === null) bad.purgedAt = "is only for a document that is deleted";
    if (purged === (line.data !== null)) bad.data = purged ? "must be absent where purgedAt is given" : "is required";
  } else if (line.kind === "version") inOrder("createdAt", "deletedAt", "updatedAt", "replacedAt");
  else if (line.kind !== "header" && line.kind !== "trailer") inOrder("updatedAt", "replacedAt");
  return bad;
}

/** What JSON says; undefined where it is none. */
export function parsed(raw: Bytes): unknown {
  try {
    return JSON.parse(fromText(raw) ?? "");
  } catch {
    return undefined;
  }
}

/** A line by itself: its fields in a fixed order, those that are left out null, uids in lower case. */
function readLine(raw: Bytes): Line {
  const found = parsed(raw);
  if (fromText(raw) === null) throw new Invalid({ body: "must be text in UTF-8" });
  if (found === undefined) throw new Invalid({ body: "must be well-formed JSON" });
  const given = new Map(Object.entries(isObject(found) ? found : {}));
  const kind = String(given.get("kind"));
  const shape = Object.hasOwn(SHAPES, kind) ? SHAPES[kind] : undefined;
  if (!shape) throw new Invalid({ kind: `must be one of ${Object.keys(SHAPES).join(", ")}` });
  const [required, optional] = shape;
  const [made, bad]: [Record<string, unknown>, Record<string, string>] = [{ kind }, {}];
  for (const [field, { says, good }] of [...Object.entries(required), ...Object.entries(optional)]) {
    const value = given.get(field) ?? null;
    const isNeeded = Object.hasOwn(required, field);
    if (value === null ? isNeeded : !good(value))
      bad[field] = value === null && !given.has(field) ? "is required" : says;
    made[field] = /uid$/i.test(field) && typeof value === "string" ? value.toLowerCase() : value;
  }
  const line = made as unknown as Line;
  const faults = { ...bad, ...(Object.keys(bad).length ? {} : together(line)) };
  if (Object.keys(faults).length) throw new Invalid(faults);
  return line;
}

/** Checks a file line by line. */
export class AccountLines {
  /** Lines so far, without the trailer. */
  number = 0;
  header: HeaderLine | undefined;
  keyring: KeyringLine | undefined;
  /** The trailer was there, and is right. */
  isWhole = false;
  #vault: VaultLine | undefined;
  #part = 0;
  #last = -1;
  #keyringVersion = 0; // of the last one that was replaced
  readonly #hash = new Sha256();
  readonly #counts = new Map(["keyring", "keyringVersion", "vault", ...PARTS].map((kind) => [kind, 0]));

  /** The SHA-256 of the lines so far. */
  get digest(): string {
    return this.#hash.hex;
  }

  /** Check the next line; refused with its number. */
  read(raw: Bytes): Line {
    if (this.isWhole) throw badLine(this.number + 2, { kind: "comes after the trailer, which must be the last line" });
    let line: Line;
    try {
      line = readLine(raw);
      this.#check(line);
    } catch (refusal) {
      if (!(refusal instanceof Invalid)) throw refusal;
      throw badLine(this.number + 1, refusal.details?.fields as Record<string, string>);
    }
    if (line.kind === "trailer") this.isWhole = true;
    else {
      this.number += 1;
      this.#hash.update(raw);
    }
    return line;
  }

  #count(kind: string): number {
    return this.#counts.get(kind) ?? 0;
  }

  /** Refuse a line that is out of order. */
  #check(line: Line): void {
    if (line.kind === "header") return this.#checkHeader(line);
    if (!this.header) throw new Invalid({ kind: "must be header in the first line" });
    if (line.kind === "trailer") return this.#checkTrailer(line);
    if (line.kind === "keyring" || line.kind === "keyringVersion") this.#checkKeyring(line);
    else if (line.kind === "vault") {
      if (line.updatedAt > this.header.clock)
        throw new Invalid({ updatedAt: "must not be after the clock of the header" });
      this.#vault = line;
      this.#part = 0;
      this.#last = -1;
    } else this.#checkInVault(line);
    this.#counts.set(line.kind, this.#count(line.kind) + 1);
  }

  #checkHeader(header: HeaderLine): void {
    if (this.header) throw new Invalid({ kind: "is header a second time" });
    if (header.format !== FORMAT) throw new Invalid({ format: `must be ${FORMAT}` });
    if (header.version !== FORMAT_VERSION)
      throw new Invalid({ version: `must be ${FORMAT_VERSION}: no other is read here` });
    this.header = header;
  }

  /** The keyring stands before all vaults, and before the keyrings that it replaced. */
  #checkKeyring(line: KeyringLine | KeyringVersionLine): void {
    if (this.#vault) throw new Invalid({ kind: "must come before the vaults" });
    if (line.kind === "keyring") {
      if (this.keyring) throw new Invalid({ kind: "must be there once, and before those of kind keyringVersion" });
      this.keyring = line;
      return;
    }
    if (!this.keyring) throw new Invalid({ kind: "must come after the keyring" });
    if (line.version <= this.#keyringVersion || line.version >= this.keyring.version)
      throw new Invalid({ version: "must be after that of the line before, and before that of the keyring" });
    if (this.#count(line.kind) === MOST_KEYRINGS)
      throw new Invalid({ kind: `must be there ${MOST_KEYRINGS} times at the most` });
    this.#keyringVersion = line.version;
  }

  /** The order in a vault: documents, their versions, versions of its blob; each by time or version. */
  #checkInVault(line: DocumentLine | VersionLine | BlobLine): void {
    const isBlob = line.kind === "blobVersion";
    if ((isBlob ? line.uid : line.vaultUid) !== this.#vault?.uid)
      throw new Invalid({ [isBlob ? "uid" : "vaultUid"]: "must be that of the vault before it" });
    const part = PARTS.indexOf(line.kind);
    if (part < this.#part) throw new Invalid({ kind: "must come before the versions of its vault" });
    if (part > this.#part) [this.#part, this.#last] = [part, -1];
    const [by, place] = isBlob ? ["version", line.version] : ["updatedAt", line.updatedAt];
    if (place <= this.#last) throw new Invalid({ [by]: "must be after that of the line before" });
    if (line.updatedAt > this.#vault.updatedAt) throw new Invalid({ updatedAt: "must not be after that of its vault" });
    this.#last = place;
  }

  /** Refuse a file that was altered: by the hash and the counts of its trailer. */
  #checkTrailer({ sha256, counts }: TrailerLine): void {
    if (sha256.toLowerCase() !== this.digest)
      throw new Invalid({ sha256: "is not that of the lines before: the file was altered" });
    if ([...this.#counts].some(([kind, count]) => counts[`${kind}s`] !== count))
      throw new Invalid({ counts: "are not those of the lines before: the file was altered" });
  }
}

function badLine(number: number, fields: Record<string, string>): Invalid {
  const told = Object.entries(fields)
    .map((one) => one.join(" "))
    .join("; ");
  const refusal = new Invalid(fields, `Line ${number} of the file is not valid: ${told}.`);
  refusal.details = { ...refusal.details, line: number };
  return refusal;
}

/** The lines of what arrives in pieces, each with its line feed; the last one perhaps without. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Bytes, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  const whole = (): Bytes => {
    const made = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      made.set(part, at);
      at += part.length;
    }
    [parts, length] = [[], 0];
    return made;
  };
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const end = piece.indexOf(END, at) + 1 || piece.length;
      const part = piece.subarray(at, end);
      parts.push(part);
      length += part.length;
      if (length > LONGEST) throw new Tampered("A line is longer than any line of an account can be.");
      if (part[part.length - 1] === END) yield whole();
      at = end;
    }
  }
  if (length) yield whole();
}
