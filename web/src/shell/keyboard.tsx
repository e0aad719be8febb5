// The keys that work everywhere, and the sheet that names all of them. Views have their own keys besides.
import { useEffect } from "preact/hooks";
import { Dialog } from "../components/dialog.js";
import { runNewestAction } from "../state/notices.js";
import { lock } from "../state/session.js";
import { texts } from "../texts/en.js";

/** Whether a key was meant for the page: it was not typed into a field, and has no Ctrl, Alt or Meta. */
export function isForPage(event: KeyboardEvent): boolean {
  const { target } = event;
  const isTyped = target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
  return !event.defaultPrevented && !event.ctrlKey && !event.altKey && !event.metaKey && !isTyped && !document.querySelector("dialog[open]");
}

/** The keys of the shell. */
export function useKeys(onHelp: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!isForPage(event)) return;
      if (event.key === "?") onHelp();
      else if (event.key === "l") void lock();
      else if (event.key === "u") runNewestAction();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** The sheet with all keys. */
export function KeyboardSheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={texts.keyboard.title} onClose={onClose}>
      <dl class="keys">
        {texts.keyboard.keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>{key.split("  ").map((one) => <kbd key={one}>{one}</kbd>)}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
