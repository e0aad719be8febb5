// Dragging items to vaults and folders. What is dragged stays in this page: other programs are given nothing of it.
import { useState } from "preact/hooks";
import { onLock } from "../state/session.js";
import type { Entry } from "./entries.js";
import { withLazyViews } from "./lazyLoading.js";
import { filter } from "./listState.js";

const KIND = "application/x-strongroom-items";
let dragged: readonly Entry[] = [];
onLock(() => (dragged = []));

/** Begin to drag entries. */
export function drag(event: DragEvent, entries: readonly Entry[]): void {
  dragged = entries.filter(({ item }) => item !== undefined);
  event.dataTransfer?.clearData();
  event.dataTransfer?.setData(KIND, "");
  if (event.dataTransfer) event.dataTransfer.effectAllowed = "move";
  addEventListener("dragend", () => (dragged = []), { once: true });
}

/** What makes something a place to drop items on, and whether they are above it. */
export function useDrop(vault: string, folder: string): [boolean, Record<string, (event: DragEvent) => void>] {
  const [isOver, setOver] = useState(false);
  const isOurs = (event: DragEvent): boolean =>
    dragged.length > 0 && (event.dataTransfer?.types.includes(KIND) ?? false);
  return [
    isOver,
    {
      onDragOver: (event) => {
        if (!isOurs(event)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: () => setOver(false),
      onDrop: (event) => {
        setOver(false);
        if (!isOurs(event)) return;
        event.preventDefault();
        const moved = dragged;
        dragged = [];
        withLazyViews(({ moveItems }) => moveItems(moved, vault, folder, filter.getSnapshot().folder));
      },
    },
  ];
}
