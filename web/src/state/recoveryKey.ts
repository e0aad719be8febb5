// Whether somebody has confirmed to have the newest recovery key. It is shown once: where the app is locked or closed before
// that, it may be lost, and the one of before opens nothing more. This device remembers it, so that it can say so.
import { InvalidCredentials, InvalidSecondFactor, RateLimited } from "@strongroom/client";
import { FactorCancelled } from "./factor.js";
import { createStore, type Store } from "./store.js";

const NOTE = "strongroom-web.unconfirmed";
/** Refusals after which there is no new key. After any other fault there may be one. */
const WITHOUT = [InvalidCredentials, InvalidSecondFactor, RateLimited, FactorCancelled];

const read = (): string | undefined => localStorage.getItem(NOTE) ?? undefined;
const current = createStore(read());
addEventListener("storage", () => current.set(read()));

/** The replica of the account whose newest recovery key nobody has confirmed to have, if there is one. */
export const unconfirmed: Store<string | undefined> = current;

function note(replica: string | undefined): void {
  if (replica === undefined) localStorage.removeItem(NOTE);
  else localStorage.setItem(NOTE, replica);
  current.set(replica);
}

/** Make a recovery key for the account of a replica. From now on it counts as not confirmed: the server may have it. */
export async function unconfirmedKey<T>(replica: string, make: () => Promise<T>): Promise<T> {
  const before = current.getSnapshot();
  note(replica);
  try {
    return await make();
  } catch (fault) {
    if (WITHOUT.some((kind) => fault instanceof kind)) note(before);
    throw fault;
  }
}

/** Somebody has the newest key, or there is none any more. */
export const confirmKey = (): void => note(undefined);
