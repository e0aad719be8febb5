// Several tabs as one: what one of them does, the others are told.
import type { SyncProblem } from "./syncProblem.js";

/** What a tab tells the others. */
export type Message =
  /** Everything is locked; with `isLoggedOut`, the account is gone from this device. */
  | { readonly kind: "locked"; readonly isLoggedOut: boolean }
  /** The session is saved: open it. */
  | { readonly kind: "opened" }
  /** A sync has changed something, or a vault was made. */
  | { readonly kind: "changed" }
  /** What keeps the tab that syncs for all from it; undefined once it syncs again. */
  | { readonly kind: "trouble"; readonly trouble: SyncProblem | undefined }
  /** Sync now. */
  | { readonly kind: "sync" }
  /** Is anybody there? */
  | { readonly kind: "who" }
  | { readonly kind: "here" };

const channel = new BroadcastChannel("strongroom-web");

/** Tell the other tabs. */
export const tellTabs = (message: Message): void => channel.postMessage(message);

/** Hear what other tabs tell. */
export function hearTabs(hear: (message: Message) => void): void {
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => hear(data));
}

/** Whether another tab is open. One that does not answer within 300 ms does not count. */
export function isAnyTabOpen(): Promise<boolean> {
  return new Promise((found) => {
    const end = (isOpen: boolean): void => {
      channel.removeEventListener("message", hear);
      clearTimeout(timer);
      found(isOpen);
    };
    const hear = ({ data }: MessageEvent<Message>): void => void (data.kind === "here" && end(true));
    const timer = setTimeout(end, 300, false);
    channel.addEventListener("message", hear);
    tellTabs({ kind: "who" });
  });
}
