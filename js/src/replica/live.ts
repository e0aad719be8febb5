// Stores that follow the replica: what a page shows, kept in step with every change on this device.
import { DocumentNotFound, Locked } from "../errors.js";
import { checkedUid } from "../format/encoding.js";
import { engine } from "../lazyImports.js";
import type { Document, Scope } from "../operations/documents.js";
import type { Local } from "./local.js";
import type { Changed } from "./storage.js";

/** A value that changes, for whoever shows it. */
export interface LiveStore<T> {
  /** Call a function after each change; what ends that. */
  subscribe(listener: () => void): () => void;
  /** The value now: the same object as long as nothing changes. */
  getSnapshot(): T;
}

/** Which documents are wanted, and in which order. Everything is looked at on this device. */
export interface Query<T> {
  /** Only those for which this is true. */
  where?: ((document: Document<T>) => boolean) | undefined;
  /** Only those in whose texts each of these words occurs, in any case and with any accent. */
  search?: string | undefined;
  /** Their order; otherwise that of their last change. */
  sort?: ((one: Document<T>, other: Document<T>) => number) | undefined;
  /** So many at the most. */
  limit?: number | undefined;
}

/** What a live query shows. */
export interface LiveDocuments<T> {
  readonly documents: readonly Document<T>[];
  /** Whether all documents were read. Before that, there are those that were read so far: none, then more in growing steps. */
  readonly isReady: boolean;
  /** Why they cannot be read, if so. */
  readonly error: Error | undefined;
}

const folded = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase();

function* textsOf(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    for (const inner of Object.values(value)) yield* textsOf(inner);
  }
}

/** Whether each word of a text occurs in the texts of a document. */
export function matches(document: Document<unknown>, search: string): boolean {
  const words = folded(search).split(/\s+/).filter(Boolean);
  const text = words.length ? folded([...textsOf(document.raw)].join("\n")) : "";
  return words.every((word) => text.includes(word));
}

/** The documents that a query wants of these. */
export function select<T>(documents: Iterable<Document<T>>, { where, search, sort, limit }: Query<T>): Document<T>[] {
  let found = [...documents];
  if (where) found = found.filter(where);
  if (search !== undefined) found = found.filter((document) => matches(document, search));
  found.sort(sort ?? ((one, other) => one.updatedAt - other.updatedAt));
  return limit === undefined ? found : found.slice(0, limit);
}

/** Call a listener; a fault of it is reported as one that nobody has caught, and stops nothing here. */
function call(listener: () => void): void {
  try {
    listener();
  } catch (fault) {
    if (typeof reportError === "function") reportError(fault);
    else {
      queueMicrotask(() => {
        throw fault;
      });
    }
  }
}

/** Makes a value; given the documents that have changed, or undefined for all. `show` shows a part of it before it is whole. */
type Make<T> = (changed: readonly Changed[] | undefined, show: (part: T) => void) => Promise<T>;

/** A store whose value is made anew after changes, while somebody listens. */
export class Live<T> implements LiveStore<T> {
  readonly #local: Local;
  readonly #make: Make<T>;
  readonly #failed: (error: Error, before: T) => T;
  readonly #listeners = new Set<() => void>();
  #value: T;
  #changed: Changed[] | undefined;
  #isAll = false;
  #isRunning = false;
  #stop: (() => void) | undefined;

  constructor(local: Local, first: T, make: Make<T>, failed: (error: Error, before: T) => T) {
    this.#local = local;
    this.#value = first;
    this.#make = make;
    this.#failed = failed;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = (): void => listener();
    this.#listeners.add(own);
    if (!this.#stop) {
      this.#stop = this.#local.store.listen((changed) => this.#run(changed));
      this.#run(undefined);
    }
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size || !this.#stop) return;
      this.#stop();
      this.#stop = undefined;
      this.#forgetLater();
    };
  };

  /** While nobody listens, forget the value when the replica is closed. The replica does not keep this store alive for that. */
  #forgetLater(): void {
    const { store } = this.#local;
    const self = new WeakRef(this);
    const stop = store.listen(() => {
      const live = self.deref();
      if (!live || live.#stop) stop();
      else if (store.isClosed) live.#run([]);
    });
  }

  readonly getSnapshot = (): T => this.#value;

  /** Make the value anew for another reason than a change of the storage. */
  refresh(): void {
    if (this.#stop) this.#run([]);
  }

  /** Make the value anew; changes that come meanwhile are met after it, together. */
  #run(changed: readonly Changed[] | undefined): void {
    if (this.#isRunning) {
      this.#isAll ||= changed === undefined;
      this.#changed = [...(this.#changed ?? []), ...(changed ?? [])];
      return;
    }
    this.#isRunning = true;
    void this.#renew(changed).finally(() => {
      this.#isRunning = false;
      const [next, isAll] = [this.#changed, this.#isAll];
      this.#changed = undefined;
      this.#isAll = false;
      if (next && this.#stop) this.#run(isAll ? undefined : next);
    });
  }

  async #renew(changed: readonly Changed[] | undefined): Promise<void> {
    const show = (made: T): void => {
      this.#local.store.open(); // what was decrypted while the replica was being closed is not kept
      this.#set(made);
    };
    try {
      show(await this.#make(changed, show));
    } catch (fault) {
      this.#set(this.#failed(fault instanceof Error ? fault : new Error(String(fault)), this.#value));
    }
  }

  #set(value: T): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) call(listener);
  }
}

