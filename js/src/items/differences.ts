// What differs between versions of an item, field by field, and how two that changed at the same time become one.
//
// An item is taken apart into units that change as one: a member, a member of a part of an identity, a field that a
// person has added, a file, a credential. Each has a key that is the same in all versions.
import { isObject } from "../format/encoding.js";
import { FieldValue, fileField, totpText, typeOf } from "./fields.js";
import { fromStored, isConcealed, isSecretMember, ownMembers, PARTS, toStored } from "./shapes.js";
import type { Field, FileContent, Item } from "./types.js";

const SHOWN = new Set([
  "title",
  "subtitle",
  "notes",
  "favorite",
  "urls",
  "tags",
  "folders",
  "creationAt",
  "modifiedAt",
  "type",
]);
/** Lists of which the entries are kept by what they are: additions and removals of both sides are all made. */
const SETS = new Set(["urls", "tags", "folders", "apps"]);

interface Unit {
  readonly key: string;
  /** The member that holds it, and whether it is a member of that or an entry of a list. */
  readonly holder: string;
  readonly place: "member" | "part" | "list";
  readonly name: string;
  readonly json: unknown;
  readonly shown: FieldValue;
}

/** A field that two versions of an item have differently. Absent is what the version does not have. */
export interface Difference {
  /** What tells it from others of the same path; the same in all versions of the item. */
  readonly key: string;
  readonly section: string;
  readonly name: string;
  /** How it is named: `name`, or `section/name`. */
  readonly path: string;
  readonly concealed: boolean;
  readonly before: FieldValue | undefined;
  readonly after: FieldValue | undefined;
}

/** A field that was changed on both sides, in different ways. */
export interface Clash {
  /** What tells it from others of the same path; the same in all versions of the item. */
  readonly key: string;
  readonly section: string;
  readonly name: string;
  readonly path: string;
  readonly concealed: boolean;
  readonly base: FieldValue | undefined;
  readonly mine: FieldValue | undefined;
  readonly theirs: FieldValue | undefined;
}

/** An item that has the changes of both sides, and where they clash. */
export interface Merged {
  readonly item: Item;
  readonly clashes: readonly Clash[];
}

/** The fields in which two versions of an item differ, in the order of the later one; what it does not have comes last. */
export function differences(before: Item, after: Item): Difference[] {
  const [old, now] = [unitsOf(before), unitsOf(after)];
  return [...new Set([...now.keys(), ...old.keys()])].flatMap((key) => {
    const [one, other] = [old.get(key), now.get(key)];
    if (isSame(one?.json, other?.json)) return [];
    return [{ ...headOf((other ?? one) as Unit), before: one?.shown, after: other?.shown }];
  });
}

/**
 * One item from two that follow on the same version: each field as the side has it that changed it.
 *
 * A field that both changed differently is a clash, and `choose` says which side counts; mine, without it. Addresses,
 * tags and folders never clash: what either side added or removed is added or removed.
 */
export function merge(
  base: Item | undefined,
  mine: Item,
  theirs: Item,
  choose: (clash: Clash) => "mine" | "theirs" = () => "mine",
): Merged {
  const clashes: Clash[] = [];
  const pick = (sides: readonly (Unit | undefined)[]): Unit | undefined => {
    const [was, own, other] = sides;
    if (isSame(own?.json, other?.json) || isSame(was?.json, other?.json)) return own;
    if (isSame(was?.json, own?.json)) return other;
    const clash = { ...headOf((own ?? other) as Unit), base: was?.shown, mine: own?.shown, theirs: other?.shown };
    clashes.push(clash);
    return choose(clash) === "mine" ? own : other;
  };
  if (isWhole(mine) || isWhole(theirs) || typeOf(mine) !== typeOf(theirs)) {
    const chosen = pick([base && wholeUnit(base), wholeUnit(mine), wholeUnit(theirs)]);
    return { item: fromStored(chosen?.json), clashes };
  }
  const all = [base ? unitsOf(base) : new Map<string, Unit>(), unitsOf(mine), unitsOf(theirs)] as const;
  const [was, own, other] = all.map((units) => [...units.keys()]) as [string[], string[], string[]];
  const [first, second] = isSame(was, own) ? [other, own] : [own, other]; // the order of the side that changed it
  const units = [...new Set([...first, ...second])].map((key) => pick(all.map((side) => side.get(key))));
  return {
    item: fromStored(
      assembled(
        mine,
        units.filter((unit) => unit !== undefined),
      ),
    ),
    clashes,
  };
}

