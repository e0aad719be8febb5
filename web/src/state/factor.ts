// The second factor: wherever the server asks for one, the same dialogue is shown.
import type { Authenticator, Refusal } from "@strongroom/client";
import { createStore, type Store } from "./store.js";

/** A question for a second factor that waits for a person. */
export interface Question {
  /** Why it is asked: that there is a second factor, or that the last one was wrong. */
  readonly refusal: Refusal;
  readonly answer: (given: string | Authenticator) => void;
  readonly cancel: () => void;
}

/** The person has closed the dialogue. */
export class FactorCancelled extends Error {}

const asked = createStore<Question | undefined>(undefined);

/** The question that is shown. */
export const question: Store<Question | undefined> = asked;

/** Ask the person for a second factor: the `code` of every operation of the client that takes one. */
export function askFactor(refusal: Refusal): Promise<string | Authenticator> {
  asked.getSnapshot()?.cancel();
  return new Promise((resolve, reject) => {
    const end = (): void => asked.set(undefined);
    asked.set({
      refusal,
      answer: (given) => {
        end();
        resolve(given);
      },
      cancel: () => {
        end();
        reject(new FactorCancelled());
      },
    });
  });
}
