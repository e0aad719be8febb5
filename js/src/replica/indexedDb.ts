// The storage of a replica in a browser: a database of IndexedDB that all tabs of one origin share.
import { Invalid, Locked } from "../errors.js";
import { acrossTabs, Locks } from "../net/locks.js";
import { sleep } from "../net/session.js";
import { listPacked, PACKED, readPacked, result, within as keysOf, writePacked } from "./packs.js";
import {
  type Address,
  type Change,
  type Changed,
  FORMAT,
  LOST,
  type ReplicaPlace,
  requireFormat,
  type Storage,
  type Table,
  TABLES,
} from "./storage.js";

const ELSEWHERE = "Another tab deletes this replica, or has a newer version of this program. Reload the page.";
const keyOf = ([, ...key]: Address): IDBValidKey => key;

/** What a tab is told of a change in another one. */
type Told = readonly Changed[];

/** Whether the browser has promised not to delete what this page has stored; with `ask`, it is asked, and may ask a person. */
async function isKept(ask: boolean): Promise<boolean> {
  const storage = globalThis.navigator?.storage as StorageManager | undefined;
  try {
    return (ask ? await storage?.persist?.() : await storage?.persisted?.()) ?? false;
  } catch {
    return false;
  }
}

/** The end of a transaction: what it has written is on disk. */
const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException("", "AbortError"));
  });

/** Records of one table, by vault and uid. */
function byVault<T>(table: Table, records: readonly (readonly [Address, T])[]): Map<string, Map<string, T>> {
  const found = new Map<string, Map<string, T>>();
  for (const [[of, vault = "", uid = ""], value] of records) {
    if (of === table) found.set(vault, (found.get(vault) ?? new Map<string, T>()).set(uid, value));
  }
  return found;
}

/** Put the records into packs that an earlier release has stored one by one. */
async function packAll(transaction: IDBTransaction): Promise<void> {
  for (const table of PACKED) {
    const store = transaction.objectStore(table);
    const [keys, values] = await Promise.all([result(store.getAllKeys()), result(store.getAll())]);
    store.clear();
    const records = keys.map((key, at) => [[table, ...(key as string[])], values[at]] as const);
    for (const [vault, changes] of byVault(table, records)) await writePacked(store, vault, changes);
  }
}

/** Read records of packs of one table, each to its place among the results. */
async function readInto(
  results: unknown[],
  wanted: readonly Address[],
  transaction: IDBTransaction,
  table: Table,
): Promise<void> {
  const read = async ([vault, places]: readonly [string, Map<string, number>]): Promise<void> => {
    const found = await readPacked(transaction.objectStore(table), vault, places.keys());
    for (const [uid, at] of places) results[at] = found.get(uid);
  };
  await Promise.all(
    [
      ...byVault(
        table,
        wanted.map((at, place) => [at, place]),
      ),
    ].map(read),
  );
}

