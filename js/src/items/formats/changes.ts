// What a foreign item has besides what our writer makes of it: kept with the item, and put back on the way out.
//
//     made = write(read(original))
//     applied(made, changes(made, original)) is the original
//
// A change says what was made then. Where the item was edited since, something else is made there, and the change does
// not apply: no old value comes back.
import { compare, isObject } from "../../format/encoding.js";
import { isSame } from "../differences.js";
import { type Json, put } from "./common.js";
import { spelled } from "./json.js";

/** `at`: the path; `from`: what was made there; `to`: what the original has. */
export interface Change {
  readonly at: readonly (string | number)[];
  readonly from?: unknown;
  readonly to?: unknown;
}

/** How the original differs from what is made. */
export function changes(made: unknown, original: unknown): Change[] {
  const found: Change[] = [];
  collect(made, original, [], found);
  return found.sort((one, other) => comparePaths(one.at, other.at));
}

function comparePaths(one: Change["at"], other: Change["at"]): number {
  for (const [at, step] of one.entries()) {
    const against = other[at];
    if (against === undefined) return 1;
    const order = compare(String(step), String(against));
    if (order) return order;
  }
  return one.length - other.length;
}

function collect(made: unknown, original: unknown, at: Change["at"], found: Change[]): void {
  if (isObject(made) && isObject(original)) {
    for (const [name, value] of Object.entries(original)) {
      if (Object.hasOwn(made, name)) collect(made[name], value, [...at, name], found);
      else found.push({ at: [...at, name], to: value });
    }
    for (const name of Object.keys(made))
      if (!Object.hasOwn(original, name)) found.push({ at: [...at, name], from: made[name] });
  } else if (Array.isArray(made) && Array.isArray(original) && made.length === original.length) {
    for (const [number, one] of made.entries()) collect(one, original[number], [...at, number], found);
  } else if (!isSame(made, original)) found.push({ at, from: made, to: original });
}

/** What is made now, with the changes that still apply. */
export function applied(made: unknown, kept: readonly Change[]): unknown {
  const whole: Json = { "": structuredClone(made) };
  for (const change of kept) {
    const steps = ["", ...change.at];
    const last = steps.at(-1) as string | number;
    let place: unknown = whole;
    for (const step of steps.slice(0, -1)) place = stepped(place, step);
    const [hasFrom, hasTo] = [Object.hasOwn(change, "from"), Object.hasOwn(change, "to")];
    if (isObject(place)) {
      const isThere = Object.hasOwn(place, last);
      if (hasFrom && (!isThere || !isSame(place[last], change.from))) continue;
      if (!hasTo) {
        if (isThere) delete (place as Json)[last];
      } else if (hasFrom || !isThere) put(place, last, structuredClone(change.to));
    } else if (
      Array.isArray(place) &&
      hasFrom &&
      hasTo &&
      typeof last === "number" &&
      last in place &&
      isSame(place[last], change.from)
    ) {
      place[last] = structuredClone(change.to);
    }
  }
  return whole[""];
}

function stepped(place: unknown, step: string | number): unknown {
  if (isObject(place)) return Object.hasOwn(place, step) ? place[step] : undefined;
  return Array.isArray(place) && typeof step === "number" ? place[step] : undefined;
}

/** A list of objects as one object, by a member of each and a number: one that is gone does not move the others. */
export function byName(listed: unknown, member: string): unknown {
  if (!Array.isArray(listed) || !listed.every(isObject)) return listed;
  const found: Json = {};
  const counts = new Map<string, number>();
  for (const one of listed) {
    const name = spelled(Object.hasOwn(one, member) ? one[member] : null);
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    found[`${name}#${number}`] = one;
  }
  return found;
}

/** The list again. */
export const inOrder = (named: unknown): unknown => (isObject(named) ? Object.values(named) : named);

/** Whether changes are such: a document may hold anything. */
export const wellFormed = (kept: unknown): kept is Change[] =>
  Array.isArray(kept) &&
  kept.every(
    (one) =>
      isObject(one) &&
      Array.isArray(one.at) &&
      one.at.every((step) => typeof step === "string" || typeof step === "number" || typeof step === "boolean"),
  );
