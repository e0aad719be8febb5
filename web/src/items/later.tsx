// What is loaded apart from the list: one item, its editor and history, and dialogues.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { tellMissingPart } from "../state/release.js";
import { whileOpen } from "./whileOpen.js";

type Views = typeof import("./laterViews.js");

let loaded: Views | undefined;

const loadLater = async (): Promise<Views> => (loaded ??= await import("./laterViews.js"));

/** Do something with it, once it is loaded, unless the app was locked meanwhile; where that fails, a notice says so. */
export function withLater(run: (views: Views) => Promise<void>): void {
  const isOpen = whileOpen();
  loadLater().then((views) => void (isOpen() && run(views)), tellMissingPart);
}

/** What was loaded; undefined until then, and "fault" where that failed. */
export function useLater(): Views | "fault" | undefined {
  const [views, setViews] = useState<Views | "fault" | undefined>(loaded);
  useEffect(() => {
    if (!loaded) loadLater().then(setViews, () => setViews("fault"));
  }, []);
  return views;
}

/** Something of it, as soon as it is there; a notice where it cannot be loaded. */
export function Later({ show }: { show: (views: Views) => ComponentChildren }) {
  const views = useLater();
  useEffect(() => {
    if (views === "fault") tellMissingPart();
  }, [views]);
  return views === undefined || views === "fault" ? null : <>{show(views)}</>;
}
