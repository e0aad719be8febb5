// Identities of Bitwarden: one flat object, where items have a name, an address and papers.
import { STRING } from "../shapes.js";
import { stripEnd } from "../text.js";
import type { Field, Identity } from "../types.js";
import { get, type Json, textOf } from "./common.js";

/** Member of Bitwarden: the part of an identity, and the member of that part. */
const PLACES: Readonly<Record<string, readonly [string, string]>> = {
  title: ["name", "title"],
  firstName: ["name", "given"],
  middleName: ["name", "given2"],
  lastName: ["name", "surname"],
  city: ["address", "city"],
  state: ["address", "territory"],
  postalCode: ["address", "postalCode"],
  country: ["address", "country"],
  phone: ["address", "tel"],
  ssn: ["document", "identificationNumber"],
  passportNumber: ["passport", "passportNumber"],
  licenseNumber: ["license", "licenseNumber"],
};
const LINES = ["address1", "address2", "address3"];
/** Of these, CXF has nothing: they are fields. */
const FIELDS: Readonly<Record<string, string>> = { company: STRING, email: "email", username: STRING };

/** The item of an identity. */
export function readIdentity(raw: Readonly<Json>): Json {
  const parts: Record<string, Record<string, string>> = {};
  const place = (part: string, member: string, value: string): void => {
    if (value) parts[part] = { ...parts[part], [member]: value };
  };
  for (const [name, [part, member]] of Object.entries(PLACES)) place(part, member, textOf(get(raw, name)));
  place("address", "streetAddress", stripEnd(LINES.map((name) => textOf(get(raw, name))).join("\n"), /\n/));
  const fields = Object.entries(FIELDS).map(([label, type]) => ({ label, value: textOf(get(raw, label)), type }));
  return { type: "identity", ...parts, fields: fields.filter(({ value }) => value) };
}

/** The identity of Bitwarden, and the fields that are left. */
export function identityMembers(item: Identity): [Json, Field[]] {
  const found: Json = Object.fromEntries(
    [...LINES, ...Object.keys(PLACES), ...Object.keys(FIELDS)].map((name) => [name, null]),
  );
  for (const [name, [part, member]] of Object.entries(PLACES)) found[name] = get(get(item, part), member) || null;
  const street = item.address?.streetAddress ?? "";
  const [first = "", second, ...others] = street.split("\n");
  const lines = [first, second, others.length ? others.join("\n") : undefined];
  for (const [at, name] of LINES.entries()) found[name] = lines[at] || null;
  const left: Field[] = [];
  for (const one of item.fields ?? []) {
    const { label = "", value = "", type = STRING, section = "", ...extra } = one;
    const takes = Object.hasOwn(FIELDS, label) && !section && !Object.keys(extra).length && type === FIELDS[label];
    if (takes && found[label] === null && value) found[label] = value;
    else left.push(one);
  }
  return [found, left];
}
