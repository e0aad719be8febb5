// Syncing while the app is open: the first time with its progress, then whenever something changes.
import { Client } from "@strongroom/client";
import type { Replica, SyncProgress } from "@strongroom/client/replica";
import { texts } from "../texts/en.js";
import { remember, remembered, SESSION } from "./device.js";
import { tell } from "./notices.js";
import { createStore, type Store } from "./store.js";
import { isTriedAgain, type SyncProblem, syncProblemOf } from "./syncProblem.js";
import { tellTabs } from "./tabs.js";

/** The state of the sync of this device. */
export interface SyncStatus {
  /** The number of changes that are not sent, refused ones included. */
  readonly pending: number;
  readonly isSyncing: boolean;
  /** The progress of the first sync; undefined as soon as everything is here. */
  readonly first: { readonly done: number; readonly total: number | undefined } | undefined;
  /** What keeps this device from syncing, if anything does. */
  readonly problem: SyncProblem | undefined;
  /** When this tab has synced last, in milliseconds since 1970. */
  readonly syncedAt: number | undefined;
}

const NONE: SyncStatus = { pending: 0, isSyncing: false, first: undefined, problem: undefined, syncedAt: undefined };
const RETRY = 15_000;
const current = createStore<SyncStatus>(NONE);

/** The state of the sync. */
export const syncStatus: Store<SyncStatus> = current;

const change = (changed: Partial<SyncStatus>): void => current.set((before) => ({ ...before, ...changed }));

/** The syncs of one open replica. */
export class Syncing {
  readonly #client: Client;
  readonly #replica: Replica;
  readonly #changed: () => void;
  readonly #ended = new AbortController();
  #again = new AbortController(); // ends what watches now
  readonly #stop: () => void;
  #isSaved: boolean;
  #wake: () => void = () => undefined;

  /** `changed` is called after each sync that changed something; `isSaved`: the session is saved for other tabs already. */
  constructor(client: Client, replica: Replica, isSaved: boolean, changed: () => void) {
    this.#client = client;
    this.#replica = replica;
    this.#isSaved = isSaved;
    this.#changed = changed;
    const follow = (): void => this.#follow();
    const unsubscribe = replica.state.subscribe(follow);
    const wake = (): void => this.retry();
    const offline = (): void => change({ problem: { kind: "offline", name: "Unreachable", sentence: "" } });
    addEventListener("online", wake);
    addEventListener("offline", offline);
    this.#stop = () => {
      unsubscribe();
      removeEventListener("online", wake);
      removeEventListener("offline", offline);
    };
    void this.#run();
  }

  /** End it: nothing is shown any more. */
  end(): void {
    this.#ended.abort();
    this.#again.abort();
    this.#stop();
    this.#wake();
    current.set(NONE);
  }

  /** Sync now. What keeps this device from it is shown again if it still does. */
  retry(): void {
    change({ problem: undefined });
    this.#wake();
    this.#again.abort();
  }

  /** Another tab syncs for all, and tells what keeps it from that. */
  hear(problem: SyncProblem | undefined): void {
    const { report, error } = this.#replica.state.getSnapshot();
    if (!report && !error) change({ problem });
  }

  /** Show what the replica says of itself. */
  #follow(): void {
    const { pending, isSyncing, error, report } = this.#replica.state.getSnapshot();
    const before = current.getSnapshot();
    const isDone = !isSyncing && !error && report !== undefined;
    const problem = error && !isSyncing ? syncProblemOf(error) : isDone ? undefined : before.problem;
    const isSame = problem?.kind === before.problem?.kind && problem?.sentence === before.problem?.sentence;
    change({
      pending,
      isSyncing,
      problem: isSame ? before.problem : problem,
      ...(isDone && before.isSyncing && { syncedAt: Date.now() }),
    });
    if (!isSame) tellTabs({ kind: "trouble", trouble: problem });
    if (isDone && before.isSyncing) this.#tellChange(); // a vault that another device has made is no change of a report
    if (isDone && !this.#isSaved) void this.#save();
  }

  /** Save the session for the other tabs, once there is one. */
  async #save(): Promise<void> {
    this.#isSaved = true;
    try {
      await this.#client.saveSession(SESSION);
      if (this.#ended.signal.aborted) await Client.forget(SESSION);
      else tellTabs({ kind: "opened" });
    } catch {
      this.#isSaved = false; // the next sync tries again
    }
  }

  async #run(): Promise<void> {
    const ended = this.#ended.signal;
    while (!ended.aborted && !this.#replica.isClosed) {
      try {
        await this.#first();
        if (ended.aborted) return;
        this.#again = new AbortController();
        const { signal } = this.#again;
        for await (const report of this.#replica.watch(undefined, { signal })) {
          for (const { wanted, name } of report.renamedVaults) tell(texts.sync.renamed(wanted, name));
          if (report.newlyRefused) tell(texts.sync.refused(report.newlyRefused), { kind: "fault" });
        }
      } catch (fault) {
        if (ended.aborted) return;
        const problem = syncProblemOf(fault);
        change({ problem, isSyncing: false });
        await this.#rest(isTriedAgain(problem) ? RETRY : undefined);
      }
    }
  }

  /** The first sync, with its progress. */
  async #first(): Promise<void> {
    const known = remembered();
    if (!known || known.isWhole) return;
    change({ first: { done: 0, total: undefined } });
    let done = 0;
    await this.#replica.sync(undefined, {
      progress: (progress: SyncProgress) => {
        if (progress.phase !== "pull" || this.#ended.signal.aborted) return;
        done = progress.done;
        change({ first: { done, total: progress.total } });
        this.#changed();
      },
    });
    if (this.#ended.signal.aborted) return;
    // An account begins with one vault, so that there is a place for the first item.
    if (!(await this.#replica.vaults()).length) await this.#replica.vault(texts.signUp.firstVault, { create: true });
    remember({ ...known, isWhole: true });
    change({ first: undefined });
    this.#tellChange();
  }

  #tellChange(): void {
    this.#changed();
    tellTabs({ kind: "changed" });
  }

  /** Wait, until somebody wants to try again. */
  async #rest(milliseconds: number | undefined): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((go) => {
      this.#wake = go;
      if (milliseconds !== undefined) timer = setTimeout(go, milliseconds);
    });
    clearTimeout(timer);
  }
}
