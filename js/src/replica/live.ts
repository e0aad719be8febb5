// Stores that follow the replica: what a page shows, kept in step with every change on this device.
import { DocumentNotFound, Locked } from "../errors.js";
import { checkedUid } from "../format/encoding.js";
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
  /** Whether the documents were read; before that there are none. */
  readonly isReady: boolean;
  /** Why they cannot be read, if so. */
  readonly error: Error | undefined;
}

const folded = (text: string): string => text.normalize("NFKD").replace(/\p{Mark}/gu, "").toLowerCase();

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

/** A store whose value is made anew after changes, while somebody listens. */
export class Live<T> implements LiveStore<T> {
  readonly #local: Local;
  readonly #make: (changed: readonly Changed[] | undefined) => Promise<T>;
  readonly #failed: (error: Error, before: T) => T;
  readonly #listeners = new Set<() => void>();
  #value: T;
  #changed: Changed[] | undefined;
  #isAll = false;
  #isRunning = false;
  #stop: (() => void) | undefined;

  /** `make` is given the documents that have changed, or undefined for all. */
  constructor(local: Local, first: T, make: (changed: readonly Changed[] | undefined) => Promise<T>, failed: (error: Error, before: T) => T) {
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
    const before = this.#value;
    try {
      const made = await this.#make(changed);
      this.#local.store.open(); // what was decrypted while the replica was being closed is not kept
      this.#value = made;
    } catch (fault) {
      this.#value = this.#failed(fault instanceof Error ? fault : new Error(String(fault)), before);
    }
    if (this.#value !== before) for (const listener of [...this.#listeners]) call(listener);
  }
}

/** The documents of a place that a query wants, as a store. */
export function liveDocuments<T>(local: Local, scope: Scope<T>, query: Query<T>): LiveStore<LiveDocuments<T>> {
  const known = new Map<string, Document<T>>();
  let isRead = false;
  let shown: LiveDocuments<T> = { documents: [], isReady: false, error: undefined };
  const read = async (changed: readonly Changed[] | undefined): Promise<boolean> => {
    if (!isRead || !changed) {
      known.clear();
      for await (const document of local.iterate(scope)) known.set(document.uid, document);
      return (isRead = true);
    }
    const uids = [...new Set(changed.filter(([vault]) => vault === scope.vault).map(([, uid]) => uid))];
    if (!uids.length) return false;
    await local.followKeys();
    const now = await local.findAll(scope, uids);
    let isOther = false;
    for (const uid of uids) {
      const [before, document] = [known.get(uid), now.get(uid)];
      const after = document?.deleted ? undefined : document;
      if (after) known.set(uid, after);
      else known.delete(uid);
      isOther ||= before?.proof !== after?.proof || before?.updatedAt !== after?.updatedAt;
    }
    return isOther;
  };
  const make = async (changed: readonly Changed[] | undefined): Promise<LiveDocuments<T>> => {
    local.store.open();
    if (!(await read(changed)) && shown.isReady && !shown.error) return shown;
    return (shown = { documents: select(known.values(), query), isReady: true, error: undefined });
  };
  return new Live(local, shown, make, (error, before) => {
    isRead = false;
    if (!(error instanceof Locked)) return (shown = { ...before, error });
    known.clear(); // nothing that was decrypted outlives the keys
    return (shown = { documents: [], isReady: false, error });
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
    return (shown = { document, isReady: true, error: undefined });
  };
  return new Live(local, shown, make, (error, before) => {
    const isLocked = error instanceof Locked;
    return (shown = isLocked ? { document: undefined, isReady: false, error } : { ...before, error });
  });
}
