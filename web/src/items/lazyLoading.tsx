// What is loaded apart from the list: one item, its editor and history, and dialogues.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { tellMissingPart } from "../state/release.js";
import { sessionGuard } from "./sessionGuard.js";

type Views = typeof import("./lazyViews.js");

let loaded: Views | undefined;

const loadViews = async (): Promise<Views> => (loaded ??= await import("./lazyViews.js"));

/** Do something with it, once it is loaded, unless the app was locked meanwhile; where that fails, a notice says so. */
export function withLazyViews(run: (views: Views) => Promise<void>): void {
  const isOpen = sessionGuard();
  loadViews().then((views) => void (isOpen() && run(views)), tellMissingPart);
}

/** What was loaded; undefined until then, and "fault" where that failed. */
export function useLazyViews(): Views | "fault" | undefined {
  const [views, setViews] = useState<Views | "fault" | undefined>(loaded);
  useEffect(() => {
    // Also where it was loaded since this was drawn: that is not shown yet.
    if (!views) loadViews().then(setViews, () => setViews("fault"));
  }, []);
  return views;
}

/** Something of it, as soon as it is there; a notice where it cannot be loaded. */
export function LazyViews({ show }: { show: (views: Views) => ComponentChildren }) {
  const views = useLazyViews();
  useEffect(() => {
    if (views === "fault") tellMissingPart();
  }, [views]);
  return views === undefined || views === "fault" ? null : show(views);
}
