// The items: a list with its search, and the one that is chosen.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Columns } from "../components/columns.js";
import { Dialog } from "../components/dialog.js";
import { EmptyState } from "../components/emptyState.js";
import { Icon } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { MissingPart } from "../components/missingPart.js";
import { Waiting } from "../components/progress.js";
import { isForPage } from "../shell/keyboard.js";
import { go, hrefOf } from "../state/route.js";
import { vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { drafts } from "./drafts.js";
import { entries, type Entry, followVaults } from "./entries.js";
import { ItemList } from "./itemList.js";
import { ItemNavigation } from "./itemNavigation.js";
import { LazyViews, useLazyViews, withLazyViews } from "./lazyLoading.js";
import { ALL, filter, type Order, selection, showPlace, wantedOf } from "./listState.js";
import { oneLine } from "./shownText.js";
import { typeLabel } from "./types.js";

followVaults();

/** `parts` are the uids of a vault and of an item in it, and what is done with that; or "new" and a type. */
export function ItemsView({ parts }: { parts: readonly string[] }) {
  const [vault, uid, action] = parts;
  const isNew = vault === "new";
  const { all, byKey } = useStore(entries);
  const wanted = useStore(filter);
  const found = useMemo(() => wantedOf(all, wanted), [all, wanted]);
  const key = isNew || uid === undefined ? undefined : `${vault}/${uid}`;
  const entry = key === undefined ? undefined : byKey.get(key);
  const search = useRef<HTMLInputElement>(null);
  const [isMoving, setMoving] = useState(false);
  useEffect(() => {
    const before = filter.getSnapshot().vault;
    if (vault !== undefined && !isNew && uid === undefined && before !== vault) showPlace({ vault });
  }, [vault, uid]);
  useItemKeys({ entry, isEdited: isNew || action === "edit", search, onMove: () => setMoving(true) });
  return (
    <>
      <Columns
        list={<ListPane found={found} open={key} search={search} />}
        listLabel={texts.shell.list}
        detail={<Detail itemKey={key} entry={entry} isNew={isNew} action={isNew ? uid : action} />}
        detailLabel={texts.shell.detail}
        isDetail={isNew || key !== undefined}
      />
      {isMoving && entry && (
        <LazyViews show={({ MoveDialog }) => <MoveDialog entries={[entry]} onClose={() => setMoving(false)} />} />
      )}
    </>
  );
}

interface KeysProps {
  entry: Entry | undefined;
  isEdited: boolean;
  search: { readonly current: HTMLInputElement | null };
  onMove: () => void;
}

/** The keys of this view. */
function useItemKeys({ entry, isEdited, search, onMove }: KeysProps): void {
  useLayoutEffect(() => {
    // before it is painted: a key that is pressed at once is for what is shown
    const press = (event: KeyboardEvent): void => {
      if (!isForPage(event) || (isEdited && event.key !== "/")) return;
      const { document: shown, item, problem } = entry ?? {};
      const list = document.querySelector<HTMLElement>("[role=listbox]");
      if (event.key === "/") search.current?.focus();
      else if (event.key === "n") go("items", "new");
      else if (
        (event.key === "j" || event.key === "k" || event.key === "ArrowDown" || event.key === "ArrowUp") &&
        list &&
        event.target === document.body
      ) {
        list.focus();
        list.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true }));
      } else if (!entry || !shown) return;
      else if (event.key === "e" && item && !problem) go("items", shown.vault, shown.uid, "edit");
      else if (event.key === "h") go("items", shown.vault, shown.uid, "history");
      else if (event.key === "c" && item) withLazyViews(({ copyMain }) => copyMain(item));
      else if (event.key === "m" && item) onMove();
      else if (event.key === "Delete" && !(event.target instanceof HTMLButtonElement)) {
        withLazyViews(({ deleteEntries }) => deleteEntries([entry]));
        go("items");
      } else if (event.key === "Escape") go("items");
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [entry, isEdited]);
}

