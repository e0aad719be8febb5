// Folders: paths of names in the member `folders` of items. A folder is there as long as an item is in it.
import type { Entry } from "./entries.js";

const DEEPEST = 16;

/** A folder of a vault with those inside. */
export interface Folder {
  readonly path: string;
  readonly name: string;
  /** How many items are in it, or in a folder inside. */
  readonly count: number;
  readonly inner: readonly Folder[];
}

interface Growing {
  path: string;
  name: string;
  keys: Set<string>;
  inner: Map<string, Growing>;
}

/** A name as it stands in a path. */
export const spellName = (name: string): string => name.replaceAll("%", "%25").replaceAll("/", "%2F");

/** The name that a part of a path spells. */
export const readName = (part: string): string => part.replace(/%2F/gi, "/").replaceAll("%25", "%");

/** A path as people read it. */
export const pathText = (path: string): string => path.split("/").map(readName).join(" / ");

/** The path of what a person typed: `/` divides, as in what is shown. */
export const typedPath = (typed: string): string =>
  typed
    .split("/")
    .map((part) => part.trim().replaceAll("%", "%25"))
    .filter(Boolean)
    .join("/");

/** Whether a path is a folder, or one inside of it. */
export const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

/** The folders of some items, as a tree, by name. */
export function folderTree(entries: readonly Entry[]): Folder[] {
  const roots = new Map<string, Growing>();
  for (const { key, folders } of entries) {
    for (const path of folders) {
      const parts = path.split("/");
      if (parts.length > DEEPEST) parts.splice(DEEPEST - 1, parts.length, parts.slice(DEEPEST - 1).join("/"));
      let level = roots;
      let from = "";
      for (const part of parts) {
        from = from ? `${from}/${part}` : part;
        const one: Growing = level.get(part) ?? { path: from, name: readName(part), keys: new Set(), inner: new Map() };
        level.set(part, one);
        one.keys.add(key);
        level = one.inner;
      }
    }
  }
  return grown(roots);
}

const grown = (level: ReadonlyMap<string, Growing>): Folder[] =>
  [...level.values()]
    .map(({ path, name, keys, inner }) => ({ path, name, count: keys.size, inner: grown(inner) }))
    .sort((one, other) => one.name.localeCompare(other.name));

/** Every folder of a tree, the outer one before those inside, with its depth. */
export function* flat(folders: readonly Folder[], depth = 0): Generator<[Folder, number]> {
  for (const folder of folders) {
    yield [folder, depth];
    yield* flat(folder.inner, depth + 1);
  }
}

/** The folders of an item that was in `from` (undefined: wherever it was) after it is moved to `to` (empty: to none). */
export function movedFolders(folders: readonly string[], from: string | undefined, to: string): string[] {
  const left = from === undefined ? [] : folders.filter((path) => !isWithin(path, from));
  return to && !left.includes(to) ? [...left, to] : left;
}

/** The folders of an item after one of them got another path; with an empty one, what was inside moves up. */
export function renamedFolders(folders: readonly string[], from: string, to: string): string[] {
  const found = folders.map((path) =>
    isWithin(path, from) ? [to, path.slice(from.length + 1)].filter(Boolean).join("/") : path,
  );
  return [...new Set(found.filter(Boolean))];
}
