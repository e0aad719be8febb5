// Drafts: what was typed into an editor and not saved. They are in memory alone, and forgotten when the app is locked.
import type { Document } from "@strongroom/client";
import type { Item } from "@strongroom/client/items";
import { onLock, session } from "../state/session.js";
import { createStore } from "../state/store.js";

/** An item that is being edited. */
export interface Draft {
  readonly item: Item;
  /** The document that it was made from; undefined for a new one. */
  readonly base: Document | undefined;
  /** The vault of a new one. */
  readonly vault: string;
}

/** The draft of an item by its key; that of a new one is at "new". */
export const drafts = createStore<ReadonlyMap<string, Draft>>(new Map());

/** Keep a draft; undefined forgets it. An editor whose effect runs just after a lock keeps none. */
export function keepDraft(key: string, draft: Draft | undefined): void {
  if (session.getSnapshot().kind !== "open") return;
  drafts.set((before) => {
    const next = new Map(before);
    if (draft) next.set(key, draft);
    else next.delete(key);
    return next;
  });
}

onLock(() => drafts.set(new Map()));
addEventListener("beforeunload", (event) => {
  if (drafts.getSnapshot().size) event.preventDefault();
});
