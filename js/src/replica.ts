// What an app imports from "@strongroom/client/replica".
export type { BlobConflict, Conflict } from "./replica/conflicts.js";
export { type LiveDocument, type LiveDocuments, type LiveStore, matches, type Query } from "./replica/live.js";
export type { RenamedVault } from "./replica/records.js";
export type { Reason, RefusalKind, RefusedChange } from "./replica/refused.js";
export {
  deleteReplica,
  openReplica,
  Replica,
  type ReplicaOptions,
  type SyncState,
  type Undecided,
  unlockReplica,
} from "./replica/replica.js";
export type { Report, SyncProgress } from "./replica/report.js";
export { keepBoth, keepMine, keepTheirs, merged, Resolution, type Resolver } from "./replica/resolutions.js";
export type { ReplicaPlace } from "./replica/storage.js";
export { ReplicaCollection, ReplicaVault } from "./replica/vaults.js";