interface ListPaneProps {
  found: readonly Entry[];
  open: string | undefined;
  search: { current: HTMLInputElement | null };
}

/** The list with its search and its filters. */
function ListPane({ found, open, search }: ListPaneProps) {
  const { all, isReady, fault } = useStore(entries);
  const known = useStore(vaults);
  const selected = useStore(selection);
  const wanted = useStore(filter);
  const [isPlaces, setPlaces] = useState(false);
  const chosen = useMemo(() => (selected.size ? found.filter(({ key }) => selected.has(key)) : []), [found, selected]);
  const change = (changed: Partial<typeof wanted>): void => filter.set((before) => ({ ...before, ...changed }));
  const name = placeName(wanted, known);
  return (
    <div class="listPane">
      <div class="listHead">
        <h1 class="placeHead">
          <bdi class="placeName">{name}</bdi>
          <button type="button" class="placeButton" aria-haspopup="dialog" onClick={() => setPlaces(true)}>
            <bdi>{name}</bdi>
            <Icon name="down" />
          </button>
        </h1>
        <div class="searchRow">
          <label class="search">
            <Icon name="search" />
            <span class="visuallyHidden">{texts.items.search}</span>
            <input
              ref={search}
              type="search"
              value={wanted.search}
              placeholder={texts.items.search}
              autoComplete="off"
              spellcheck={false}
              onInput={(event) => change({ search: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key === "ArrowDown" || event.key === "Enter")
                  document.querySelector<HTMLElement>("[role=listbox]")?.focus();
                else if (event.key === "Escape") wanted.search ? change({ search: "" }) : search.current?.blur();
                else return;
                event.preventDefault();
              }}
            />
          </label>
          <IconButton
            icon="add"
            label={texts.items.new}
            onClick={() => go("items", "new")}
            isDisabled={!known.length}
          />
        </div>
        <Filters all={all} />
      </div>
      {chosen.length > 0 && (
        <LazyViews
          show={({ BulkBar }) => (
            <BulkBar chosen={chosen} onAll={() => selection.set(new Set(found.map(({ key }) => key)))} />
          )}
        />
      )}
      {fault && (
        <p class="notice warning" role="alert">
          <Icon name="warning" />
          {texts.items.unreadable}
        </p>
      )}
      {!isReady && !found.length ? (
        <div class="pad">
          <Waiting label={texts.items.opening} />
        </div>
      ) : found.length ? (
        <ItemList entries={found} isGrowing={!isReady} open={open} />
      ) : (
        <NothingHere
          isFiltered={all.length > 0}
          hasVault={known.length > 0}
          onClear={() => filter.set((before) => ({ ...ALL, order: before.order }))}
        />
      )}
      {isPlaces && (
        <Dialog title={texts.items.place} onClose={() => setPlaces(false)}>
          <ItemNavigation view="items" onChoose={() => setPlaces(false)} />
        </Dialog>
      )}
    </div>
  );
}

function placeName(
  { vault, folder, collection, isFavorite }: typeof ALL,
  known: readonly { uid: string; name: string }[],
): string {
  if (isFavorite) return texts.items.favorites;
  if (vault === undefined) return texts.shell.items;
  return oneLine(collection ?? folder?.split("/").at(-1) ?? known.find(({ uid }) => uid === vault)?.name ?? "", 60);
}

