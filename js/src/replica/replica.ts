// A copy of an account on this device.
import { type Client, coreOf } from "../client.js";
import type { CodeOptions } from "../factors.js";
import { Invalid, Locked } from "../errors.js";
import { checkedText } from "../format/encoding.js";
import { engine, indexedDb, passwords } from "../lazyImports.js";
import { type Document, Scope } from "../operations/documents.js";
import type { Value, ValueType } from "../operations/valueTypes.js";
import { checkedType } from "../vaults.js";
import type { BlobConflict, Conflict } from "./conflicts.js";
import { Live, type LiveStore } from "./live.js";
import type { Local } from "./local.js";
import { entryRow } from "./records.js";
import type { RefusedChange } from "./refused.js";
import type { Report, SyncProgress } from "./report.js";
import type { Resolver } from "./resolutions.js";
import type { ReplicaPlace } from "./storage.js";
import { openLocal, openVault, openVaults, scopesOf } from "./unlock.js";
import { ReplicaCollection, ReplicaVault } from "./vaults.js";

/** How a replica is opened. */
export interface ReplicaOptions {
  /** Whether one that is not there is made; true unless said otherwise. With false, that it is gone is Invalid. */
  create?: boolean;
}

/** What a replica shows of its state. */
export interface SyncState {
  /** The number of queued changes, refused ones included. */
  readonly pending: number;
  /** Whether this tab syncs right now. */
  readonly isSyncing: boolean;
  /** The report of the last sync of this tab. */
  readonly report: Report | undefined;
  /** Why the last sync of this tab failed, if so. */
  readonly error: Error | undefined;
}

/** What needs a person: conflicts, and changes that the server refuses. */
export interface Undecided {
  readonly conflicts: readonly Conflict[];
  readonly blobConflicts: readonly BlobConflict[];
  readonly refused: readonly RefusedChange[];
}

/** The place of a replica: that of a name is a database of this browser. */
async function placeOf(given: string | ReplicaPlace): Promise<ReplicaPlace> {
  if (typeof given === "object") return given;
  if (!checkedText(given, "place")) throw new Invalid({ place: "must not be empty" });
  if ("indexedDB" in globalThis) return (await indexedDb()).indexedDbPlace(given);
  throw new Invalid({
    place: "names a database of IndexedDB, and there is none here; use replicaFile of @strongroom/client/node",
  });
}

/**
 * Open a copy of the account on this device; made if there is none.
 *
 * In a browser, `place` is the name of a database of IndexedDB, which all tabs of the origin share; `replicaFile` of
 * "@strongroom/client/node" is a file, which one process at a time has open. Everything in it is encrypted.
 */
export async function openReplica(
  client: Client,
  place: string | ReplicaPlace,
  { create = true }: ReplicaOptions = {},
): Promise<Replica> {
  const core = coreOf(client);
  if (!core.token) core.keyring();
  return new Replica(await openLocal(core, await (await placeOf(place)).open(create)));
}

/**
 * Open the account of a client from its replica, without the server; the client logs in by itself when it needs one.
 *
 * `code` is the second factor of that login, as for `login`.
 */
export async function unlockReplica(
  client: Client,
  place: string | ReplicaPlace,
  password: string,
  { code }: CodeOptions = {},
): Promise<void> {
  const [{ unlockFrom }, { FactorSource }] = await Promise.all([engine(), passwords()]);
  await unlockFrom(coreOf(client), await (await placeOf(place)).open(false), password, new FactorSource(code));
}

/** Delete a replica from this device; what was not sent is lost. Close it first. */
export const deleteReplica = async (place: string | ReplicaPlace): Promise<void> => (await placeOf(place)).delete();

let reveal: (replica: Replica) => Local;

/** A copy of an account, or of what a token opens, on this device. Only `sync` and `watch` need the server. */
export class Replica {
  readonly #local: Local;
  readonly #state: Live<SyncState>;
  readonly #undecided: Live<Undecided>;
  #syncing = 0;
  #report: Report | undefined;
  #error: Error | undefined;

  static {
    reveal = (replica) => replica.#local;
  }

