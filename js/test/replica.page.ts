// What a test does with replicas in a browser: two tabs, a database that is deleted, what is in IndexedDB.
import { Client } from "../src/client.js";
import { sessionDatabase } from "../src/operations/sessionDatabase.js";
import { deleteReplica, keepMine, openReplica, type Replica } from "../src/replica.js";
import { localOf } from "../src/replica/replica.js";
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
/** A restored server has no share of a key, so that such a session could not be continued. */
const place = { ...sessionDatabase("strongroom"), needsServer: false };
let client: Client | undefined;
let replica: Replica | undefined;
let seen: unknown[] = [];
const ended = new AbortController();
let counts: Record<string, number> = {};
let isCounting = false;

function here(): Replica {
  if (!replica) throw new Error("no replica is open");
  return replica;
}

const notes = async () => (await here().vault("v", { create: true })).collection("notes");

/** Log in, or register, and open the replica. */
export async function begin(url: string, email: string, password: string, isNew: string): Promise<object> {
  client = new Client(url);
  if (isNew) await client.register(email, password);
  else await client.login(email, password);
  replica = await openReplica(client, "test");
  return { isNew: replica.isNew };
}

/** Save the session. */
export async function save(): Promise<void> {
  await client?.saveSession(place);
}

/** Continue the session that another tab has saved, and open the replica. */
export async function resume(): Promise<void> {
  client = await Client.resume(place);
  replica = await openReplica(client, "test");
}

/** Write a note on this device. */
export async function write(text: string): Promise<void> {
  await (await notes()).create(text);
}

/** Sync once; how much was pulled and pushed. */
export async function sync(): Promise<number[]> {
  const { pulled, pushed } = await here().sync(keepMine);
  return [pulled, pushed];
}

/** Why a sync fails whose transaction the browser aborts at its first pack, as where there is no room. */
export async function aborted(): Promise<string> {
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...given) {
    const request = put.apply(this, given);
    if (this.name === "heads" || this.name === "data") this.transaction.abort();
    return request;
  };
  try {
    return await here()
      .sync()
      .then(() => "", String);
  } finally {
    IDBObjectStore.prototype.put = put;
  }
}

/** What the client itself reads from the server, beside the replica; where it is refused, the name of the error. */
export async function online(): Promise<unknown> {
  const found: unknown[] = [];
  try {
    const vault = await client?.vault("v");
    for await (const note of vault?.collection("notes") ?? []) found.push(note.value);
    return found.sort();
  } catch (fault) {
    return fault instanceof Error ? fault.name : fault;
  }
}

/** The same, once it is not refused. */
export async function onlineAgain(): Promise<unknown> {
  for (;;) {
    const found = await online();
    if (Array.isArray(found)) return found;
    await new Promise((go) => setTimeout(go, 20));
  }
}

/** What was asked of IndexedDB and of WebCrypto since the last call, by the name of the method. */
export function counted(): Record<string, number> {
  const before = counts;
  counts = {};
  if (!isCounting) {
    isCounting = true;
    const count = (of: object, names: readonly string[]): void => {
      for (const name of names) {
        const method = Reflect.get(of, name) as (...given: unknown[]) => unknown;
        Reflect.set(of, name, function (this: unknown, ...given: unknown[]) {
          counts[name] = (counts[name] ?? 0) + 1;
          return Reflect.apply(method, this, given);
        });
      }
    };
    count(IDBObjectStore.prototype, ["get", "getAll", "getAllKeys", "count", "put"]);
    count(IDBDatabase.prototype, ["transaction"]);
    count(SubtleCrypto.prototype, ["digest", "verify", "deriveBits", "importKey", "decrypt"]);
  }
  return before;
}

/** Begin to follow the server, if no other tab does. */
export function watch(): void {
  void (async () => {
    for await (const _ of here().watch(keepMine, { signal: ended.signal }));
  })();
}

/** Begin to follow the notes. */
export async function live(): Promise<void> {
  const store = (await notes()).live();
  store.subscribe(() => (seen = store.getSnapshot().documents.map(({ value }) => value)));
}

/** The notes that the live query shows, once there are so many. */
export async function shown(count: number): Promise<unknown[]> {
  while (seen.length < count) await new Promise((go) => setTimeout(go, 20));
  return seen;
}

/** The notes whose texts have these words. */
export async function found(search: string): Promise<unknown[]> {
  return (await (await notes()).find({ search })).map(({ value }) => value);
}

/** The number of changes that wait, once there are none. */
export async function sent(): Promise<number> {
  while ((await here().pending()) > 0) await new Promise((go) => setTimeout(go, 20));
  return 0;
}