/** The replica of this name in IndexedDB. With `create` false, one that is not there is refused. */
async function openIndexedDb(given: string, create: boolean): Promise<Storage> {
  const name = `strongroom replica ${given}`;
  let isNew = false;
  let lost: string | undefined;
  let isClosed = false;
  let database: IDBDatabase | undefined;
  try {
    const request = indexedDB.open(name, 3);
    request.onupgradeneeded = ({ oldVersion }) => {
      const { result: made, transaction } = request;
      if (!transaction) return;
      isNew = !oldVersion;
      if (isNew && !create) return transaction.abort();
      for (const table of TABLES) if (!made.objectStoreNames.contains(table)) made.createObjectStore(table);
      if (oldVersion === 1) void packAll(transaction).catch(() => transaction.abort());
      if (!isNew) return;
      transaction.objectStore("facts").put(FORMAT, ["format"]);
    };
    const opened = await result(request);
    database = opened;
    opened.onversionchange = () => {
      lost ??= ELSEWHERE;
      opened.close();
    };
    opened.onclose = () => {
      if (!isClosed) lost ??= LOST;
    };
    const missing = TABLES.filter((table) => !opened.objectStoreNames.contains(table));
    requireFormat(
      missing.length ? undefined : await result(opened.transaction("facts").objectStore("facts").get(["format"])),
      given,
    );
  } catch (fault) {
    database?.close();
    if (fault instanceof Invalid) throw fault;
    if (isNew && !create) {
      throw new Invalid({ name: `is not there: ${given}. It was never made, or the browser has deleted it` });
    }
    const why = fault instanceof Error ? fault.name : "unknown error";
    throw new Invalid({ name: `cannot be opened: ${given}: ${why}` });
  }
  const db = database;
  const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(name) : undefined;
  let isPersistent = await isKept(false);
  if (!isPersistent) void isKept(true).then((is) => (isPersistent = is)); // nothing waits for a person's answer
  const locks = new Locks();

  /** Run something on the database; that it was closed under it is told as what it is. */
  const within = async <T>(task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (fault) {
      if (fault instanceof DOMException && fault.name === "AbortError") await sleep(0); // that it is gone is told just after
      if (lost !== undefined) throw new Locked(lost);
      if (fault instanceof DOMException && fault.name === "QuotaExceededError") {
        throw new Invalid({
          name: "cannot be written: this device has no room left, or the browser gives none. Nothing was changed",
        });
      }
      if (fault instanceof DOMException && fault.name === "InvalidStateError" && !isClosed) {
        lost = LOST;
        throw new Locked(lost);
      }
      throw fault;
    }
  };

  const storage: Storage = {
    isNew,
    keepsContents: true,
    get isPersistent() {
      return isPersistent;
    },
    get lost() {
      return lost;
    },
    onTold: () => undefined,
    read: (wanted) =>
      within(async () => {
        if (!wanted.length) return [];
        const tables = [...new Set(wanted.map(([table]) => table))];
        const transaction = db.transaction(tables);
        const results: unknown[] = wanted.map(() => undefined);
        const read = async (at: Address, place: number): Promise<void> => {
          if (!PACKED.has(at[0])) results[place] = await result(transaction.objectStore(at[0]).get(keyOf(at)));
        };
        const packed = tables.filter((table) => PACKED.has(table));
        await Promise.all([
          ...wanted.map(read),
          ...packed.map((table) => readInto(results, wanted, transaction, table)),
        ]);
        return results;
      }),
    list: (table: Table, first?: string) =>
      within(() => {
        const store = db.transaction(table).objectStore(table);
        return PACKED.has(table)
          ? listPacked(store, first)
          : result(store.getAll(first === undefined ? null : keysOf(first)));
      }),
    write: (changes: readonly Change[]) =>
      within(async () => {
        const tables = [...new Set(changes.map(([[table]]) => table))];
        const transaction = db.transaction(tables, "readwrite", { durability: "strict" });
        const done = completed(transaction);
        try {
          for (const [at, value] of changes) {
            if (PACKED.has(at[0])) continue;
            const store = transaction.objectStore(at[0]);
            if (value === undefined) store.delete(keyOf(at));
            else store.put(value, keyOf(at));
          }
          for (const table of tables.filter((one) => PACKED.has(one))) {
            const vaults = [...byVault(table, changes)];
            await Promise.all(
              vaults.map(([vault, records]) => writePacked(transaction.objectStore(table), vault, records)),
            );
          }
        } catch (fault) {
          done.catch(() => undefined);
          try {
            transaction.abort();
          } catch {
            await done; // it was aborted before: this says why
          }
          throw fault;
        }
        await done;
      }),
    alone: (what, task) => locks.run(what, () => acrossTabs(`${name} ${what}`, task)),
    lead: (signal) =>
      new Promise((resolve, reject) => {
        const manager = globalThis.navigator?.locks as LockManager | undefined;
        if (!manager) return resolve(() => undefined);
        manager
          .request(`${name} lead`, { signal }, () => new Promise<void>((release) => resolve(release)))
          .catch(reject);
      }),
    tell: (changed) => channel?.postMessage(changed satisfies Told),
    close() {
      isClosed = true;
      channel?.close();
      db.close();
    },
  };
  if (channel) channel.onmessage = ({ data }: MessageEvent<Told>) => storage.onTold(data);
  return storage;
}

/** Delete the replica of this name; open ones of it end. */
function deleteIndexedDb(given: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(`strongroom replica ${given}`);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(new Invalid({ name: `cannot be deleted: ${given}` }));
  });
}

/** A database of this browser as the place of a replica. */
export const indexedDbPlace = (name: string): ReplicaPlace => ({
  open: (create) => openIndexedDb(name, create),
  delete: () => deleteIndexedDb(name),
});
