// The navigation: a column on a desktop, a bar at the bottom on a phone.
import { Icon, type IconName } from "../components/icon.js";
import { ItemNavigation } from "../items/itemNavigation.js";
import { hrefOf } from "../state/route.js";
import { lock, useOpen } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { SyncState } from "./syncState.js";

interface LinkProps {
  view: string;
  icon: IconName;
  label: string;
  isCurrent: boolean;
  count?: number;
}

/** A link to a view. */
export function NavLink({ view, icon, label, isCurrent, count = 0 }: LinkProps) {
  return (
    <a class="navLink" href={hrefOf(view)} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={icon} />
      <span class="navText">{label}</span>
      {count > 0 && <span class="navCount">{count.toLocaleString("en")}</span>}
    </a>
  );
}

/** The column at the left. */
export function Navigation({ view, parts, onHelp }: { view: string; parts: readonly string[]; onHelp: () => void }) {
  const { replica } = useOpen();
  const { conflicts, blobConflicts } = useStore(replica.undecided);
  const { pending } = useStore(syncStatus);
  const undecided = conflicts.length + blobConflicts.length;
  return (
    <nav class="nav" aria-label={texts.shell.navigation}>
      <div class="brand">
        <Icon name="vault" />
        <span>{texts.common.name}</span>
      </div>
      <ItemNavigation view={view} parts={parts} />
      <ul class="navList">
        <li>
          <NavLink view="trash" icon="trash" label={texts.shell.trash} isCurrent={view === "trash"} />
        </li>
        {(undecided > 0 || view === "conflicts") && (
          <li>
            <NavLink
              view="conflicts"
              icon="conflict"
              label={texts.shell.conflicts}
              isCurrent={view === "conflicts"}
              count={undecided}
            />
          </li>
        )}
        {(pending > 0 || view === "waiting") && (
          <li>
            <NavLink
              view="waiting"
              icon="waiting"
              label={texts.shell.waiting}
              isCurrent={view === "waiting"}
              count={pending}
            />
          </li>
        )}
      </ul>
      <ul class="navList navEnd">
        <li>
          <SyncState />
        </li>
        <li>
          <button type="button" class="navLink" onClick={onHelp}>
            <Icon name="list" />
            <span class="navText">{texts.shell.keys}</span>
          </button>
        </li>
        <li>
          <NavLink view="settings" icon="gear" label={texts.shell.settings} isCurrent={view === "settings"} />
        </li>
        <li>
          <button type="button" class="navLink" onClick={() => void lock()}>
            <Icon name="lock" />
            <span class="navText">{texts.shell.lock}</span>
          </button>
        </li>
      </ul>
    </nav>
  );
}

/** The bar at the bottom of a phone. */
export function TabBar({ view }: { view: string }) {
  const { replica } = useOpen();
  const { conflicts, blobConflicts } = useStore(replica.undecided);
  const { pending } = useStore(syncStatus);
  const undecided = conflicts.length + blobConflicts.length;
  const tabs: readonly (readonly [view: string, icon: IconName, label: string])[] = [
    ["items", "list", texts.shell.itemsShort],
    ["trash", "trash", texts.shell.trash],
    ...(undecided ? [["conflicts", "conflict", texts.shell.conflicts] as const] : []),
    ...(pending ? [["waiting", "waiting", texts.shell.waiting] as const] : []),
    ["settings", "gear", texts.shell.settings],
  ];
  return (
    <nav class="tabBar" aria-label={texts.shell.navigation}>
      {tabs.map(([name, icon, label]) => (
        <a key={name} href={hrefOf(name)} aria-current={view === name ? "page" : undefined}>
          <Icon name={icon} size={20} />
          {label}
        </a>
      ))}
      <button type="button" onClick={() => void lock()}>
        <Icon name="lock" size={20} />
        {texts.shell.lock}
      </button>
    </nav>
  );
}