/** Everything that IndexedDB holds on this origin, as text; bytes in base64. */
export async function stored(): Promise<string> {
  const whole: unknown[] = [];
  const done = <T>(request: IDBRequest<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  for (const { name = "" } of await indexedDB.databases()) {
    const database = await done(indexedDB.open(name));
    for (const store of database.objectStoreNames) {
      const records = database.transaction(store).objectStore(store);
      whole.push(name, store, await done(records.getAllKeys()), await done(records.getAll()));
    }
    database.close();
  }
  return JSON.stringify(whole, (_, value: unknown) =>
    value instanceof Uint8Array ? btoa(String.fromCharCode(...value)) : value,
  );
}

/** Rewrite the database as the first release had it: each document in records of its own. */
export async function unpack(): Promise<void> {
  const name = "strongroom replica test";
  const done = <T>(request: IDBRequest<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  await here().close();
  const before = await done(indexedDB.open(name));
  const records: [store: string, key: IDBValidKey, value: unknown][] = [];
  for (const store of before.objectStoreNames) {
    const place = before.transaction(store).objectStore(store);
    const [keys, values] = await Promise.all([done(place.getAllKeys()), done(place.getAll())]);
    keys.forEach((key, at) => {
      if (store !== "heads" && store !== "data") records.push([store, key, values[at]]);
      else
        for (const [uid, value] of values[at] as [string, unknown][])
          records.push([store, [(key as string[])[0] ?? "", uid], value]);
    });
  }
  const stores = [...before.objectStoreNames];
  before.close();
  await done(indexedDB.deleteDatabase(name));
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    for (const store of stores) request.result.createObjectStore(store);
    for (const [store, key, value] of records) request.transaction?.objectStore(store).put(value, key);
  };
  (await done(request)).close();
}

/** Look at the records with kept contents; how many there are. They are written as `look` leaves them, where `isChange`. */
async function boxes(look?: (records: { box: Uint8Array }[]) => void, isChange = true): Promise<number> {
  const { storage } = localOf(here()).store;
  const found = (await storage.list("facts")).filter((one) => typeof one === "object") as {
    vault: string;
    uid: string;
    box: Uint8Array;
  }[];
  look?.(found);
  if (look && isChange) await storage.write(found.map((one) => [["facts", one.vault, one.uid], one]));
  return found.length;
}

/** The boxes with kept contents, in hexadecimal. */
export async function sealed(): Promise<string[]> {
  const found: string[] = [];
  await boxes(
    (records) => found.push(...records.map(({ box }) => Array.from(box, (byte) => byte.toString(16)).join(""))),
    false,
  );
  return found;
}

/** The number of boxes with kept contents, once it is this. */
export async function boxed(count: number): Promise<number> {
  while ((await boxes()) !== count) await new Promise((go) => setTimeout(go, 20));
  return count;
}

/** Exchange two boxes with kept contents, and change a byte of the third. */
export const spoil = (): Promise<number> =>
  boxes(([one, other, third]) => {
    if (!one || !other || !third) throw new Error("there are not enough boxes");
    [one.box, other.box] = [other.box, one.box];
    third.box[100] = (third.box[100] ?? 0) ^ 1;
  });

/** What the storage of the page holds besides, as text. */
export const besides = (): string => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]);

/** Begin to write and to sync, without an end; the number of notes that are on disk, in the title of the page. */
export function writeOn(text: string): void {
  document.title = "0";
  void (async () => {
    for (let number = 0; ; number += 1) {
      await (await notes()).create(`${text} ${number}`);
      document.title = `${number + 1}`;
      if (number % 4 === 3) await here().sync(keepMine);
    }
  })();
}

/** The notes that are here, and how many changes wait. */
export async function kept(): Promise<[found: unknown[], pending: number]> {
  return [(await (await notes()).find()).map(({ value }) => value), await here().pending()];
}

/** What a read says, once the storage is gone. */
export async function lost(): Promise<string> {
  for (;;) {
    const fault: unknown = await notes().then(
      () => undefined,
      (found: unknown) => found,
    );
    if (fault !== undefined) return String(fault);
    await new Promise((go) => setTimeout(go, 20));
  }
}

/** Delete the replica. */
export const remove = (): Promise<void> => deleteReplica("test");

/** What is said of a replica that must be there and is not. */
export async function missing(): Promise<string> {
  if (!client) throw new Error("nobody has logged in");
  return openReplica(client, "test", { create: false }).then(() => "", String);
}
