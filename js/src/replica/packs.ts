// Packs: many records of one vault in one record of IndexedDB, where each request costs more than what it carries.
//
// A pack holds the records of neighbouring uids. Its key is the vault and the lowest uid that it may hold: a uid is in the
// pack with the greatest key that is not above it or, where there is none, in the one whose key is "".
import type { Table } from "./storage.js";

/** The tables whose records lie in packs: their keys are a vault and a uid. */
export const PACKED: ReadonlySet<Table> = /* @__PURE__ */ new Set<Table>(["heads", "data"]);
const MOST = 64; // records of a pack
const BYTES = 65_536; // that the texts of a pack should have at the most; one alone may have more

/** Records by their uids, in ascending order. */
type Pack = readonly (readonly [uid: string, value: unknown])[];

/** What a request results in. */
export const result = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The keys that begin with a vault. */
export const within = (vault: string): IDBKeyRange => IDBKeyRange.bound([vault], [vault, []]);

/** Those of these uids that may be in each pack of a vault, by the lowest uid of the pack. */
async function places(store: IDBObjectStore, vault: string, uids: Iterable<string>): Promise<Map<string, string[]>> {
  const lows = ((await result(store.getAllKeys(within(vault)))) as [string, string][]).map(([, low]) => low);
  const found = new Map<string, string[]>();
  let at = -1;
  for (const uid of [...uids].sort()) {
    while (at + 1 < lows.length && (lows[at + 1] as string) <= uid) at += 1;
    const low = lows[at] ?? "";
    const own = found.get(low);
    if (own) own.push(uid);
    else found.set(low, [uid]);
  }
  return found;
}

const packAt = async (store: IDBObjectStore, vault: string, low: string): Promise<Map<string, unknown>> =>
  new Map((await result<Pack | undefined>(store.get([vault, low]))) ?? []);

/** Those of these records that are there, by uid. */
export async function readPacked(
  store: IDBObjectStore,
  vault: string,
  uids: Iterable<string>,
): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  const read = async (low: string, wanted: readonly string[]): Promise<void> => {
    const pack = await packAt(store, vault, low);
    for (const uid of wanted) if (pack.has(uid)) found.set(uid, pack.get(uid));
  };
  await Promise.all([...(await places(store, vault, uids))].map(([low, wanted]) => read(low, wanted)));
  return found;
}

/** All records of a vault, or of the table, in the order of their keys. */
export async function listPacked(store: IDBObjectStore, vault?: string): Promise<unknown[]> {
  const packs = await result<Pack[]>(store.getAll(vault === undefined ? null : within(vault)));
  return packs.flatMap((pack) => pack.map(([, value]) => value));
}

/** Write records of a vault; undefined deletes one. What was cut in two is not joined again. */
export async function writePacked(
  store: IDBObjectStore,
  vault: string,
  changes: ReadonlyMap<string, unknown>,
): Promise<void> {
  const write = async (low: string, uids: readonly string[]): Promise<void> => {
    const pack = await packAt(store, vault, low);
    for (const uid of uids) {
      const value = changes.get(uid);
      if (value === undefined) pack.delete(uid);
      else pack.set(uid, value);
    }
    if (!pack.size) store.delete([vault, low]);
    const parts = cut([...pack].sort(([one], [other]) => (one < other ? -1 : 1)));
    for (const [at, part] of parts.entries()) store.put(part, [vault, (at && part[0]?.[0]) || low]);
  };
  await Promise.all([...(await places(store, vault, changes.keys()))].map(([low, uids]) => write(low, uids)));
}

/** Records as packs of about the same number. */
function cut(records: Pack): Pack[] {
  const bytes = records.reduce((sum, [, value]) => sum + (typeof value === "string" ? value.length : 0), 0);
  const count = Math.max(Math.ceil(records.length / MOST), Math.min(records.length, Math.ceil(bytes / BYTES)));
  const size = Math.ceil(records.length / count);
  return Array.from({ length: count }, (_, at) => records.slice(at * size, (at + 1) * size)).filter(
    (part) => part.length,
  );
}
