// The keys that work everywhere. Views have their own keys besides.
import { useEffect } from "preact/hooks";
import { withLazyViews } from "../items/lazyLoading.js";

/** Whether a key was meant for the page: it was not pressed in a field or a form, and has no Ctrl, Alt or Meta. */
export function isForPage(event: KeyboardEvent): boolean {
  const { target } = event;
  const isTyped =
    target instanceof HTMLElement && (target.closest("form, input, textarea, select") || target.isContentEditable);
  return (
    !event.defaultPrevented &&
    !event.ctrlKey &&
    !event.altKey &&
    !event.metaKey &&
    !isTyped &&
    !document.querySelector("dialog[open]")
  );
}

/** The keys of the shell. */
export function useKeys(onHelp: () => void, onLock: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!isForPage(event)) return;
      if (event.key === "?") onHelp();
      else if (event.key === "l") onLock();
      else if (event.key === "u") withLazyViews(({ undoLast }) => undoLast());
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
