// What a sync reports: its progress, and what it did.
import type { BlobConflict, Conflict } from "./conflicts.js";
import type { RenamedVault } from "./records.js";
import type { RefusedChange } from "./refused.js";

/** The progress of a sync. `total` is the server's count, if it gives one. */
export interface SyncProgress {
  readonly phase: "pull" | "push";
  readonly done: number;
  readonly total: number | undefined;
}

/** What a sync did. */
export class Report {
  pulled = 0;
  pushed = 0;
  /** Documents that were taken over although the server's history no longer shows what lies between. */
  gaps = 0;
  /** Keyrings of which the same is true, since the sync before. */
  keyringGaps = 0;
  /** Conflicts that wait to be decided. */
  conflicts: Conflict[] = [];
  /** Blobs of this device that a restored server has gone on without. */
  blobConflicts: BlobConflict[] = [];
  /** All changes that the server does not accept. */
  refused: RefusedChange[] = [];
  /** How many of them were not refused before this sync, or for another reason. */
  newlyRefused = 0;
  /** Vaults that have got another name than was wanted; told again after a program that ended without `close`. */
  renamedVaults: readonly RenamedVault[] = [];

  /** Whether the sync changed anything. */
  get changed(): boolean {
    const told = this.conflicts.length + this.blobConflicts.length + this.newlyRefused + this.renamedVaults.length;
    return this.pulled + this.pushed + told > 0;
  }
}

/** The report of a sync that is under way, and where its progress is told. */
export class RunningReport {
  readonly report = new Report();
  readonly #progress: ((progress: SyncProgress) => void) | undefined;
  #done = 0;
  #total: number | undefined;

  constructor(progress?: (progress: SyncProgress) => void) {
    this.#progress = progress;
  }

  /** Begin a phase. `total` is the number of documents in it, if that is known. */
  begin(total: number | undefined): void {
    this.#done = 0;
    this.#total = total;
  }

  /** Add documents that are done in a phase, and tell the progress. */
  add(phase: SyncProgress["phase"], done: number, gaps = 0): void {
    this.#done += done;
    this.report.gaps += gaps;
    if (phase === "pull") this.report.pulled += done;
    this.#progress?.({ phase, done: this.#done, total: this.#total });
  }
}
