// The storage of a replica in a browser: a database of IndexedDB that all tabs of one origin share.
import { Invalid, Locked } from "../errors.js";
import { acrossTabs, Locks } from "../net/locks.js";
import { sleep } from "../net/session.js";
import { type Address, type Change, type Changed, FORMAT, LOST, type ReplicaPlace, requireFormat, type Storage, type Table, TABLES } from "./storage.js";

const ELSEWHERE = "Another tab deletes this replica, or has a newer version of this program. Reload the page.";
const MANY = 16; // records of one vault that may be read in one piece
const keyOf = ([, ...key]: Address): IDBValidKey => key;
const spell = (at: Address): string => at.join("\n");

/** What a tab is told of a change in another one. */
type Told = readonly Changed[];

/** Ask the browser not to delete what this page has stored; whether it will not. */
async function persist(): Promise<boolean> {
  const storage = globalThis.navigator?.storage as StorageManager | undefined;
  try {
    return (await storage?.persisted?.()) || (await storage?.persist?.()) || false;
  } catch {
    return false;
  }
}

/** What a request results in. */
const result = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The end of a transaction: what it has written is on disk. */
const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException("", "AbortError"));
  });

/**
 * Read records of one table and one vault. Many that lie close together are read in one piece: each request costs more
 * than a record. Documents that were made one after the other lie so.
 */
async function readGroup(transaction: IDBTransaction, group: readonly Address[], found: Map<string, unknown>): Promise<void> {
  const [table, vault = ""] = group[0] as Address;
  const store = transaction.objectStore(table);
  if (group.length >= MANY) {
    const uids = group.map(([, , uid = ""]) => uid).sort();
    const range = IDBKeyRange.bound([vault, uids[0]], [vault, uids.at(-1)]);
    const count = await result(store.count(range));
    if (count <= 2 * group.length) {
      const [keys, values] = count ? await Promise.all([result(store.getAllKeys(range)), result(store.getAll(range))]) : [[], []];
      keys.forEach((key, at) => found.set(spell([table, ...(key as string[])]), values[at]));
      return;
    }
  }
  await Promise.all(group.map(async (at) => found.set(spell(at), await result(store.get(keyOf(at))))));
}

/** The replica of this name in IndexedDB. With `create` false, one that is not there is refused. */
async function openIndexedDb(given: string, create: boolean): Promise<Storage> {
  const name = `strongroom replica ${given}`;
  let isNew = false;
  let lost: string | undefined;
  let isClosed = false;
  let database: IDBDatabase | undefined;
  try {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      const { result: made, transaction } = request;
      isNew = true;
      if (!create) return transaction?.abort();
      for (const table of TABLES) made.createObjectStore(table);
      transaction?.objectStore("facts").put(FORMAT, ["format"]);
    };
    const opened = (database = await result(request));
    opened.onversionchange = () => {
      lost ??= ELSEWHERE;
      opened.close();
    };
    opened.onclose = () => void (isClosed || (lost ??= LOST));
    const missing = TABLES.filter((table) => !opened.objectStoreNames.contains(table));
    requireFormat(missing.length ? undefined : await result(opened.transaction("facts").objectStore("facts").get(["format"])), given);
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
  const isPersistent = await persist();
  const locks = new Locks();

  /** Run something on the database; that it was closed under it is told as what it is. */
  const within = async <T>(task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (fault) {
      if (fault instanceof DOMException && fault.name === "AbortError") await sleep(0); // that it is gone is told just after
      if (lost !== undefined) throw new Locked(lost);
      if (fault instanceof DOMException && fault.name === "QuotaExceededError") {
        throw new Invalid({ name: "cannot be written: this device has no room left, or the browser gives none. Nothing was changed" });
      }
      if (fault instanceof DOMException && fault.name === "InvalidStateError" && !isClosed) throw new Locked((lost = LOST));
      throw fault;
    }
  };

  const storage: Storage = {
    isNew,
    isPersistent,
    get lost() {
      return lost;
    },
    onTold: () => undefined,
    read: (wanted) =>
      within(async () => {
        if (!wanted.length) return [];
        const transaction = db.transaction([...new Set(wanted.map(([table]) => table))]);
        const found = new Map<string, unknown>();
        const groups = new Map<string, Address[]>();
        for (const at of wanted) {
          const group = groups.get(`${at[0]} ${at[1]}`);
          if (group) group.push(at);
          else groups.set(`${at[0]} ${at[1]}`, [at]);
        }
        await Promise.all([...groups.values()].map((group) => readGroup(transaction, group, found)));
        return wanted.map((at) => found.get(spell(at)));
      }),
    list: (table: Table, first?: string) =>
      within(() => result(db.transaction(table).objectStore(table).getAll(first === undefined ? null : IDBKeyRange.bound([first], [first, []])))),
    write: (changes: readonly Change[]) =>
      within(async () => {
        const tables = [...new Set(changes.map(([[table]]) => table))];
        const transaction = db.transaction(tables, "readwrite", { durability: "strict" });
        const done = completed(transaction);
        try {
          for (const [at, value] of changes) {
            const store = transaction.objectStore(at[0]);
            if (value === undefined) store.delete(keyOf(at));
            else store.put(value, keyOf(at));
          }
        } catch (fault) {
          done.catch(() => undefined);
          transaction.abort();
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
