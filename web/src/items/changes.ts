// Changes of documents on this device, and how the last one is undone. They are sent by the next sync.
import { type Document, DocumentNotFound, Locked } from "@strongroom/client";
import type { Item } from "@strongroom/client/items";
import { fromStored, ITEMS, toStored } from "@strongroom/client/items/shapes";
import type { ReplicaCollection } from "@strongroom/client/replica";
import { tell } from "../state/notices.js";
import { onLock, vaults } from "../state/session.js";
import { createStore, type Store } from "../state/store.js";
import { moreTexts } from "../texts/later.js";
import type { Entry } from "./entries.js";
import { tellFault } from "./faults.js";
import { movedFolders } from "./folders.js";

/** What one change did: the document before it and after it. */
interface Step {
  readonly before: Document | undefined;
  readonly after: Document;
}

/** A change that can be undone. */
interface Undoable {
  readonly sentence: string;
  readonly steps: readonly Step[];
}

/** The progress of a change of many documents. */
export interface Working {
  readonly done: number;
  readonly total: number;
}

const last = createStore<Undoable | undefined>(undefined);
const work = createStore<Working | undefined>(undefined);
/** The last change of this tab, if it can be undone. */
export const lastChange: Store<Undoable | undefined> = last;
/** The change of many documents that is under way. */
export const working: Store<Working | undefined> = work;

onLock(() => {
  last.set(undefined);
  work.set(undefined);
});

/** A collection of a vault, by uid and name. */
export function collectionOf({ vault, collection = ITEMS }: { readonly vault: string; readonly collection?: string }): ReplicaCollection {
  const found = vaults.getSnapshot().find(({ uid }) => uid === vault);
  if (!found) throw new Locked(moreTexts.items.vaultGone);
  return found.collection(collection);
}

/** Remember a change, and tell of it with a button that undoes it. */
function done(sentence: string, steps: readonly Step[]): void {
  if (!steps.length) return;
  const change = { sentence, steps };
  last.set(change);
  tell(sentence, { action: { label: moreTexts.items.undo, run: () => undo(change) } });
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Undo the last change of this tab. */
export async function undoLast(): Promise<void> {
  const change = last.getSnapshot();
  if (change) await undo(change);
  else tell(moreTexts.items.nothingToUndo);
}

/** Undo a change, where its documents are still as it left them. */
async function undo(change: Undoable): Promise<void> {
  if (last.getSnapshot() === change) last.set(undefined);
  let left = 0;
  try {
    for (const step of [...change.steps].reverse()) if (!(await undoStep(step))) left += 1;
    tell(left ? moreTexts.items.undoneButFor(left) : moreTexts.items.undone, left ? { kind: "fault" } : {});
  } catch (fault) {
    tellFault(fault);
  }
}

/** Undo one step; false where another change came after it. */
async function undoStep({ before, after }: Step): Promise<boolean> {
  const collection = collectionOf(after);
  const now = await collection.get(after.uid, { deleted: true }).catch((fault: unknown) => {
    if (fault instanceof DocumentNotFound) return undefined;
    throw fault;
  });
  if (!now) {
    if (!before || !after.deleted) return !before;
    await collection.create(before.raw as never, { uid: before.uid });
    return true;
  }
  if (now.deleted !== after.deleted || (!now.deleted && !isSame(now.raw, after.raw))) return false;
  if (before) await collection.replace(now, before.raw as never);
  else if (!now.deleted) await collection.delete(now);
  return true;
}

/** A new item in a vault. */
export async function createItem(vault: string, item: Item): Promise<Document> {
  const after = await collectionOf({ vault }).create(toStored(item) as never);
  done(moreTexts.items.created, [{ before: undefined, after }]);
  return after;
}

/** Another value for a document. DocumentConflict where it has changed since. */
export async function replaceValue(before: Document, value: unknown, sentence: string = moreTexts.items.saved): Promise<Document> {
  const after = await collectionOf(before).replace(before, value as never);
  done(sentence, [{ before, after }]);
  return after;
}

/** Do something with each of many documents; those that cannot be changed are counted. */
async function each(found: readonly Entry[], sentence: (count: number) => string, change: (entry: Entry) => Promise<Step[]>): Promise<void> {
  const steps: Step[] = [];
  let changed = 0;
  let fault: unknown;
  try {
    for (const [at, entry] of found.entries()) {
      if (found.length > 20) work.set({ done: at, total: found.length });
      try {
        const made = await change(entry);
        steps.push(...made);
        if (made.length) changed += 1;
      } catch (met) {
        if (met instanceof Locked) return;
        fault = met;
      }
    }
  } finally {
    work.set(undefined);
  }
  done(sentence(changed), steps);
  if (fault) tellFault(fault);
}

/** Change items; `change` gives undefined for those that stay. Items that do not fit their type stay as they are. */
export function changeItems(found: readonly Entry[], change: (item: Item) => Item | undefined, sentence: (count: number) => string): Promise<void> {
  return each(found, sentence, async ({ document: before, item, problem }) => {
    if (!item || problem) return [];
    const next = change(fromStored(before.raw));
    if (!next) return [];
    const value = toStored(next);
    return isSame(value, before.raw) ? [] : [{ before, after: await collectionOf(before).replace(before, value as never) }];
  });
}

/** Delete documents: they are in the trash then. */
export const deleteEntries = (found: readonly Entry[]): Promise<void> =>
  each(found, moreTexts.items.deletedMany, async ({ document: before }) => [{ before, after: await collectionOf(before).delete(before) }]);

/**
 * Move items to a folder of a vault; `from` is the folder that they are taken out of, undefined for all.
 *
 * In another vault an item is a new document: it is made there first, and then deleted here. Its history stays behind.
 */
export function moveItems(found: readonly Entry[], vault: string, folder: string, from: string | undefined): Promise<void> {
  return each(found, moreTexts.items.movedMany, async ({ document: before, item, problem }) => {
    const isHere = before.vault === vault;
    if (!item || (problem && (isHere || folder))) return [];
    const moved = { ...item, folders: movedFolders(item.folders ?? [], isHere ? from : undefined, folder) };
    const value = problem ? before.raw : toStored(moved);
    if (isHere) return isSame(value, before.raw) ? [] : [{ before, after: await collectionOf(before).replace(before, value as never) }];
    const made = await collectionOf({ vault }).create(value as never);
    return [{ before: undefined, after: made }, { before, after: await collectionOf(before).delete(before) }];
  });
}
