// What this device remembers of its account, in localStorage: nothing secret, and neither the email nor a name.
//
// `until` is when the app locks: every tab moves it forward at each input, and every tab obeys it.
import { settings } from "./settings.js";

/** The name under which the session is saved while the app is unlocked. */
export const SESSION = "strongroom-web";
const ACCOUNT = "strongroom-web.account";
const LEFT = "strongroom-web.left"; // the replica of an account that was logged out, until it is deleted
const UNTIL = "strongroom-web.until";
const LOCKED = "strongroom-web.locked"; // it was locked or logged out, and no password or passkey has opened it since
const LONGEST = 61 * 60_000; // more than any choice
const TAB = "strongroom-web.tab"; // in sessionStorage: this tab was open before it was loaded again

/** The account of this device. */
export interface Remembered {
  /** The name of its replica. */
  readonly replica: string;
  /** The address of its server. */
  readonly server: string;
  /** Whether the replica has had everything of the account once. */
  readonly isWhole: boolean;
  /** Whether a passkey has opened the account here. */
  readonly hasPasskey: boolean;
}

/** The account of this device, if there is one. */
export function remembered(): Remembered | undefined {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(ACCOUNT) ?? "null");
    if (typeof found !== "object" || found === null) return undefined;
    const { replica, server, isWhole, hasPasskey } = found as Record<string, unknown>;
    if (typeof replica !== "string" || typeof server !== "string") return undefined;
    return { replica, server, isWhole: isWhole === true, hasPasskey: hasPasskey === true };
  } catch {
    return undefined;
  }
}

/** Remember an account, or more of it. */
export function remember(changed: Partial<Remembered> & Pick<Remembered, "replica" | "server">): void {
  const before = remembered();
  const same = before?.replica === changed.replica ? before : { isWhole: false, hasPasskey: false };
  localStorage.setItem(ACCOUNT, JSON.stringify({ ...same, ...changed }));
}

/** Forget the account of this device. */
export function forgetAccount(): void {
  localStorage.removeItem(ACCOUNT);
  localStorage.removeItem(UNTIL);
}

/** Note that the account was logged out: its replica is to be deleted, here or, if this tab is closed before, at the next start. */
export function leaveAccount(): void {
  const known = remembered();
  if (known) localStorage.setItem(LEFT, known.replica);
  forgetAccount();
}

/** The replica that is still to be deleted. */
export const leftReplica = (): string | undefined => localStorage.getItem(LEFT) ?? undefined;

/** The replica of the account that was logged out is deleted. */
export const noteDeleted = (): void => localStorage.removeItem(LEFT);

const named = (): string | undefined =>
  document.querySelector<HTMLMetaElement>('meta[name="strongroom-server"]')?.content;

/** The address of the server: that of the page, unless the build names another one. */
export const defaultServer = (): string => named() || location.origin;

/** Whether the page is hosted apart from a server, so that a person can name the server. */
export const isHostedApart = (): boolean => Boolean(named());

/** Whether the page of a server is at another path than its server has it: a proxy has put the server below a path. */
export const isMisplaced = (): boolean => !isHostedApart() && !location.pathname.startsWith("/app/");

/** Whether the time to lock has come. Without a time, or with one far in the future, it has: the clock was changed. */
export function isDue(now = Date.now()): boolean {
  const { lockMinutes } = settings.getSnapshot();
  if (!lockMinutes) return false;
  const until = Number(localStorage.getItem(UNTIL) ?? 0);
  return until <= now || until > now + LONGEST;
}

/** Milliseconds until the time to lock. */
export const timeLeft = (now = Date.now()): number => Number(localStorage.getItem(UNTIL) ?? 0) - now;

/** Somebody uses the app: lock later. */
export function putOff(minutes = settings.getSnapshot().lockMinutes): void {
  if (!isLocked()) localStorage.setItem(UNTIL, `${Date.now() + minutes * 60_000}`);
}

/** Note that it is locked, at once and for all tabs: whatever is still saved must not be opened. */
export function noteLocked(): void {
  localStorage.removeItem(UNTIL); // and so there is room
  localStorage.setItem(LOCKED, "1");
}

/** Whether it was locked, and not opened since by a password or a passkey. */
export const isLocked = (): boolean => localStorage.getItem(LOCKED) !== null;

/** A password or a passkey has opened it. */
export const noteOpened = (): void => localStorage.removeItem(LOCKED);

/** Note that this tab is open. Whether it was open before this page was loaded. */
export function noteTab(): boolean {
  const before = sessionStorage.getItem(TAB) !== null;
  sessionStorage.setItem(TAB, "open");
  return before;
}
