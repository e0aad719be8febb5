// What a foreign format has no place for travels beside it, in a member of our own that other programs ignore.
//
// The writer reads again what it has written, and keeps the members of the item that come back differently. The reader
// puts them in the place of what it has read.
import { isObject } from "../../format/encoding.js";
import { isSame } from "../differences.js";
import { fromStored, Misfit, storedSource, toStored } from "../shapes.js";
import type { Item, Source } from "../types.js";
import { get, type Json, without } from "./common.js";

/** The format of an item that was made here; its id is the uid of the document. */
export const STRONGROOM = "strongroom";

/** The document of an item; empty where it is no object. */
const stored = (item: Item): Json => {
  const raw = toStored(item);
  return isObject(raw) ? { ...raw } : {};
};

/** The ids that the items of an export have in its format: none occurs twice. */
export class SourceIds {
  readonly #format: string;
  readonly #used = new Set<string>();
  readonly #numbers = new Map<string, number>(); // the newest number of an id that occurs again

  constructor(format: string) {
    this.#format = format;
  }

  /** The id of an item, with a number where it is used already; undefined where it came from elsewhere. */
  of({ source }: Item): string | undefined {
    if (source?.format !== this.#format) return undefined;
    const given = source.id ?? "";
    let found = given;
    while (this.#used.has(found)) {
      const number = (this.#numbers.get(given) ?? 1) + 1;
      this.#numbers.set(given, number);
      found = `${given}#${number}`;
    }
    this.#used.add(found);
    return found;
  }
}

/** Whether an id has a number, which it got here: it is none of the other program, and travels in the overlay. */
export const isNumbered = (id: string): boolean => /#\p{Nd}+$/u.test(id);

/**
 * The members that would be lost or changed; null stands for one that the item does not have.
 *
 * `keptId` is the id of its source, where what is written does not have it.
 */
export function overlay(uid: string, item: Item, readAgain: Item, format: string, keptId?: string): Json {
  const [mine, theirs] = [without(stored(item), "source"), without(stored(readAgain), "source")];
  const source = sourceOf(item);
  const found: Json = Object.fromEntries(
    Object.entries(mine).filter(([name, value]) => !isSame(get(theirs, name) ?? null, value)),
  );
  const lost = Object.keys(theirs).filter((name) => !Object.hasOwn(mine, name));
  const whole: Json = { ...found, ...Object.fromEntries(lost.map((name) => [name, null])) };
  if (!source) return { ...whole, source: { format: STRONGROOM, id: uid } };
  if (!item.source || source.format !== format) return { ...whole, source };
  return keptId === undefined ? whole : { ...whole, source: { ...source, id: keptId } };
}

/** The item that was written, by what was read and what travelled beside it. */
export function withOverlay(item: Item, found: unknown): Item {
  if (!isObject(found)) return item;
  const whole = Object.entries({ ...stored(item), ...found });
  return fromStored(Object.fromEntries(whole.filter(([, value]) => value !== null && value !== undefined)));
}

/** The source of an item, with its members that are not empty; one that does not fit has it as it came. */
export function sourceOf(item: Item): Source | undefined {
  try {
    return storedSource(item.source ?? (item.type === "" ? get(item.document, "source") : undefined));
  } catch (fault) {
    if (fault instanceof Misfit) return undefined;
    throw fault;
  }
}
