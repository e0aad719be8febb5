// Changes of documents on this device, and how the last one is undone. They are sent by the next sync.
import { type Document, DocumentNotFound, Locked, Refusal } from "@strongroom/client";
import type { Item } from "@strongroom/client/items";
import { fromStored, ITEMS, toStored } from "@strongroom/client/items/shapes";
import type { RefusedChange, ReplicaCollection } from "@strongroom/client/replica";
import { tell } from "../state/notices.js";
import { onLock, session, vaults } from "../state/session.js";
import { createStore, type Store } from "../state/store.js";
import { moreTexts } from "../texts/lazyTexts.js";
import type { Entry } from "./entries.js";
import { tellFault } from "./faults.js";
import { movedFolders } from "./folders.js";
import { sessionGuard } from "./sessionGuard.js";

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
export function collectionOf({
  vault,
  collection = ITEMS,
}: {
  readonly vault: string;
  readonly collection?: string;
}): ReplicaCollection {
  const found = vaults.getSnapshot().find(({ uid }) => uid === vault);
  if (!found) throw new Locked(moreTexts.items.vaultGone);
  return found.collection(collection);
}

/** Remember a change, and tell of it with a button that undoes it; nothing of it where the app was locked meanwhile. */
function done(isOpen: () => boolean, sentence: string, steps: readonly Step[]): void {
  if (!steps.length || !isOpen()) return;
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
  const isOpen = sessionGuard();
  let left = 0;
  try {
    for (const step of [...change.steps].reverse()) {
      if (!isOpen()) return;
      if (!(await undoStep(step))) left += 1;
    }
    if (isOpen())
      tell(left ? moreTexts.items.undoneButFor(left) : moreTexts.items.undone, left ? { kind: "fault" } : {});
  } catch (fault) {
    if (isOpen()) tellFault(fault);
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
  const isOpen = sessionGuard();
  const after = await collectionOf({ vault }).create(toStored(item) as never);
  done(isOpen, moreTexts.items.created, [{ before: undefined, after }]);
  return after;
}

/** Another value for a document. DocumentConflict where it has changed since. */
export async function replaceValue(
  before: Document,
  value: unknown,
  sentence: string = moreTexts.items.saved,
): Promise<Document> {
  const isOpen = sessionGuard();
  const after = await collectionOf(before).replace(before, value as never);
  done(isOpen, sentence, [{ before, after }]);
  return after;
}

/** What is to be done once everything was sent, with what the server has refused. */
type AfterSync = (refused: readonly RefusedChange[]) => Promise<Step[]>;

/** What one of many changes made: its steps, and what is still to be done. */
interface Made {
  readonly steps: readonly Step[];
  readonly afterSync?: AfterSync;
}

/** Do something with each of many documents; those that cannot be changed are counted. */
async function each(
  found: readonly Entry[],
  sentence: (count: number) => string,
  change: (entry: Entry) => Promise<Made>,
): Promise<void> {
  const isOpen = sessionGuard();
  const steps: Step[] = [];
  const later: AfterSync[] = [];
  let changed = 0;
  let fault: unknown;
  const attempt = async (task: () => Promise<void>): Promise<void> => {
    try {
      await task();
    } catch (met) {
      fault = met;
    }
  };
  try {
    for (const [at, entry] of found.entries()) {
      if (!isOpen()) return;
      if (found.length > 20) work.set({ done: at, total: found.length });
      await attempt(async () => {
        const made = await change(entry);
        steps.push(...made.steps);
        if (made.afterSync) later.push(made.afterSync);
        else if (made.steps.length) changed += 1;
      });
    }
    const refused = later.length ? await sent() : [];
    for (const task of later) {
      if (!isOpen()) return;
      await attempt(async () => {
        steps.push(...(await task(refused)));
        changed += 1;
      });
    }
  } finally {
    work.set(undefined);
  }
  if (!isOpen()) return;
  done(isOpen, sentence(changed), steps);
  if (fault) tellFault(fault);
}

/** Wait until what was changed is sent; what is refused. Where the server cannot be reached, it is sent later. */
async function sent(): Promise<readonly RefusedChange[]> {
  const now = session.getSnapshot();
  if (now.kind !== "open") return [];
  await now.replica.sync().catch(() => undefined);
  return now.replica.isClosed ? [] : now.replica.refused();
}

/** Change items; `change` gives undefined for those that stay. Items that do not fit their type stay as they are. */
export function changeItems(
  found: readonly Entry[],
  change: (item: Item) => Item | undefined,
  sentence: (count: number) => string,
): Promise<void> {
  return each(found, sentence, async ({ document: before, item, problem }) => {
    const next = item && !problem ? change(fromStored(before.raw)) : undefined;
    return next ? replaced(before, toStored(next)) : { steps: [] };
  });
}

/** Another value for a document, if it is another. */
async function replaced(before: Document, value: unknown): Promise<Made> {
  return {
    steps: isSame(value, before.raw)
      ? []
      : [{ before, after: await collectionOf(before).replace(before, value as never) }],
  };
}

/** Delete documents: they are in the trash then. */
export const deleteEntries = (found: readonly Entry[]): Promise<void> =>
  each(found, moreTexts.items.deletedMany, async ({ document: before }) => ({
    steps: [{ before, after: await collectionOf(before).delete(before) }],
  }));

/**
 * Move items to a folder of a vault; `from` is the folder that they are taken out of, undefined for all.
 *
 * In another vault an item is a new document: it is made there first, and deleted here once the server has it. Where the
 * server refuses it, the item stays here, and the new document is taken back. Its history stays behind.
 */
export function moveItems(
  found: readonly Entry[],
  vault: string,
  folder: string,
  from: string | undefined,
): Promise<void> {
  return each(found, moreTexts.items.movedMany, async ({ document: before, item, problem }) => {
    const isHere = before.vault === vault;
    if (!item || (problem && (isHere || folder))) return { steps: [] };
    const moved = { ...item, folders: movedFolders(item.folders ?? [], isHere ? from : undefined, folder) };
    const value = problem ? before.raw : toStored(moved);
    if (isHere) return replaced(before, value);
    const made = await collectionOf({ vault }).create(value as never);
    return { steps: [], afterSync: (refused) => finishMove(before, made, refused) };
  });
}

/** Delete an item whose copy is in another vault; where that cannot be, take the copy back. */
async function finishMove(before: Document, made: Document, refused: readonly RefusedChange[]): Promise<Step[]> {
  const refusal = refused.find(({ vault, uid }) => vault === made.vault && uid === made.uid);
  if (refusal) {
    await refusal.discard();
    throw new Refusal(moreTexts.items.notMoved(refusal.reason.sentence));
  }
  try {
    return [
      { before: undefined, after: made },
      { before, after: await collectionOf(before).delete(before) },
    ];
  } catch (fault) {
    const there = collectionOf(made);
    await there.delete(await there.get(made.uid));
    throw fault;
  }
}
