// The part of the navigation that leads to items: all of them, favourites, and each vault with its folders and collections.
import type { ReplicaVault } from "@strongroom/client/replica";
import { useMemo, useState } from "preact/hooks";
import { ITEMS } from "@strongroom/client/items/shapes";
import { Icon, type IconName } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { Menu, type MenuItem } from "../components/menu.js";
import { hrefOf } from "../state/route.js";
import { vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { useDrop } from "./drag.js";
import { entries, type Entry } from "./entries.js";
import { type Folder, folderTree } from "./folders.js";
import { type Filter, filter, showPlace } from "./listState.js";
import { oneLine } from "./shownText.js";
import { LazyViews } from "./lazyLoading.js";
import type { Asked } from "./vaultDialogs.js";

const MOST_SHOWN = 200; // folders of one level

/** Links to all items, to favourites, and to each vault. `onChoose`: something was chosen. */
export function ItemNavigation({ view, onChoose }: { view: string; parts?: readonly string[]; onChoose?: () => void }) {
  const found = useStore(vaults);
  const { all } = useStore(entries);
  const place = useStore(filter);
  const [asked, setAsked] = useState<Asked>();
  const isItems = view === "items";
  const isAll = isItems && place.vault === undefined && !place.isFavorite;
  const byVault = useMemo(() => {
    const made = new Map<string, Entry[]>();
    for (const entry of all) {
      const list = made.get(entry.document.vault);
      if (list) list.push(entry);
      else made.set(entry.document.vault, [entry]);
    }
    return made;
  }, [all]);
  const items = useMemo(() => all.filter(({ item }) => item).length, [all]);
  return (
    <div class="navList">
      <PlaceLink
        icon="list"
        label={texts.shell.items}
        count={items}
        isCurrent={isAll}
        place={{}}
        href={hrefOf("items")}
        onChoose={onChoose}
      />
      <PlaceLink
        icon="star"
        label={texts.items.favorites}
        isCurrent={isItems && place.isFavorite}
        place={{ isFavorite: true }}
        href={hrefOf("items")}
        onChoose={onChoose}
      />
      <div class="navHead row spread">
        <h2>{texts.shell.vaults}</h2>
        <IconButton icon="add" label={texts.items.newVault} onClick={() => setAsked({ kind: "newVault" })} />
      </div>
      <ul class="navList">
        {found.map((vault) => (
          <Vault
            key={vault.uid}
            vault={vault}
            entries={byVault.get(vault.uid) ?? []}
            place={place}
            isItems={isItems}
            onAsk={setAsked}
            onChoose={onChoose}
          />
        ))}
      </ul>
      {asked && (
        <LazyViews show={({ PlaceDialog }) => <PlaceDialog asked={asked} onClose={() => setAsked(undefined)} />} />
      )}
    </div>
  );
}

interface VaultProps {
  vault: ReplicaVault;
  entries: readonly Entry[];
  place: Filter;
  isItems: boolean;
  onAsk: (asked: Asked) => void;
  onChoose: (() => void) | undefined;
}

function Vault({ vault, entries: inside, place, isItems, onAsk, onChoose }: VaultProps) {
  const { uid } = vault;
  const [isOver, drop] = useDrop(uid, "");
  const isHere = isItems && place.vault === uid;
  const folders = useMemo(() => folderTree(inside.filter(({ item }) => item)), [inside]);
  const collections = useMemo(() => collectionsOf(inside), [inside]);
  return (
    <li>
      <div class={isOver ? "navLine isOver" : "navLine"} {...drop}>
        <PlaceLink
          icon="vault"
          label={oneLine(vault.name, 100)}
          isCurrent={isHere && place.folder === undefined && place.collection === undefined}
          place={{ vault: uid }}
          href={hrefOf("items", uid)}
          onChoose={onChoose}
        />
        <Menu
          label={texts.items.vaultMenu(oneLine(vault.name, 60))}
          items={[
            { label: texts.items.renameVault, icon: "edit", run: () => onAsk({ kind: "renameVault", vault }) },
            {
              label: texts.items.deleteVault,
              icon: "trash",
              isDanger: true,
              run: () => onAsk({ kind: "deleteVault", vault }),
            },
          ]}
        />
      </div>
      {folders.length > 0 && (
        <Folders
          vault={uid}
          folders={folders}
          place={place}
          isHere={isHere}
          onAsk={onAsk}
          onChoose={onChoose}
          depth={1}
        />
      )}
      {collections.length > 0 && (
        <ul class="navList navInner">
          {collections.map(([name, count]) => (
            <li key={name}>
              <PlaceLink
                icon="file"
                label={oneLine(name, 100)}
                count={count}
                isCurrent={isHere && place.collection === name}
                place={{ vault: uid, collection: name }}
                href={hrefOf("items")}
                onChoose={onChoose}
              />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

/** The collections of documents that are no items, and how many are in each. */
function collectionsOf(inside: readonly Entry[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const {
    document: { collection },
  } of inside)
    if (collection !== ITEMS) counts.set(collection, (counts.get(collection) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => one.localeCompare(other)).slice(0, MOST_SHOWN);
}

interface FoldersProps {
  vault: string;
  folders: readonly Folder[];
  place: Filter;
  isHere: boolean;
  depth: number;
  onAsk: (asked: Asked) => void;
  onChoose: (() => void) | undefined;
}

function Folders({ folders, ...rest }: FoldersProps) {
  return (
    <ul class="navList navInner">
      {folders.slice(0, MOST_SHOWN).map((folder) => (
        <FolderLine key={folder.path} folder={folder} {...rest} />
      ))}
    </ul>
  );
}

function FolderLine({
  vault,
  folder,
  place,
  isHere,
  depth,
  onAsk,
  onChoose,
}: Omit<FoldersProps, "folders"> & { folder: Folder }) {
  const [isOpen, setOpen] = useState(depth === 1 && folder.inner.length < 20);
  const [isOver, drop] = useDrop(vault, folder.path);
  const { path } = folder;
  const name = oneLine(folder.name, 100) || texts.items.unnamedFolder;
  const menu: MenuItem[] = [
    { label: texts.items.renameFolder, icon: "edit", run: () => onAsk({ kind: "renameFolder", vault, path }) },
    { label: texts.items.removeFolder, icon: "trash", run: () => onAsk({ kind: "removeFolder", vault, path }) },
  ];
  return (
    <li>
      <div class={isOver ? "navLine isOver" : "navLine"} {...drop}>
        {folder.inner.length > 0 && (
          <button
            type="button"
            class="fold"
            aria-expanded={isOpen}
            aria-label={texts.items.foldersIn(name)}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? "down" : "forward"} size={12} />
          </button>
        )}
        <PlaceLink
          icon="folder"
          label={name}
          count={folder.count}
          isCurrent={isHere && place.folder === path}
          place={{ vault, folder: path }}
          href={hrefOf("items")}
          onChoose={onChoose}
        />
        <Menu label={texts.items.folderMenu(name)} items={menu} />
      </div>
      {isOpen && folder.inner.length > 0 && (
        <Folders
          vault={vault}
          folders={folder.inner}
          place={place}
          isHere={isHere}
          depth={depth + 1}
          onAsk={onAsk}
          onChoose={onChoose}
        />
      )}
    </li>
  );
}

interface PlaceLinkProps {
  icon: IconName;
  label: string;
  count?: number;
  isCurrent: boolean;
  place: Partial<Filter>;
  href: string;
  onChoose: (() => void) | undefined;
}

function PlaceLink({ icon, label, count = 0, isCurrent, place, href, onChoose }: PlaceLinkProps) {
  return (
    <a
      class="navLink"
      href={href}
      aria-current={isCurrent ? "page" : undefined}
      onClick={() => {
        showPlace(place);
        onChoose?.();
      }}
    >
      <Icon name={icon} />
      <span class="navText">
        <bdi>{label}</bdi>
      </span>
      {count > 0 && <span class="navCount">{count.toLocaleString("en")}</span>}
    </a>
  );
}
