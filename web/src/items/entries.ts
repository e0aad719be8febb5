// The index of everything that is on this device: one entry for each document of each vault, kept in step with every change.
//
// What a list shows and a search looks at is made once for each version of a document, so that no key press decrypts or
// reads a document again. Secrets are not part of it.
import type { Document } from "@strongroom/client";
import type { Item } from "@strongroom/client/items";
import { fromStored, isConcealed, isSecretMember, ITEMS } from "@strongroom/client/items/shapes";
import type { LiveDocuments, LiveStore, Replica, ReplicaVault } from "@strongroom/client/replica";
import { onLock, session, vaults } from "../state/session.js";
import { createStore, type Store } from "../state/store.js";
import { folded, oneLine } from "./shownText.js";

/** What the list knows of a document. */
export interface Entry {
  /** The uids of vault and document. */
  readonly key: string;
  readonly document: Document;
  /** The item; undefined for documents of other collections. */
  readonly item: Item | undefined;
  /** The name of the type, as in JSON; empty where it has none. */
  readonly type: string;
  /** Why the document does not fit its type; empty if it does. */
  readonly problem: string;
  readonly title: string;
  readonly subtitle: string;
  readonly isFavorite: boolean;
  readonly tags: readonly string[];
  readonly folders: readonly string[];
  /** Everything that a search looks at. */
  readonly text: string;
  /** What the order by title goes by. */
  readonly order: string;
}

/** Everything on this device. */
export interface Entries {
  /** In the order of their titles. */
  readonly all: readonly Entry[];
  readonly byKey: ReadonlyMap<string, Entry>;
  /** Whether all vaults were read; before that, there is what was read so far. */
  readonly isReady: boolean;
  /** Why a vault cannot be read, if so. */
  readonly fault: Error | undefined;
}

const NONE: Entries = { all: [], byKey: new Map(), isReady: false, fault: undefined };
const MOST_TEXT = 100_000; // characters of a document that a search looks at
const MANY = 2000; // from here on, changes are gathered for longer
const SLICE = 8; // milliseconds of work, then the page gets its turn
const made = new WeakMap<Document, Entry>();

/** The uids of vault and document as one text. */
export const keyOf = ({ vault, uid }: { readonly vault: string; readonly uid: string }): string => `${vault}/${uid}`;

/** The entry of a document. */
export function entryOf(document: Document): Entry {
  const known = made.get(document);
  if (known) return known;
  const entry = document.collection === ITEMS ? itemEntry(document, fromStored(document.raw)) : plainEntry(document);
  made.set(document, entry);
  return entry;
}

function itemEntry(document: Document, item: Item): Entry {
  const title = oneLine(item.title ?? "");
  return {
    key: keyOf(document),
    document,
    item,
    title,
    type: item.type === "" ? item.typeName : item.type,
    problem: item.type === "" ? item.problem : "",
    subtitle: oneLine(item.subtitle || subtitleOf(item)),
    isFavorite: item.favorite ?? false,
    tags: item.tags ?? [],
    folders: item.folders ?? [],
    text: folded(gathered(openTexts(item))),
    order: orderOf(title),
  };
}

/** Everything of an item that is no secret: the members, what a person has added, and the names of files. */
function* openTexts(item: Item): Generator<string> {
  if (item.type === "" && item.problem) return yield item.title ?? "";
  const {
    fields = [],
    files = [],
    credentials: _,
    source: __,
    ...members
  } = item.type === "" ? { ...item, document: undefined } : item;
  for (const [name, value] of Object.entries(members)) if (!isSecretMember(name)) yield* textsOf(value);
  for (const { label = "", section = "", value = "", type } of fields)
    yield* [label, section, ...(isConcealed(type) ? [] : [value])];
  for (const { name = "" } of files) yield name;
}

/** The line below the title: what tells items of the same title apart, and is no secret. */
function subtitleOf(item: Item): string {
  switch (item.type) {
    case "login":
      return item.username || (item.urls?.[0] ?? "");
    case "api-credential":
      return item.username || item.url || "";
    case "card":
      return item.fullName || item.cardType || "";
    case "identity":
      return [item.name?.given, item.name?.surname].filter(Boolean).join(" ");
    case "ssh-key":
      return item.keyComment || item.fingerprint || "";
    case "totp":
      return [item.totp?.issuer, item.totp?.username].filter(Boolean).join(" · ");
    case "file":
      return item.files?.[0]?.name ?? "";
    case "note":
      return (item.notes ?? "").slice(0, 200);
    default:
      return "";
  }
}

