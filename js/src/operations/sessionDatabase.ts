// A saved session in IndexedDB. Its key is a CryptoKey whose bytes the browser's files hold, also after it is deleted: what
// matters is sealed with the server's share too.
import { Invalid } from "../errors.js";
import { acrossTabs } from "../net/locks.js";
import type { SessionPlace, SessionRecord } from "./savedSessions.js";

const DATABASE = "strongroom sessions";
const STORE = "sessions";

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () =>
      reject(new Invalid({ session: `cannot be kept here: ${request.error?.name ?? "unknown error"}` }));
  });

/** Run something on the store; what it writes is on disk when this returns. */
async function within<T>(mode: IDBTransactionMode, task: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open(DATABASE, 2);
  opening.onupgradeneeded = () => {
    const { result } = opening;
    if (result.objectStoreNames.contains(STORE)) result.deleteObjectStore(STORE); // of an older format
    result.createObjectStore(STORE);
  };
  const database = await done(opening);
  try {
    const transaction = database.transaction(STORE, mode, { durability: "strict" });
    const ended = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () =>
        reject(new Invalid({ session: "cannot be kept here: the storage is full, or closed" }));
    });
    const [result] = await Promise.all([done(task(transaction.objectStore(STORE))), ended]);
    return result;
  } finally {
    database.close();
  }
}

/** A place in this browser's IndexedDB, by its name. Tabs of one origin share it. */
export const sessionDatabase = (name: string): SessionPlace => ({
  keepsKeys: true,
  needsServer: true,
  read: () => within<SessionRecord | undefined>("readonly", (store) => store.get(name)),
  write: async (record, over) =>
    void (await within("readwrite", (store): IDBRequest => {
      if (over === undefined) return store.put(record, name);
      const found = store.get(name);
      found.addEventListener("success", () => {
        if ((found.result as SessionRecord | undefined)?.id === over) store.put(record, name);
      });
      return found;
    })),
  delete: async () => void (await within("readwrite", (store) => store.delete(name))),
  alone: (task) => acrossTabs(`strongroom session ${name}`, task),
});
