// References to fields: `sr://vault/item/field`, and how an item is found by its title or uid.
//
//     sr://Personal/GitHub                  the main field of the item: of a login, the password
//     sr://Personal/GitHub/username         a field
//     sr://Personal/GitHub/Recovery/PIN     a field of a section
//     sr://Work/AC%2FDC%20tickets/password  `/`, `?`, `#` and `%` in a name are percent-encoded, in UTF-8
import { lengthOf } from "../format/encoding.js";
import { AmbiguousName, InvalidReference, ItemNotFound } from "./errors.js";
import { folded, isPrintable, percentEncoded, quoted, strip } from "./text.js";
import type { Item } from "./types.js";

const SCHEME = "sr://";
const LONGEST = 4_096;
const SAFE = "!$&'()*+,;=:@";
const MOST_CANDIDATES = 10;

/** A vault, an item in it, and a field of that. An empty field is the item's main one. */
export class Reference {
  readonly vault: string;
  readonly item: string;
  readonly field: string;
  readonly section: string;

  constructor(vault: string, item: string, field = "", section = "") {
    this.vault = vault;
    this.item = item;
    this.field = field;
    this.section = section;
  }

  /** The reference as a text. */
  toString(): string {
    const parts = [this.vault, this.item, this.section, this.field].filter(Boolean);
    return SCHEME + parts.map((part) => percentEncoded(part, SAFE)).join("/");
  }
}

/** Whether a text is meant as a reference; `parseReference` says whether it is a right one. */
export const isReference = (text: string): boolean => text.slice(0, SCHEME.length).toLowerCase() === SCHEME;

/** The reference that a text is. Spaces and letters of any language may stand in it as they are. */
export function parseReference(text: string): Reference {
  if (!isReference(text)) throw new InvalidReference();
  if (text.length > 2 * LONGEST || lengthOf(text) > LONGEST)
    throw new InvalidReference("A reference has at most 4,096 characters.");
  if (!isPrintable(text))
    throw new InvalidReference("A reference has no line breaks and no control characters; percent-encode them.");
  const rest = text.slice(SCHEME.length);
  if (/[?#]/.test(rest)) throw new InvalidReference("In a reference, ? is written as %3F and # as %23.");
  if (/%(?![0-9A-Fa-f]{2})/.test(rest))
    throw new InvalidReference("In a reference, a % stands before two hexadecimal digits; % itself is written as %25.");
  const parts = rest.split("/").map(decoded);
  if (parts.length < 2 || parts.length > 4 || parts.includes(""))
    throw new InvalidReference(
      "A reference has the form sr://vault/item/field or sr://vault/item/section/field; a / in a name is written as %2F.",
    );
  const [vault = "", item = "", ...path] = parts;
  return new Reference(vault, item, path.at(-1), path.length === 2 ? path[0] : "");
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new InvalidReference("What is percent-encoded in the reference is not UTF-8.");
  }
}

/** A document that holds an item. */
export interface StoredItem {
  readonly uid: string;
  readonly value: Item;
}

/**
 * The item that a name means: by its uid; else by its title; else by its title without regard to capitals.
 *
 * `documents` are those of a collection of items, or the collection itself. ItemNotFound if there is none;
 * AmbiguousName, with the uids, if there are several.
 */
export async function findItem<S extends StoredItem>(
  name: string,
  documents: Iterable<S> | AsyncIterable<S>,
): Promise<S> {
  const titled: S[] = [];
  const alike: S[] = [];
  const plain = folded(strip(name));
  for await (const one of documents) {
    if (one.uid === name) return one;
    const title = one.value.title ?? "";
    if (title === name) titled.push(one);
    else if (folded(strip(title)) === plain) alike.push(one);
  }
  const fitting = titled.length ? titled : alike;
  const [found] = fitting;
  if (!found) throw new ItemNotFound(`There is no item ${quoted(name)}.`);
  if (fitting.length === 1) return found;
  const told = fitting
    .slice(0, MOST_CANDIDATES)
    .map(({ uid, value }) => `${quoted(value.title ?? "")} (${uid})`)
    .join(", ");
  const more = fitting.length > MOST_CANDIDATES ? ` and ${fitting.length - MOST_CANDIDATES} more` : "";
  const sentence = `${fitting.length} items are named ${quoted(name)}; say the uid of one: ${told}${more}.`;
  throw new AmbiguousName(
    sentence,
    fitting.map(({ uid }) => uid),
  );
}
