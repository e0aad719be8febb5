// Where a replica lies: tables of records, behind an interface that is small enough for a browser and for a file.
import { Invalid } from "../errors.js";

/** The tables of a replica. */
export const TABLES = [
  "facts",
  "vaults",
  "keys",
  "heads",
  "data",
  "earlier",
  "marks",
  "outbox",
  "sent",
  "repeats",
  "refusals",
] as const;
/** A table of a replica. */
export type Table = (typeof TABLES)[number];
/** Where a record lies: its table, then its key. */
export type Address = readonly [table: Table, ...key: string[]];
/** A record to be written; undefined deletes it. */
export type Change = readonly [at: Address, value: unknown];
/** Vault and uid of a document that has changed on this device. */
export type Changed = readonly [vault: string, uid: string];

export const FORMAT = "strongroom JavaScript replica 2";
export const LOST =
  "The storage of this replica is gone: the browser or a person has deleted it. Open a new one and sync; what was not sent is lost.";

/** The storage of a replica. What is in it is encrypted before it comes here. */
export interface Storage {
  /** Whether it was made now. */
  readonly isNew: boolean;
  /** Whether it stays until a person deletes it. Otherwise a browser deletes it when it runs out of room. */
  readonly isPersistent: boolean;
  /** Whether contents that were opened are worth keeping: in a browser, where each call of the cryptography takes long. */
  readonly keepsContents: boolean;
  /** Why it cannot be used any more, if so. */
  readonly lost: string | undefined;
  /** The records at these places, all as they were at one moment. */
  read(wanted: readonly Address[]): Promise<unknown[]>;
  /** The records of a table, or those whose key begins so, in the order of their keys. */
  list(table: Table, first?: string): Promise<unknown[]>;
  /** Write all of these, or none; they are on disk when this returns. */
  write(changes: readonly Change[]): Promise<void>;
  /** Run a task while no other one of this name runs, here or in another tab. */
  alone<T>(name: string, task: () => Promise<T>): Promise<T>;
  /** Become the one tab that follows the server; what ends that. Rejects where the signal ends the waiting. */
  lead(signal: AbortSignal): Promise<() => void>;
  /** Tell the other tabs what has changed. */
  tell(changed: readonly Changed[]): void;
  /** Called with what another tab has changed. */
  onTold: (changed: readonly Changed[]) => void;
  close(): void;
}

/** Where a replica is kept. */
export interface ReplicaPlace {
  /** Open the storage; made if there is none, unless `create` is false. */
  open(create: boolean): Promise<Storage>;
  /** Delete it. */
  delete(): Promise<void>;
}

/** Refuse storage that holds another thing than a replica of this format. */
export function requireFormat(found: unknown, name: string): void {
  if (found === FORMAT) return;
  const isOther = typeof found === "string" && found.startsWith(FORMAT.slice(0, -1));
  const why = isOther
    ? "is a replica of another format. Update this program, or delete the replica and sync"
    : "is not a replica, or half of it is gone. Delete it, open a new one and sync; what was not sent is lost";
  throw new Invalid({ name: `${why}: ${name}` });
}

/** What reads records. */
export type View = Pick<Storage, "read" | "list">;

const spell = (key: readonly string[]): string => JSON.stringify(key);

/** Changes that are written together, and that are seen by what reads through this. */
export class Unit implements View {
  readonly #storage: View;
  readonly #changes = new Map<Table, Map<string, Change>>();

  constructor(storage: View) {
    this.#storage = storage;
  }

  /** Everything that is to be written. */
  get changes(): Change[] {
    return [...this.#changes.values()].flatMap((table) => [...table.values()]);
  }

  put(at: Address, value: unknown): void {
    const [table, ...key] = at;
    const changed = this.#changes.get(table) ?? new Map<string, Change>();
    this.#changes.set(table, changed.set(spell(key), [at, value]));
  }

  async read(wanted: readonly Address[]): Promise<unknown[]> {
    const found = wanted.map(([table, ...key]) => this.#changes.get(table)?.get(spell(key)));
    const missing = wanted.filter((_, at) => !found[at]);
    const rest = missing.length ? (await this.#storage.read(missing)).values() : [].values();
    return found.map((change) => (change ? change[1] : rest.next().value));
  }

  async list(table: Table, first?: string): Promise<unknown[]> {
    const changed = this.#changes.get(table);
    if (!changed) return this.#storage.list(table, first);
    // Every record of a table that is listed has its own key in it.
    const found = new Map<string, unknown>();
    for (const record of await this.#storage.list(table, first)) found.set(spell(keyOf(record)), record);
    for (const [key, [at, value]] of changed) {
      if (first !== undefined && at[1] !== first) continue;
      if (value === undefined) found.delete(key);
      else found.set(key, value);
    }
    return [...found.values()];
  }
}

/** The key that a record has in it: that of its vault, and of its document if it is of one. */
export function keyOf(record: unknown): string[] {
  const { vault, uid } = record as { vault?: string; uid?: string };
  return [vault, uid].filter((part) => part !== undefined);
}
