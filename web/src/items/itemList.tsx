// A list of any length: only the rows that can be seen are in the page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../components/icon.js";
import { go } from "../state/route.js";
import { settings } from "../state/settings.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { drag } from "./drag.js";
import type { Entry } from "./entries.js";
import { filter, selection } from "./listState.js";
import { typeIcon, typeLabel } from "./types.js";

const HEIGHTS = { dense: 52, roomy: 64 } as const;
const BEYOND = 8; // rows above and below what can be seen

interface ItemListProps {
  entries: readonly Entry[];
  /** Whether more of them are being read. */
  isGrowing: boolean;
  /** The key of the entry that is open. */
  open: string | undefined;
}

/** Show an entry. */
export const openEntry = ({ document }: Entry): void => go("items", document.vault, document.uid);

/**
 * The list. It has the focus as a whole: arrows or `j` and `k` move, Enter opens, the space bar selects.
 *
 * The row that the keys are on is the one that is open, unless they have moved since.
 */
export function ItemList({ entries, isGrowing, open }: ItemListProps) {
  const { density } = useStore(settings);
  const selected = useStore(selection);
  const height = HEIGHTS[density];
  const frame = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [rows, setRows] = useState(30);
  const [active, setActive] = useState<string | undefined>(open);
  const anchor = useRef<string | undefined>(undefined);
  useEffect(() => void (open !== undefined && setActive(open)), [open]);
  useLayoutEffect(() => {
    const list = frame.current;
    if (!list) return undefined;
    const measure = (): void => setRows(Math.ceil(list.clientHeight / height) + 1);
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(list);
    return () => watcher.disconnect();
  }, [height]);
  const at = active === undefined ? -1 : entries.findIndex(({ key }) => key === active);

  const top = useRef<{ entry: Entry | undefined; beyond: number }>({ entry: undefined, beyond: 0 }); // what is at the edge
  const scroll = (): void => {
    const to = frame.current?.scrollTop ?? 0;
    const row = Math.floor(to / height);
    top.current = { entry: entries[row], beyond: to - row * height };
    setFirst(Math.max(0, row - BEYOND));
  };
  const show = (to: number): void => {
    const list = frame.current;
    if (!list) return;
    if (to * height < list.scrollTop) list.scrollTop = to * height;
    else if ((to + 1) * height > list.scrollTop + list.clientHeight)
      list.scrollTop = (to + 1) * height - list.clientHeight;
    scroll();
  };
  const moveTo = (to: number, isRange: boolean): void => {
    const next = entries[Math.max(0, Math.min(entries.length - 1, to))];
    if (!next) return;
    if (isRange) selectRange(next.key);
    else anchor.current = next.key;
    setActive(next.key);
    show(entries.indexOf(next));
  };
  const selectRange = (key: string): void => {
    const from = entries.findIndex((entry) => entry.key === (anchor.current ?? active));
    const to = entries.findIndex((entry) => entry.key === key);
    const [low, high] = from < 0 ? [to, to] : [Math.min(from, to), Math.max(from, to)];
    selection.set(new Set([...selected, ...entries.slice(low, high + 1).map((entry) => entry.key)]));
  };
  const toggle = (key: string): void => {
    anchor.current = key;
    setActive(key);
    const next = new Set(selected);
    if (!next.delete(key)) next.add(key);
    selection.set(next);
  };
  const press = (event: KeyboardEvent): void => {
    const { key } = event;
    const page = Math.max(1, rows - 2);
    const step = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page,
      PageUp: -page,
      Home: -entries.length,
      End: entries.length,
    }[key];
    const current = entries[at];
    if ((event.ctrlKey || event.metaKey) && key === "a") selection.set(new Set(entries.map((entry) => entry.key)));
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (step !== undefined) moveTo(at < 0 ? (step > 0 ? 0 : entries.length - 1) : at + step, event.shiftKey);
    else if (key === "Enter" && current) openEntry(current);
    else if ((key === " " || key === "x") && current) toggle(current.key);
    else if (key === "Escape" && selected.size) selection.set(new Set());
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const place = useStore(filter);
  const before = useRef({ place, isGrowing });
  // Rows that can be seen stay where they are, whatever comes or goes above them; at the top of the list only while it is
  // being read and somebody is about to use it. Another place or search begins at its top.
  useLayoutEffect(() => {
    const { place: last, isGrowing: wasGrowing } = before.current;
    before.current = { place, isGrowing };
    const list = frame.current;
    const isHeld = list && place === last && (list.scrollTop > 0 || (wasGrowing && list.matches(":hover, :focus")));
    const to = isHeld && top.current.entry ? entries.indexOf(top.current.entry) : -1;
    if (list && to >= 0) list.scrollTop = to * height + top.current.beyond;
    else if (list && place !== last) list.scrollTop = 0;
    scroll();
  }, [entries, height]);

  const shown = entries.slice(first, first + rows + 2 * BEYOND);
  return (
    <div
      class="itemList"
      ref={frame}
      role="listbox"
      tabIndex={0}
      aria-label={texts.items.list(entries.length)}
      aria-multiselectable="true"
      aria-busy={isGrowing}
      aria-activedescendant={at >= first && at < first + shown.length ? rowId(active) : undefined}
      onScroll={scroll}
      onKeyDown={press}
      onFocus={() => void (at < 0 && setActive(entries[first]?.key))}
    >
      <div class="itemRows" role="presentation" style={{ height: `${entries.length * height}px` }}>
        {shown.map((entry, place) => (
          <Row
            key={entry.key}
            entry={entry}
            top={(first + place) * height}
            height={height}
            place={first + place + 1}
            count={entries.length}
            isOpen={entry.key === open}
            isActive={entry.key === active}
            isSelected={selected.has(entry.key)}
            isMany={selected.size > 0}
            onPick={(event) => {
              if (event.shiftKey) selectRange(entry.key);
              else if (event.ctrlKey || event.metaKey || selected.size > 0) toggle(entry.key);
              else openEntry(entry);
              setActive(entry.key);
            }}
            onMark={() => toggle(entry.key)}
            onDrag={(event) =>
              drag(event, selected.has(entry.key) ? entries.filter(({ key }) => selected.has(key)) : [entry])
            }
          />
        ))}
      </div>
    </div>
  );
}

