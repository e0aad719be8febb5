// Where the focus goes when something appears.

/** Move the focus to an element that has appeared, unless somebody is typing elsewhere already. */
export function focusUnlessTyping(element: HTMLElement | null | undefined): void {
  if (!document.activeElement?.matches("input, textarea, select")) element?.focus();
}