function plainEntry(document: Document): Entry {
  const { raw } = document;
  const named = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
  const title = [named.title, named.name, named.label].find((one) => typeof one === "string" && one !== "");
  const shown = oneLine(typeof title === "string" ? title : document.uid);
  return {
    key: keyOf(document),
    document,
    item: undefined,
    type: "",
    problem: "",
    title: shown,
    subtitle: "",
    isFavorite: false,
    tags: [],
    folders: [],
    text: folded(gathered(textsOf(raw))),
    order: orderOf(shown),
  };
}

function* textsOf(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    for (const inner of Object.values(value)) yield* textsOf(inner);
  }
}

/** The texts, a line each, up to the most that a search looks at. */
function gathered(texts: Iterable<string>): string {
  let found = "";
  for (const text of texts) {
    if (found.length >= MOST_TEXT) break;
    found += `${text.slice(0, MOST_TEXT - found.length)}\n`;
  }
  return found;
}

/** Numbers in titles are ordered by their value. */
const orderOf = (title: string): string =>
  folded(title.slice(0, 100)).replace(/\d+/g, (digits) => digits.padStart(10, "0"));

/** The order by title. */
export const byTitle = (one: Entry, other: Entry): number =>
  one.order < other.order ? -1 : one.order > other.order ? 1 : one.key < other.key ? -1 : 1;

const current = createStore<Entries>(NONE);
const followed = new Map<string, { store: LiveStore<LiveDocuments<unknown>>; stop: () => void }>();
let timer: ReturnType<typeof setTimeout> | undefined;
let renewal: object | undefined; // the one that is under way
let isOutdated = false; // something has changed since it began
let replica: Replica | undefined; // whose vaults are followed

/** Everything on this device. */
export const entries: Store<Entries> = current;

/**
 * Make the index anew, in slices: a key press waits for one of them at the most. What was in it before is not sorted again.
 *
 * As long as there is none, the first slice is shown at once.
 */
async function renew(): Promise<void> {
  timer = undefined;
  const mine = {};
  renewal = mine;
  isOutdated = false;
  const shown = [...followed.values()].map(({ store }) => store.getSnapshot());
  const before = new Set(current.getSnapshot().all);
  const found = new Set<Entry>();
  const fresh: Entry[] = [];
  let end = performance.now() + SLICE;
  for (const document of shown.flatMap(({ documents }) => documents)) {
    const entry = entryOf(document);
    found.add(entry);
    if (!before.has(entry)) fresh.push(entry);
    if (performance.now() < end) continue;
    if (!before.size && !current.getSnapshot().all.length) show([...fresh].sort(byTitle), false);
    await new Promise((go) => setTimeout(go));
    if (renewal !== mine) return;
    end = performance.now() + SLICE;
  }
  renewal = undefined;
  show(
    merged(
      [...before].filter((entry) => found.has(entry)),
      fresh.sort(byTitle),
    ),
    shown.every(({ isReady, error }) => isReady || error !== undefined),
    shown.find(({ error }) => error)?.error,
  );
  if (isOutdated) renewSoon();
}

const show = (all: readonly Entry[], isReady: boolean, fault?: Error): void =>
  current.set({ all, byKey: new Map(all.map((entry) => [entry.key, entry])), isReady, fault });

/** Two lists in the order of titles as one. */
function merged(one: readonly Entry[], other: readonly Entry[]): Entry[] {
  const all: Entry[] = [];
  let at = 0;
  for (const entry of other) {
    for (let next = one[at]; next && byTitle(next, entry) < 0; next = one[++at]) all.push(next);
    all.push(entry);
  }
  return all.concat(one.slice(at));
}

/** Make the index anew soon: changes that come together are one. */
function renewSoon(): void {
  if (renewal) isOutdated = true;
  else timer ??= setTimeout(() => void renew(), current.getSnapshot().all.length > MANY ? 80 : 0);
}

function follow(open: readonly ReplicaVault[]): void {
  const now = session.getSnapshot();
  const of = now.kind === "open" ? now.replica : undefined;
  if (of !== replica) stopAll(); // it was opened anew, as after another log-in
  replica = of;
  const wanted = new Map(open.map((vault) => [vault.uid, vault]));
  for (const [uid, { stop }] of followed) {
    if (wanted.has(uid)) continue;
    stop();
    followed.delete(uid);
  }
  for (const [uid, vault] of wanted) {
    if (followed.has(uid)) continue;
    const store = vault.live();
    followed.set(uid, { store, stop: store.subscribe(renewSoon) });
  }
  renewSoon();
}

function stopAll(): void {
  for (const { stop } of followed.values()) stop();
  followed.clear();
}

function forget(): void {
  clearTimeout(timer);
  timer = renewal = undefined;
  stopAll();
  replica = undefined;
  current.set(NONE);
}

/** Follow the vaults of the account, from now on. */
export function followVaults(): void {
  onLock(forget);
  vaults.subscribe(() => follow(vaults.getSnapshot()));
  follow(vaults.getSnapshot());
}
