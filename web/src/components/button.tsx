// A button with a word on it.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.js";

/** How a button looks: the one that is meant, one beside it, one without a frame, or one that destroys. */
export type ButtonKind = "primary" | "secondary" | "plain" | "danger";

interface ButtonProps {
  children: ComponentChildren;
  kind?: ButtonKind;
  type?: "button" | "submit";
  icon?: IconName | undefined;
  isBusy?: boolean;
  isDisabled?: boolean;
  onClick?: ((event: MouseEvent) => void) | undefined;
  /** The id of what says more about it. */
  describedBy?: string | undefined;
  autoFocus?: boolean;
}

/** A button. While it is busy, it stays in its place and does nothing. */
export function Button({
  children,
  kind = "secondary",
  type = "button",
  icon,
  isBusy,
  isDisabled,
  onClick,
  describedBy,
  autoFocus,
}: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${kind}`}
      disabled={isDisabled}
      aria-disabled={isBusy ? "true" : undefined}
      aria-busy={isBusy ? "true" : undefined}
      aria-describedby={describedBy}
      data-autofocus={autoFocus ? "" : undefined}
      onClick={(event) => (isBusy ? event.preventDefault() : onClick?.(event))}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      <span>{children}</span>
    </button>
  );
}
