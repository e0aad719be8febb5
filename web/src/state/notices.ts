// Notices: short sentences at the edge of the page, perhaps with a way to undo what they tell.
import { createStore, type Store } from "./store.js";

/** A notice. */
export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly kind: "done" | "fault";
  /** Whether it stays until the person answers it. */
  readonly stays: boolean;
  /** What the button of the notice does. */
  readonly action: { readonly label: string; readonly run: () => void | Promise<void> } | undefined;
}

const SECONDS = { done: 6, fault: 12 } as const;
const MOST = 3; // of those that go by themselves
const shown = createStore<readonly Notice[]>([]);
let last = 0;

/** The notices that are shown. */
export const notices: Store<readonly Notice[]> = shown;

/** Take a notice away. */
export const dismiss = (id: number): void => shown.set((before) => before.filter((notice) => notice.id !== id));

/** Take all notices away that may tell of decrypted things. */
export const dismissAll = (): void => shown.set((before) => before.filter(({ stays }) => stays));

/**
 * Show a notice; its id. One with an action stays twice as long. The last three are shown, and all that stay until they are
 * answered; such a one is shown once.
 */
export function tell(
  text: string,
  options: { kind?: Notice["kind"]; action?: Notice["action"]; stays?: boolean } = {},
): number {
  const { kind = "done", action, stays = false } = options;
  const notice: Notice = { id: ++last, text, kind, action, stays };
  shown.set((before) => {
    const others = stays ? before.filter((one) => !one.stays || one.text !== text) : before;
    const passing = others.filter((one) => !one.stays);
    const dropped = stays ? [] : passing.slice(0, Math.max(0, passing.length + 1 - MOST));
    return [...others.filter((one) => !dropped.includes(one)), notice];
  });
  if (!stays) setTimeout(() => dismiss(notice.id), SECONDS[kind] * (action ? 2 : 1) * 1000);
  return notice.id;
}

/** The action of the newest notice that has one, such as undo: what the key `u` does. */
export function runNewestAction(): void {
  const found = [...shown.getSnapshot()].reverse().find(({ action, stays }) => action && !stays);
  if (!found) return;
  dismiss(found.id);
  void found.action?.run();
}