/** Whether an item can only be taken as a whole: it does not fit its type. */
const isWhole = (item: Item): boolean => item.type === "" && item.problem !== "";

const headOf = ({ key, shown: { section, name, path, concealed } }: Unit) => ({ key, section, name, path, concealed });

function wholeUnit(item: Item): Unit {
  const json = toStored(item);
  return unit("", "member", "type", json, new FieldValue("", "type", () => typeOf(item), false));
}

const unit = (
  holder: string,
  place: Unit["place"],
  name: string,
  json: unknown,
  shown: FieldValue,
  key = `${holder}/${name}`,
): Unit => ({ key, holder, place, name, json, shown });

/** The units of an item, by their keys. */
function unitsOf(item: Item): Map<string, Unit> {
  const found = new Map<string, Unit>();
  const counts = new Map<string, number>();
  const add = (made: Unit): void => {
    const number = (counts.get(made.key) ?? 0) + 1;
    counts.set(made.key, number);
    const key = JSON.stringify([made.key, number]);
    found.set(key, { ...made, key });
  };
  const stored = toStored(item);
  if (!isObject(stored) || isWhole(item)) {
    add(wholeUnit(item));
    return found;
  }
  for (const [name, value] of Object.entries(stored)) {
    if (Array.isArray(value)) for (const one of value as unknown[]) add(entryUnit(name, one));
    else if (item.type === "identity" && Object.hasOwn(PARTS, name) && isObject(value))
      for (const [inner, text] of Object.entries(value))
        add(unit(name, "part", inner, text, textField(name, inner, text, false)));
    else add(unit("", "member", name, value, memberField(item, name, value)));
  }
  return found;
}

function entryUnit(holder: string, entry: unknown): Unit {
  if (holder === "fields") {
    const { section = "", label = "", value = "", type } = entry as Field;
    return unit(
      holder,
      "list",
      label,
      entry,
      new FieldValue(section, label, () => value, isConcealed(type), type),
      `fields/${section}/${label}`,
    );
  }
  if (holder === "files")
    return unit(
      holder,
      "list",
      "",
      entry,
      fileField(entry as FileContent),
      `files/${(entry as FileContent).name ?? ""}`,
    );
  const text = typeof entry === "string" ? entry : JSON.stringify(entry);
  if (SETS.has(holder) || !isObject(entry)) {
    return unit(
      holder,
      "list",
      "",
      entry,
      new FieldValue("", holder, () => text, !SETS.has(holder)),
      `${holder}/${text}`,
    );
  }
  const kind = String(entry.type ?? "");
  return unit(holder, "list", kind, entry, new FieldValue(holder, kind, () => text, true));
}

function memberField(item: Item, name: string, value: unknown): FieldValue {
  if (name === "totp" && (item.type === "login" || item.type === "totp"))
    return textField("", name, totpText(item.totp ?? {}), true);
  const isShown = SHOWN.has(name) || (ownMembers(item.type).includes(name) && !isSecretMember(name));
  return textField("", name, value, !isShown);
}

const textField = (section: string, name: string, value: unknown, concealed: boolean): FieldValue =>
  new FieldValue(section, name, () => (typeof value === "string" ? value : JSON.stringify(value)), concealed);

/** The item that units make. */
function assembled(like: Item, units: readonly Unit[]): unknown {
  const members = new Map<string, unknown>();
  for (const { holder, place, name, json } of units) {
    if (place === "member") members.set(name, json);
    else if (place === "list") members.set(holder, [...((members.get(holder) as unknown[] | undefined) ?? []), json]);
    else members.set(holder, { ...((members.get(holder) as object | undefined) ?? {}), [name]: json });
  }
  if (typeOf(like)) members.set("type", typeOf(like));
  return Object.fromEntries(members);
}

/** Whether two values of JSON are the same, whatever the order of their members. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((entry, at) => isSame(entry, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}
