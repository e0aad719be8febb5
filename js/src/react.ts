// What an app imports from "@strongroom/client/react": hooks that follow a replica.
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { Document } from "./operations/documents.js";
import { type LiveDocument, type LiveDocuments, type LiveStore, type Query, select } from "./replica/live.js";
import type { Replica, SyncState, Undecided } from "./replica/replica.js";
import type { Report } from "./replica/report.js";
import type { Resolver } from "./replica/resolutions.js";
import type { ReplicaCollection } from "./replica/vaults.js";

const NOT_READY = { documents: [], document: undefined, isReady: false, error: undefined };
const NOT_SYNCED: SyncState = { pending: 0, isSyncing: false, report: undefined, error: undefined };
const NOTHING: Undecided = { conflicts: [], blobConflicts: [], refused: [] };

/** The value of a store as it is now; of none, what is given in its place. */
function useStore<T>(store: LiveStore<T> | undefined, otherwise: T): T {
  const subscribe = useCallback((listener: () => void) => store?.subscribe(listener) ?? (() => undefined), [store]);
  const now = (): T => store?.getSnapshot() ?? otherwise;
  return useSyncExternalStore(subscribe, now, () => otherwise);
}

/** A store of a collection, the same as long as the place and the type are, however often the collection is opened. */
function useStoreOf<C, T>(
  collection: ReplicaCollection<C> | undefined,
  make: (of: ReplicaCollection<C>) => LiveStore<T>,
  key = "",
) {
  const { local, scope } = collection?.inside() ?? {};
  return useMemo(() => collection && make(collection), [local, scope?.vault, scope?.name, scope?.type, key]);
}

/**
 * The documents of a collection of a replica that a query wants, kept in step with every change on this device.
 *
 * The collection may be undefined, as long as the replica is not open. The query may be another one each time.
 */
export function useCollection<T>(collection: ReplicaCollection<T> | undefined, query: Query<T> = {}): LiveDocuments<T> {
  const store = useStoreOf(collection, (of) => of.live());
  const all = useStore<LiveDocuments<T>>(store, NOT_READY);
  const { where, search, sort, limit } = query;
  return useMemo(() => ({ ...all, documents: select(all.documents, query) }), [all, where, search, sort, limit]);
}

/** One document of a collection of a replica, kept in step with every change on this device. */
export function useDocument<T>(collection: ReplicaCollection<T> | undefined, uid: string | undefined): LiveDocument<T> {
  const store = useStoreOf(uid === undefined ? undefined : collection, (of) => of.liveDocument(uid ?? ""), uid);
  return useStore<LiveDocument<T>>(store, NOT_READY);
}

/** How `useSync` syncs. */
export interface SyncOptions {
  /** Decides conflicts; without one they are left for a person, and `useConflicts` shows them. */
  resolver?: Resolver | undefined;
  /** Whether to sync whenever something changes; true unless said otherwise. With false, only `sync` syncs. */
  watch?: boolean | undefined;
  /** Where the server has no events, the most seconds between two syncs; 15 unless said otherwise. */
  every?: number | undefined;
}

/** What `useSync` shows. */
export interface Syncing extends SyncState {
  /** Sync now; undefined where that failed, and `error` says why. */
  readonly sync: () => Promise<Report | undefined>;
}

/** Keep a replica in step with the server as long as the component is shown, and show how that goes. */
export function useSync(
  replica: Replica | undefined,
  { resolver, watch = true, every = 15 }: SyncOptions = {},
): Syncing {
  const state = useStore(replica?.state, NOT_SYNCED);
  const newest = useRef(resolver);
  useEffect(() => {
    newest.current = resolver;
  });
  const hasResolver = resolver !== undefined;
  const decide = useMemo<Resolver | undefined>(
    () => (hasResolver ? (conflict) => newest.current?.(conflict) as ReturnType<Resolver> : undefined),
    [hasResolver],
  );
  useEffect(() => {
    if (!replica || !watch) return undefined;
    const ended = new AbortController();
    void (async () => {
      try {
        for await (const _ of replica.watch(decide, { every, signal: ended.signal })); // the state of the replica shows each report
      } catch {
        // The state of the replica shows it.
      }
    })();
    return () => ended.abort();
  }, [replica, watch, every, decide]);
  const sync = useCallback(async () => replica?.sync(decide).catch(() => undefined), [replica, decide]);
  return useMemo(() => ({ ...state, sync }), [state, sync]);
}

/** What needs a person: conflicts, and changes that the server refuses. */
export function useConflicts(replica: Replica | undefined): Undecided {
  return useStore(replica?.undecided, NOTHING);
}

export type { Document };
