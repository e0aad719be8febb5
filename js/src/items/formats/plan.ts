// What an import would do, before it does anything.
import { typeOf } from "../fields.js";
import type { StoredItem } from "../references.js";
import { first, partition, strip } from "../text.js";
import type { Item } from "../types.js";
import { type Found, get, Problem } from "./common.js";
import { sourceOf, STRONGROOM } from "./overlay.js";

const LONGEST_TITLE = 100;

/** The items that are new, how many are there already, and what cannot be taken over. */
export interface Plan {
  readonly new: readonly Item[];
  readonly known: number;
  readonly problems: readonly string[];
  /** How many new items there are of each type. */
  readonly counts: Readonly<Record<string, number>>;
}

/** As `makePlan` of table.ts. */
export async function makePlan(
  found: AsyncIterable<Found> | Iterable<Found>,
  present: AsyncIterable<StoredItem> | Iterable<StoredItem>,
  progress?: (count: number) => void,
): Promise<Plan> {
  const seen = new Set<string>();
  for await (const { uid, value } of present) {
    seen.add(keyOf(STRONGROOM, uid));
    const source = sourceOf(value);
    if (source) seen.add(keyOf(source.format, source.id));
  }
  const [items, problems]: [Item[], string[]] = [[], []];
  let [known, number] = [0, 0];
  for await (const one of found) {
    number += 1;
    if (one instanceof Problem) problems.push(one.sentence);
    else {
      const source = sourceOf(one);
      const key = source && keyOf(source.format, source.id);
      if (key !== undefined && seen.has(key)) known += 1;
      else {
        items.push({ ...one, title: strip(one.title ?? "") || titleFor(one) });
        if (key !== undefined) seen.add(key);
      }
    }
    progress?.(number);
  }
  const counts: Record<string, number> = {};
  for (const type of items.map(typeOf).sort()) counts[type] = (counts[type] ?? 0) + 1;
  return { new: items, known, problems, counts };
}

const keyOf = (format = "", id = ""): string => JSON.stringify([format, id]);

/** A title for an item that has none. */
function titleFor(item: Item): string {
  const [url] = item.urls ?? [];
  const host = url === undefined ? "" : partition(url.split("://").at(-1) ?? "", "/")[0];
  const username = get(item, "username");
  return first(host || (typeof username === "string" ? username : ""), LONGEST_TITLE) || "Untitled";
}
