// Tabs: a few views of one thing, one of which is shown.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly (readonly [id: T, label: string])[];
  shown: T;
  onShow: (id: T) => void;
  children: ComponentChildren;
}

/** Tabs with the content of the one that is shown. Arrows move between them. */
export function Tabs<T extends string>({ label, tabs, shown, onShow, children }: TabsProps<T>) {
  const id = useId();
  const at = tabs.findIndex(([one]) => one === shown);
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step === undefined ? undefined : tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    onShow(next[0]);
    document.getElementById(`${id}-${next[0]}`)?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(([one, name]) => (
          <button
            key={one}
            id={`${id}-${one}`}
            type="button"
            role="tab"
            aria-selected={one === shown}
            aria-controls={`${id}-panel`}
            tabIndex={one === shown ? 0 : -1}
            onClick={() => onShow(one)}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shown}`}>
        {children}
      </div>
    </div>
  );
}