const rowId = (key: string | undefined): string => `row-${(key ?? "").replace("/", "-")}`;

interface RowProps {
  entry: Entry;
  top: number;
  height: number;
  place: number;
  count: number;
  isOpen: boolean;
  isActive: boolean;
  isSelected: boolean;
  isMany: boolean;
  onPick: (event: MouseEvent) => void;
  onMark: () => void;
  onDrag: (event: DragEvent) => void;
}

function Row({
  entry,
  top,
  height,
  place,
  count,
  isOpen,
  isActive,
  isSelected,
  isMany,
  onPick,
  onMark,
  onDrag,
}: RowProps) {
  const { key, title, subtitle, type, problem, isFavorite, item } = entry;
  const classes = ["itemRow", isOpen && "isOpen", isActive && "isActive", isMany && "isMany"].filter(Boolean).join(" ");
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and names this row as its active descendant
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys
    <div
      id={rowId(key)}
      class={classes}
      role="option"
      aria-selected={isSelected}
      aria-current={isOpen ? "true" : undefined}
      aria-setsize={count}
      aria-posinset={place}
      style={{ height: `${height}px`, transform: `translateY(${top}px)` }}
      draggable={item !== undefined}
      onClick={onPick}
      onDragStart={onDrag}
    >
      <span
        class="rowMark"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          onMark();
        }}
      >
        <Icon name={isSelected ? "check" : typeIcon(type)} />
      </span>
      <span class="rowText">
        <span class="rowTitle">
          <bdi>{title || texts.items.untitled}</bdi>
        </span>
        <span class="rowMore">
          {problem ? texts.items.misfitShort : <bdi>{subtitle || (item ? typeLabel(type) : "")}</bdi>}
        </span>
      </span>
      {isFavorite && (
        <span class="rowStar">
          <Icon name="star" />
          <span class="visuallyHidden">{texts.items.isFavorite}</span>
        </span>
      )}
      {problem && (
        <span class="rowWarning">
          <Icon name="warning" />
        </span>
      )}
    </div>
  );
}
