// One line that says whether this device is in step with the server.
import { Icon } from "../components/icon.js";
import { syncNow } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";

/** The state of the sync; a click syncs. */
export function SyncState() {
  const { pending, isSyncing, problem, first } = useStore(syncStatus);
  const isOff = problem !== undefined;
  const label = first
    ? texts.sync.syncing
    : isOff
      ? problem.kind === "offline"
        ? texts.sync.offline
        : texts.sync.stopped
      : pending
        ? texts.sync.pending(pending)
        : isSyncing
          ? texts.sync.syncing
          : texts.sync.synced;
  return (
    <button type="button" class="navLink syncState" title={texts.sync.now} onClick={syncNow}>
      <Icon name={isOff ? "cloudOff" : "cloud"} />
      <span class="navText">{label}</span>
    </button>
  );
}
