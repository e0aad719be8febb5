// The types of items. docs/items.md has every member; shapes.ts reads and writes them.
import type { Value } from "../operations/valueTypes.js";

/** An object of JSON. */
export type JsonObject = { readonly [name: string]: Value };

/** A field that a person has added. `type` is a `fieldType` of CXF, `string` if absent; `section` is the heading above it. */
export interface Field {
  readonly label?: string | undefined;
  readonly value?: string | undefined;
  readonly type?: string | undefined;
  readonly section?: string | undefined;
}

/** What makes one-time codes (RFC 6238). `secret` is in base32; if absent, the others are sha1, 6 digits, 30 seconds. */
export interface OneTimeCode {
  readonly secret?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly digits?: number | undefined;
  readonly period?: number | undefined;
  readonly issuer?: string | undefined;
  readonly username?: string | undefined;
}

/** A file: its name, and its content in base64. */
export interface FileContent {
  readonly name?: string | undefined;
  readonly content?: string | undefined;
}

/** The parts of a person's name. */
export interface PersonName {
  readonly title?: string | undefined;
  readonly given?: string | undefined;
  readonly givenInformal?: string | undefined;
  readonly given2?: string | undefined;
  readonly surnamePrefix?: string | undefined;
  readonly surname?: string | undefined;
  readonly surname2?: string | undefined;
  readonly credentials?: string | undefined;
  readonly generation?: string | undefined;
}

/** A postal address. Lines of the street are separated by line feeds. */
export interface Address {
  readonly streetAddress?: string | undefined;
  readonly postalCode?: string | undefined;
  readonly city?: string | undefined;
  readonly territory?: string | undefined;
  readonly country?: string | undefined;
  readonly tel?: string | undefined;
}

/** A document, card or number that identifies a person, such as a social security number. */
export interface IdentityDocument {
  readonly issuingCountry?: string | undefined;
  readonly documentNumber?: string | undefined;
  readonly identificationNumber?: string | undefined;
  readonly nationality?: string | undefined;
  readonly fullName?: string | undefined;
  readonly birthDate?: string | undefined;
  readonly birthPlace?: string | undefined;
  readonly sex?: string | undefined;
  readonly issueDate?: string | undefined;
  readonly expiryDate?: string | undefined;
  readonly issuingAuthority?: string | undefined;
}

/** A passport. */
export interface Passport {
  readonly issuingCountry?: string | undefined;
  readonly passportType?: string | undefined;
  readonly passportNumber?: string | undefined;
  readonly nationalIdentificationNumber?: string | undefined;
  readonly nationality?: string | undefined;
  readonly fullName?: string | undefined;
  readonly birthDate?: string | undefined;
  readonly birthPlace?: string | undefined;
  readonly sex?: string | undefined;
  readonly issueDate?: string | undefined;
  readonly expiryDate?: string | undefined;
  readonly issuingAuthority?: string | undefined;
}

/** A driver's license. */
export interface DriversLicense {
  readonly fullName?: string | undefined;
  readonly birthDate?: string | undefined;
  readonly issueDate?: string | undefined;
  readonly expiryDate?: string | undefined;
  readonly issuingAuthority?: string | undefined;
  readonly territory?: string | undefined;
  readonly country?: string | undefined;
  readonly licenseNumber?: string | undefined;
  readonly licenseClass?: string | undefined;
}

/** Where an item was imported from: the format, its id there, and what has no place in an item, in `rest` or `changes`. */
export interface Source {
  readonly format?: string | undefined;
  readonly id?: string | undefined;
  readonly rest?: JsonObject | undefined;
  readonly changes?: readonly JsonObject[] | undefined;
  readonly order?: readonly string[] | undefined;
}

/**
 * What all items have.
 *
 * Members that are empty may be absent. Members that are not listed here are unknown to this version; whoever makes an
 * item from another, as in `{ ...item, title }`, keeps them.
 */
export interface ItemMembers {
  readonly title?: string | undefined;
  readonly subtitle?: string | undefined;
  readonly notes?: string | undefined;
  readonly urls?: readonly string[] | undefined;
  /** Apps of Android, as in CXF. */
  readonly apps?: readonly JsonObject[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly favorite?: boolean | undefined;
  /** Paths of folders: names with `/` between them; in a name, `/` is `%2F` and `%` is `%25`. */
  readonly folders?: readonly string[] | undefined;
  readonly fields?: readonly Field[] | undefined;
  readonly files?: readonly FileContent[] | undefined;
  /** Credentials of CXF that the type has no members for, as they came. */
  readonly credentials?: readonly JsonObject[] | undefined;
  /** Of the program that the item came from, in seconds since 1970. */
  readonly creationAt?: number | undefined;
  readonly modifiedAt?: number | undefined;
  readonly source?: Source | undefined;
}

/** A username and a password, perhaps with one-time codes. */
export interface Login extends ItemMembers {
  readonly type: "login";
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly totp?: OneTimeCode | undefined;
}

/** A text: its `notes`. */
export interface Note extends ItemMembers {
  readonly type: "note";
}

/** A credit card. Dates have the form YYYY-MM. */
export interface Card extends ItemMembers {
  readonly type: "card";
  readonly number?: string | undefined;
  readonly fullName?: string | undefined;
  readonly cardType?: string | undefined;
  readonly verificationNumber?: string | undefined;
  readonly pin?: string | undefined;
  readonly expiryDate?: string | undefined;
  readonly validFrom?: string | undefined;
}

/** A person: name, address and papers. */
export interface Identity extends ItemMembers {
  readonly type: "identity";
  readonly name?: PersonName | undefined;
  readonly address?: Address | undefined;
  readonly document?: IdentityDocument | undefined;
  readonly passport?: Passport | undefined;
  readonly license?: DriversLicense | undefined;
}

/** One secret value. */
export interface Secret extends ItemMembers {
  readonly type: "secret";
  readonly value?: string | undefined;
}

/** An SSH key. `privateKey` is PEM text: OpenSSH or PKCS#8. */
export interface SshKey extends ItemMembers {
  readonly type: "ssh-key";
  readonly keyType?: string | undefined;
  readonly privateKey?: string | undefined;
  readonly publicKey?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly keyComment?: string | undefined;
  readonly creationDate?: string | undefined;
  readonly expiryDate?: string | undefined;
  readonly keyGenerationSource?: string | undefined;
}

/** One-time codes without a password. */
export interface Totp extends ItemMembers {
  readonly type: "totp";
  readonly totp?: OneTimeCode | undefined;
}

/** A key for an API. Dates have the form YYYY-MM-DD. */
export interface ApiCredential extends ItemMembers {
  readonly type: "api-credential";
  readonly key?: string | undefined;
  readonly username?: string | undefined;
  readonly keyType?: string | undefined;
  readonly url?: string | undefined;
  readonly validFrom?: string | undefined;
  readonly expiryDate?: string | undefined;
}

/** A file, the first of its `files`. */
export interface File extends ItemMembers {
  readonly type: "file";
}

/**
 * An item of a type that this version does not know, or a document that does not fit: `problem` says why.
 *
 * Its `type` is empty; `typeName` is what the document says. With a problem, of all members only `title` is shown, and
 * the document is written again as it was.
 */
export interface Other extends ItemMembers {
  readonly type: "";
  readonly typeName: string;
  readonly problem: string;
  /** The value of the document. */
  readonly document: unknown;
}

/** What people keep in a vault. */
export type Item = Login | Note | Card | Identity | Secret | SshKey | Totp | ApiCredential | File | Other;

/** The name of a type of items. */
export type ItemType = Exclude<Item["type"], "">;
