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
const shown = createStore<readonly Notice[]>([]);
let last = 0;

/** The notices that are shown. */
export const notices: Store<readonly Notice[]> = shown;

/** Take a notice away. */
export const dismiss = (id: number): void => shown.set((before) => before.filter((notice) => notice.id !== id));

/** Take all notices away that may tell of decrypted things. */
export const dismissAll = (): void => shown.set((before) => before.filter(({ stays }) => stays));

/** Show a notice. One with an action stays twice as long, and the last three are shown. */
export function tell(text: string, options: { kind?: Notice["kind"]; action?: Notice["action"]; stays?: boolean } = {}): void {
  const { kind = "done", action, stays = false } = options;
  const notice: Notice = { id: ++last, text, kind, action, stays };
  shown.set((before) => [...before, notice].slice(-3));
  if (!stays) setTimeout(() => dismiss(notice.id), SECONDS[kind] * (action ? 2 : 1) * 1000);
}

/** The action of the newest notice that has one, such as undo: what the key `u` does. */
export function runNewestAction(): void {
  const found = [...shown.getSnapshot()].reverse().find(({ action, stays }) => action && !stays);
  if (!found) return;
  dismiss(found.id);
  void found.action?.run();
}