/** What narrows the list down: a type, a tag; and its order. */
function Filters({ all }: { all: readonly Entry[] }) {
  const wanted = useStore(filter);
  const change = (changed: Partial<typeof wanted>): void => filter.set((before) => ({ ...before, ...changed }));
  const types = useMemo(
    () => [...new Set(all.filter(({ item }) => item).map(({ type }) => type))].sort().slice(0, 100),
    [all],
  );
  const tags = useMemo(
    () => [...new Set(all.flatMap((entry) => entry.tags))].sort((one, other) => one.localeCompare(other)).slice(0, 500),
    [all],
  );
  const select = (
    label: string,
    value: string,
    choices: readonly (readonly [string, string])[],
    onChange: (value: string) => void,
  ) => (
    <select class="filter" aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {choices.map(([one, shown]) => (
        <option key={one} value={one} selected={one === value}>
          {shown}
        </option>
      ))}
    </select>
  );
  return (
    <div class="filters">
      {select(
        texts.items.type,
        wanted.type === undefined ? "" : `=${wanted.type}`,
        [["", texts.items.allTypes], ...types.map((type): [string, string] => [`=${type}`, typeLabel(type)])],
        (value) => change({ type: value ? value.slice(1) : undefined }),
      )}
      {tags.length > 0 &&
        select(
          texts.items.tag,
          wanted.tag === undefined ? "" : `=${wanted.tag}`,
          [["", texts.items.allTags], ...tags.map((tag): [string, string] => [`=${tag}`, oneLine(tag, 40)])],
          (value) => change({ tag: value ? value.slice(1) : undefined }),
        )}
      {select(texts.items.order, wanted.order, Object.entries(texts.items.orders), (order) =>
        change({ order: order as Order }),
      )}
    </div>
  );
}

function NothingHere({
  isFiltered,
  hasVault,
  onClear,
}: {
  isFiltered: boolean;
  hasVault: boolean;
  onClear: () => void;
}) {
  const [isMaking, setMaking] = useState(false);
  if (isFiltered) {
    return (
      <EmptyState icon="search" title={texts.items.nothingFound}>
        <p>{texts.items.nothingFoundHint}</p>
        <Button onClick={onClear}>{texts.items.clearSearch}</Button>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="vault" title={hasVault ? texts.items.noItems : texts.items.noVault}>
      <p>{hasVault ? texts.items.noItemsHint : texts.items.noVaultHint}</p>
      {!hasVault && (
        <Button kind="primary" icon="add" onClick={() => setMaking(true)}>
          {texts.items.newVault}
        </Button>
      )}
      {isMaking && (
        <LazyViews
          show={({ PlaceDialog }) => <PlaceDialog asked={{ kind: "newVault" }} onClose={() => setMaking(false)} />}
        />
      )}
      {hasVault && (
        <div class="row center">
          <Button kind="primary" icon="add" onClick={() => go("items", "new")}>
            {texts.items.new}
          </Button>
          <Button onClick={() => go("settings", "transfer")}>{texts.items.import}</Button>
        </div>
      )}
    </EmptyState>
  );
}

/** What is beside the list. */
function Detail({
  itemKey,
  entry,
  isNew,
  action,
}: {
  itemKey: string | undefined;
  entry: Entry | undefined;
  isNew: boolean;
  action: string | undefined;
}) {
  const views = useLazyViews();
  const { isReady } = useStore(entries);
  const isDraft = useStore(drafts).has(itemKey ?? "");
  if (itemKey === undefined && !isNew) return <EmptyState icon="vault" title={texts.items.noneOpen} />;
  if (views === "fault") return <MissingPart />;
  if (!views || (!entry && !isNew && !isReady))
    return (
      <div class="pad">
        <Waiting label={texts.common.loading} />
      </div>
    );
  if (isNew) return <views.ItemEditor key="new" itemKey="new" type={action} />;
  if (!entry && itemKey !== undefined && action === "edit" && isDraft)
    return <views.ItemEditor key={itemKey} itemKey={itemKey} />;
  if (!entry) {
    return (
      <EmptyState icon="file" title={texts.items.gone}>
        <p>{texts.items.goneHint}</p>
        <a href={hrefOf("items")}>{texts.common.back}</a>
      </EmptyState>
    );
  }
  if (action === "history") return <views.HistoryView key={entry.key} entry={entry} />;
  if (!entry.item) return <views.JsonDocument key={entry.key} entry={entry} />;
  if (action === "edit" && !entry.problem)
    return <views.ItemEditor key={entry.key} itemKey={entry.key} entry={entry} />;
  return <views.ItemView key={entry.key} entry={entry} />;
}