const FIRST = 100; // documents that are shown as soon as they are read; then twice as many, and so on
const SLICE = 16; // milliseconds of reading, then the page gets its turn: what the cryptography answers goes before timers
const MANY = 64; // documents that were opened, from which on their contents are kept; of one that is deleted, they go at once
const SETTLED = 2000; // milliseconds without such a change, until then

/** The documents of a place that a query wants, as a store. */
export function liveDocuments<T>(local: Local, scope: Scope<T>, query: Query<T>): LiveStore<LiveDocuments<T>> {
  const known = new Map<string, Document<T>>();
  let isRead = false;
  let shown: LiveDocuments<T> = { documents: [], isReady: false, error: undefined };
  let opened = 0; // documents whose contents are not kept yet
  let timer: ReturnType<typeof setTimeout> | undefined;
  const selected = (isReady: boolean): LiveDocuments<T> =>
    (shown = { documents: select(known.values(), query), isReady, error: undefined });
  const keepLater = (): void => {
    clearTimeout(timer);
    if (!local.store.storage.keepsContents) return;
    timer = setTimeout(() => {
      opened = 0;
      const keep = async (): Promise<void> => (await engine()).keepContents(local, scope, [...known.values()]);
      keep().catch(() => undefined); // without them, the next start takes longer
    }, SETTLED);
  };
  const readAll = async (show: (part: LiveDocuments<T>) => void): Promise<void> => {
    isRead = false;
    clearTimeout(timer);
    known.clear();
    let next = FIRST;
    let end = performance.now() + SLICE;
    for await (const { documents, isKept } of local.parts(scope)) {
      for (const document of documents) known.set(document.uid, document);
      if (!isKept) opened += documents.length;
      if (!shown.isReady && known.size >= next) {
        show(selected(false)); // what is shown does not get less
        next = 2 * known.size;
      }
      if (performance.now() < end) continue;
      await new Promise((go) => setTimeout(go));
      end = performance.now() + SLICE;
    }
    isRead = true;
    keepLater();
  };
  const read = async (changed: readonly Changed[]): Promise<boolean> => {
    const uids = [...new Set(changed.filter(([vault]) => vault === scope.vault).map(([, uid]) => uid))];
    if (!uids.length) return false;
    await local.followKeys();
    const now = await local.findAll(scope, uids);
    let isOther = false;
    let isLess = false;
    for (const uid of uids) {
      const [before, document] = [known.get(uid), now.get(uid)];
      const after = document?.deleted ? undefined : document;
      if (after) known.set(uid, after);
      else isLess = known.delete(uid) || isLess;
      isOther ||= before?.proof !== after?.proof || before?.updatedAt !== after?.updatedAt;
    }
    opened += now.size;
    if (isLess || opened >= MANY) keepLater();
    return isOther;
  };
  const make = async (
    changed: readonly Changed[] | undefined,
    show: (part: LiveDocuments<T>) => void,
  ): Promise<LiveDocuments<T>> => {
    local.store.open();
    if (!isRead || !changed) await readAll(show);
    else if (!(await read(changed)) && shown.isReady && !shown.error) return shown;
    return selected(true);
  };
  return new Live(local, shown, make, (error, before) => {
    isRead = false;
    const isLocked = error instanceof Locked;
    shown = isLocked ? { documents: [], isReady: false, error } : { ...before, error };
    if (isLocked) {
      clearTimeout(timer);
      known.clear(); // nothing that was decrypted outlives the keys
    }
    return shown;
  });
}

/** What a live document shows. */
export interface LiveDocument<T> {
  /** The document; undefined while it is not there, or is deleted. */
  readonly document: Document<T> | undefined;
  /** Whether it was looked for. */
  readonly isReady: boolean;
  /** Why it cannot be read, if so. */
  readonly error: Error | undefined;
}

/** One document of a place, as a store. */
export function liveDocument<T>(local: Local, scope: Scope<T>, given: string): LiveStore<LiveDocument<T>> {
  const uid = checkedUid(given);
  let shown: LiveDocument<T> = { document: undefined, isReady: false, error: undefined };
  const make = async (changed: readonly Changed[] | undefined): Promise<LiveDocument<T>> => {
    local.store.open();
    const isMeant = !changed || changed.some(([vault, one]) => vault === scope.vault && one === uid);
    if (!isMeant && shown.isReady && !shown.error) return shown;
    const document = await local.get(scope, uid, false).catch((refusal: unknown) => {
      if (!(refusal instanceof DocumentNotFound)) throw refusal;
      return undefined;
    });
    shown = { document, isReady: true, error: undefined };
    return shown;
  };
  return new Live(local, shown, make, (error, before) => {
    const isLocked = error instanceof Locked;
    shown = isLocked ? { document: undefined, isReady: false, error } : { ...before, error };
    return shown;
  });
}
