// The members of each type of items, in the order in which they are shown and edited, and what each of them holds.
import type { ItemType } from "@strongroom/client/items";
import { moreTexts } from "../texts/lazyTexts.js";

/** What a member holds. */
export type MemberKind = "text" | "secret" | "secretLines" | "lines" | "month" | "date" | "url" | "totp";

/** The members of a type. Those of an identity are in its parts. */
export const MEMBERS: Readonly<Record<ItemType, readonly (readonly [name: string, kind: MemberKind])[]>> = {
  login: [
    ["username", "text"],
    ["password", "secret"],
    ["totp", "totp"],
  ],
  note: [],
  card: [
    ["number", "secret"],
    ["fullName", "text"],
    ["cardType", "text"],
    ["expiryDate", "month"],
    ["verificationNumber", "secret"],
    ["pin", "secret"],
    ["validFrom", "month"],
  ],
  identity: [],
  secret: [["value", "secretLines"]],
  "ssh-key": [
    ["privateKey", "secretLines"],
    ["publicKey", "lines"],
    ["keyType", "text"],
    ["fingerprint", "text"],
    ["keyComment", "text"],
    ["creationDate", "date"],
    ["expiryDate", "date"],
    ["keyGenerationSource", "text"],
  ],
  totp: [["totp", "totp"]],
  "api-credential": [
    ["key", "secret"],
    ["username", "text"],
    ["keyType", "text"],
    ["url", "url"],
    ["validFrom", "date"],
    ["expiryDate", "date"],
  ],
  file: [],
};

const PAPER = [
  "issuingCountry",
  "nationality",
  "fullName",
  "birthDate",
  "birthPlace",
  "sex",
  "issueDate",
  "expiryDate",
  "issuingAuthority",
];

/** The parts of an identity, and their members. */
export const PARTS: Readonly<Record<string, readonly string[]>> = {
  name: [
    "title",
    "given",
    "givenInformal",
    "given2",
    "surnamePrefix",
    "surname",
    "surname2",
    "credentials",
    "generation",
  ],
  address: ["streetAddress", "postalCode", "city", "territory", "country", "tel"],
  document: ["documentNumber", "identificationNumber", ...PAPER],
  passport: ["passportNumber", "passportType", "nationalIdentificationNumber", ...PAPER],
  license: [
    "licenseNumber",
    "licenseClass",
    "fullName",
    "birthDate",
    "issueDate",
    "expiryDate",
    "issuingAuthority",
    "territory",
    "country",
  ],
};

/** The text of a name that may come from anywhere, if there is one. */
export const textAt = (texts: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(texts, name) ? texts[name] : undefined;

/** What a member is called. */
export const memberLabel = (name: string): string => textAt(moreTexts.items.members, name) ?? name;

/** What a part of an identity is called. */
export const partLabel = (part: string): string => textAt(moreTexts.items.parts, part) ?? part;
