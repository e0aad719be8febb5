// What keeps this device from syncing, as something that the app can show and act on.
import {
  AccountDisabled,
  CredentialsRolledBack,
  InvalidCredentials,
  InvalidPasskey,
  InvalidRefreshToken,
  InvalidSecondFactor,
  InvalidTicket,
  Locked,
  RateLimited,
  Refusal,
  RolledBack,
  SecondFactorRequired,
  Tampered,
  Unauthorized,
  Unavailable,
  UndecidedConflicts,
  Unsupported,
  WeakParameters,
  WrongServer,
} from "@strongroom/client";
import { FactorCancelled } from "./factor.js";
import { isMissingPart, tellMissingPart } from "./release.js";

/**
 * Why there is no sync.
 *
 * - `offline`: the server cannot be reached. It is tried again by itself.
 * - `busy`: the server asks to wait, or has a fault. It is tried again by itself.
 * - `wrongServer`: something else answers. It is tried again by itself.
 * - `ended`: the session has ended, or a second factor is missing: the password is asked for again.
 * - `password`: the password was changed elsewhere, or the account is not there any more: log in again.
 * - `disabled`: the operator has disabled the account.
 * - `rolledBack`, `credentialsRolledBack`, `tampered`, `weak`: the server lies, was damaged, or was restored from an older
 *   backup. Nothing was believed, and nothing overwritten; there are no more syncs until a person tries again.
 * - `undecided`: the server was restored again while conflicts since the restore before wait: a person decides them.
 * - `older`: the server lacks what a sync needs, because it is of an older release. It is tried again by itself.
 * - `old`: the account uses something that this app does not know.
 * - `other`: a fault of this app or of the browser.
 */
export type SyncProblemKind =
  | "offline"
  | "busy"
  | "wrongServer"
  | "ended"
  | "password"
  | "disabled"
  | "rolledBack"
  | "credentialsRolledBack"
  | "undecided"
  | "tampered"
  | "weak"
  | "older"
  | "old"
  | "other";

/** What keeps this device from syncing. */
export interface SyncProblem {
  readonly kind: SyncProblemKind;
  /** The name of the error's class, for `texts.errors`. */
  readonly name: string;
  /** The sentence of the error. */
  readonly sentence: string;
}

const KINDS: readonly [SyncProblemKind, ...(new (...given: never[]) => Error)[]][] = [
  ["offline", Unavailable],
  ["busy", RateLimited],
  ["wrongServer", WrongServer],
  [
    "ended",
    InvalidRefreshToken,
    Unauthorized,
    Locked,
    SecondFactorRequired,
    InvalidSecondFactor,
    InvalidTicket,
    InvalidPasskey,
    FactorCancelled,
  ],
  ["password", InvalidCredentials],
  ["disabled", AccountDisabled],
  ["credentialsRolledBack", CredentialsRolledBack],
  ["undecided", UndecidedConflicts],
  ["rolledBack", RolledBack],
  ["tampered", Tampered],
  ["weak", WeakParameters],
  ["old", Unsupported],
  ["busy", Refusal],
];
/** What a server answers to a path that it does not have. A vault that is not there has a name of its own. */
const NO_SUCH_PATH = ["NotFound", "MethodNotAllowed"];
const BY_ITSELF: readonly SyncProblemKind[] = ["offline", "busy", "wrongServer", "older"];
/** Those that get a page-wide notice. */
export const ALARMS: readonly SyncProblemKind[] = [
  "rolledBack",
  "credentialsRolledBack",
  "undecided",
  "tampered",
  "weak",
];

/** What an error means. */
export function syncProblemOf(fault: unknown): SyncProblem {
  if (isMissingPart(fault)) tellMissingPart();
  const name = fault instanceof Refusal ? (fault.constructor as typeof Refusal).kind : "Error";
  const found = KINDS.find(([, ...classes]) => classes.some((one) => fault instanceof one))?.[0] ?? "other";
  const kind = NO_SUCH_PATH.includes(name) ? "older" : found;
  return { kind, name, sentence: fault instanceof Refusal ? fault.message : "" };
}

/** Whether it is tried again without a person. */
export const isTriedAgain = ({ kind }: SyncProblem): boolean => BY_ITSELF.includes(kind);
