// What the list shows: what is searched for, where, in which order, and what is chosen in it. Nothing of it is in the address.
import { onLock } from "../state/session.js";
import { createStore } from "../state/store.js";
import { byTitle, type Entry } from "./entries.js";
import { isWithin } from "./folders.js";
import { folded } from "./shownText.js";

/** The order of the list. */
export type Order = "title" | "newest" | "oldest";

/** What is wanted of all entries. */
export interface Filter {
  readonly search: string;
  /** The uid of a vault. */
  readonly vault: string | undefined;
  /** A folder of that vault. */
  readonly folder: string | undefined;
  /** A collection of that vault, of documents that are no items. */
  readonly collection: string | undefined;
  readonly type: string | undefined;
  readonly tag: string | undefined;
  readonly isFavorite: boolean;
  readonly order: Order;
}

/** Everything, by title. */
export const ALL: Filter = {
  search: "",
  vault: undefined,
  folder: undefined,
  collection: undefined,
  type: undefined,
  tag: undefined,
  isFavorite: false,
  order: "title",
};

/** The filter of the list. */
export const filter = createStore<Filter>(ALL);
/** The keys of the entries that are selected, for actions on many. */
export const selection = createStore<ReadonlySet<string>>(new Set());

onLock(() => {
  filter.set(ALL);
  selection.set(new Set());
});

/** Show another place: what was searched for and selected there is over. */
export function showPlace(place: Partial<Filter>): void {
  filter.set((before) => ({ ...ALL, order: before.order, ...place }));
  selection.set(new Set());
}

/** Those that a filter wants, in its order. `all` is in the order of titles. */
export function wantedOf(
  all: readonly Entry[],
  { search, vault, folder, collection, type, tag, isFavorite, order }: Filter,
): readonly Entry[] {
  const words = folded(search).split(/\s+/).filter(Boolean);
  const found = all.filter((entry) => {
    const { document } = entry;
    if (vault !== undefined && document.vault !== vault) return false;
    if (collection === undefined ? !entry.item : document.collection !== collection) return false;
    if (folder !== undefined && !entry.folders.some((path) => isWithin(path, folder))) return false;
    if (type !== undefined && entry.type !== type) return false;
    if (tag !== undefined && !entry.tags.includes(tag)) return false;
    if (isFavorite && !entry.isFavorite) return false;
    return words.every((word) => entry.text.includes(word));
  });
  if (order === "title") return found;
  const sign = order === "newest" ? -1 : 1;
  return found.sort((one, other) => sign * (one.document.updatedAt - other.document.updatedAt) || byTitle(one, other));
}