  /** Made by `openReplica`. */
  constructor(local: Local) {
    this.#local = local;
    const first: SyncState = { pending: 0, isSyncing: false, report: undefined, error: undefined };
    let state = first;
    this.#state = new Live(
      local,
      first,
      async () => {
        const pending = await this.pending();
        const [isSyncing, report, error] = [this.#syncing > 0, this.#report, this.#error];
        const isSame =
          state.pending === pending &&
          state.isSyncing === isSyncing &&
          state.report === report &&
          state.error === error;
        if (!isSame) state = { pending, isSyncing, report, error };
        return state;
      },
      (error, before) => (state = { ...before, error }),
    );
    const none: Undecided = { conflicts: [], blobConflicts: [], refused: [] };
    let spelled = "";
    let undecided = none;
    this.#undecided = new Live(
      local,
      none,
      async () => {
        const found = {
          conflicts: await this.conflicts(),
          blobConflicts: await this.blobConflicts(),
          refused: await this.refused(),
        };
        const now = JSON.stringify([
          found.conflicts.map(({ uid, mine, theirs }) => [uid, mine.proof, theirs.proof]),
          found.blobConflicts.map(({ vault, mine, theirs }) => ({ vault, mine, theirs })),
          found.refused.map(({ uid, reason, document }) => [uid, reason, document?.proof]),
        ]);
        if (now === spelled) return undecided;
        spelled = now;
        undecided = found;
        return found;
      },
      (error, before) => {
        if (!(error instanceof Locked)) return before;
        spelled = ""; // nothing that was decrypted outlives the keys
        undecided = none;
        return none;
      },
    );
  }

  /** Whether there was no such replica before. An app that expects one learns that it was deleted. */
  get isNew(): boolean {
    return this.#local.store.storage.isNew;
  }

  /** Whether it stays until a person deletes it. Otherwise the browser deletes it when it runs out of room. */
  get isPersistent(): boolean {
    return this.#local.store.storage.isPersistent;
  }

  /** Whether it was closed, or its client was closed or has logged out. */
  get isClosed(): boolean {
    return this.#local.store.isClosed;
  }

  /** Close it. Queued changes stay in it. */
  close(): Promise<void> {
    return this.#local.close();
  }

  /** Pull new rows and push queued changes. Without a resolver, conflicts are left for you to decide. */
  async sync(resolver?: Resolver, { progress }: { progress?: (progress: SyncProgress) => void } = {}): Promise<Report> {
    const { store } = this.#local;
    this.#syncing += 1;
    this.#state.refresh();
    try {
      const { runSync } = await engine();
      this.#report = await store.open().alone("sync", () => runSync(this.#local, resolver, progress));
      this.#error = undefined;
      return this.#report;
    } catch (fault) {
      this.#failed(fault);
      throw fault;
    } finally {
      this.#syncing -= 1;
      this.#state.refresh();
      this.#undecided.refresh();
    }
  }

  /**
   * Sync whenever something changes, as long as you take the reports; each is of a sync that changed something.
   *
   * It follows the server's events. Where there are none it asks again, at the latest after `every` seconds. It outlives
   * a server that cannot be reached, and syncs at once when the browser reports a network again. Of several tabs, one does
   * so; the others take its place when it is closed, and what they write is sent by it at once. It ends with `signal`, or
   * when the replica is closed.
   */
  async *watch(
    resolver?: Resolver,
    { every = 15, signal }: { every?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Report, void, undefined> {
    const { watch } = await engine();
    const failed = (error: unknown): void => this.#failed(error);
    yield* watch(this.#local, () => this.sync(resolver), every, signal, failed);
  }

  /** Show why there are no more syncs. */
  #failed(fault: unknown): void {
    this.#error = fault instanceof Error ? fault : new Error(String(fault));
    this.#state.refresh();
  }

  /**
   * What this replica holds, as a file that `Client.importAccount` takes; it needs no server.
   *
   * The file is encrypted as the replica is. It has the keyring, the vaults, their documents and blobs, and the changes
   * that are not sent yet as if they were stored; where a conflict waits, the side of this device. It has no history.
   */
  async export(): Promise<Blob> {
    return (await import("./export.js")).exportReplica(this.#local);
  }

  /** The unresolved conflicts. */
  async conflicts(): Promise<Conflict[]> {
    return (await engine()).undecidedConflicts(this.#local, await scopesOf(this.#local));
  }

  /** The blobs of this device that a restored server has gone on without. */
  async blobConflicts(): Promise<BlobConflict[]> {
    return (await engine()).undecidedBlobs(this.#local, await scopesOf(this.#local));
  }

  /** The changes that the server has refused, as they were when this device last synced. */
  async refused(): Promise<RefusedChange[]> {
    return (await engine()).refusedChanges(this.#local);
  }

  /** The number of queued changes, refused ones included. */
  async pending(): Promise<number> {
    return (await this.#local.store.entries()).length;
  }

  /** The queued changes as documents, those of vaults that were deleted left out; a deletion is `deleted`. */
  async queued(): Promise<Document[]> {
    const scopes = await scopesOf(this.#local);
    const found: Document[] = [];
    for (const entry of await this.#local.store.entries()) {
      const scope = scopes.get(entry.vault);
      if (scope) found.push(await this.#local.openRow(scope, entryRow(entry)));
    }
    return found;
  }

  /** The state of this replica, as a store. */
  get state(): LiveStore<SyncState> {
    return this.#state;
  }

  /** What needs a person, as a store. */
  get undecided(): LiveStore<Undecided> {
    return this.#undecided;
  }

  /**
   * The vault of this name, as it was when this device last saw it. With a token, the name may be left out.
   *
   * With `create`, a vault that is not there is made on this device, and sent with the next sync. A new one shows the
   * server its name only if `sealed` is false.
   */
  async vault(
    name?: string,
    { create = false, sealed = true }: { create?: boolean; sealed?: boolean } = {},
  ): Promise<ReplicaVault> {
    return new ReplicaVault(this.#local, await openVault(this.#local, name, create, sealed));
  }

  /** All vaults. */
  async vaults(): Promise<ReplicaVault[]> {
    return (await openVaults(this.#local)).map((opened) => new ReplicaVault(this.#local, opened));
  }

  /** The collection that this client's token opens. `type` reads its values. */
  collection(): ReplicaCollection<Value>;
  collection<T>(type: ValueType<T>): ReplicaCollection<T>;
  collection<T>(type?: ValueType<T>): ReplicaCollection<T> {
    const keys = this.#local.core.token?.keys;
    if (!keys || !("wires" in keys)) {
      throw new Locked("Only a token that was made for one collection opens one; open its vault first.");
    }
    return new ReplicaCollection(this.#local, new Scope(keys, undefined, true, checkedType(type)));
  }
}

/** What is inside a replica. */
export const localOf = (replica: Replica): Local => reveal(replica);
