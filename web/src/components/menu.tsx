// A button that opens a list of actions.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.js";
import { IconButton } from "./iconButton.js";

/** One action of a menu. */
export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName | undefined;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  readonly run: () => void;
}

/** A menu. Arrows move in it, Enter chooses, Esc and a click elsewhere close it. */
export function Menu({ icon = "more", label, items }: { icon?: IconName; label: string; items: readonly MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const buttons = (): HTMLElement[] => [
    ...(frame.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? []),
  ];
  const close = (isBack: boolean): void => {
    setOpen(false);
    if (isBack) frame.current?.querySelector<HTMLElement>("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    buttons()[0]?.focus();
    const elsewhere = (event: Event): void => {
      if (!(event.target instanceof Node) || !frame.current?.contains(event.target)) setOpen(false);
    };
    addEventListener("pointerdown", elsewhere, true);
    return () => removeEventListener("pointerdown", elsewhere, true);
  }, [isOpen]);
  const move = (event: KeyboardEvent): void => {
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = {
      ArrowDown: (at + 1) % all.length,
      ArrowUp: (at + all.length - 1) % all.length,
      Home: 0,
      End: all.length - 1,
    }[event.key];
    if (event.key === "Escape") close(true);
    else if (event.key === "Tab") return close(false);
    else if (to === undefined) return;
    else all[to]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys reach it from the buttons of the menu
    <div class="menu" ref={frame} onKeyDown={isOpen ? move : undefined}>
      <IconButton icon={icon} label={label} isExpanded={isOpen} onClick={() => setOpen(!isOpen)} />
      {isOpen && (
        <div class="menuItems" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={item.isDanger ? "danger" : ""}
              disabled={item.isDisabled}
              onClick={() => {
                close(true);
                item.run();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              <span>{item.label}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
