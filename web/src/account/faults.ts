// Errors as sentences for people.
import {
  AccountDisabled, EmailAlreadyExists, Invalid, InvalidCredentials, InvalidInvitation, RateLimited, Refusal, RolledBack,
  Tampered, WeakParameters, WrongServer,
} from "@strongroom/client";
import { FactorCancelled } from "../state/factor.js";
import { texts } from "../texts/en.js";

/** Classes whose own sentence is good for a person. */
const OWN_SENTENCE = [AccountDisabled, EmailAlreadyExists, InvalidInvitation, RateLimited, WrongServer];

/** The sentence for an error; undefined where there is nothing to say, because the person has cancelled. */
export function sentenceOf(fault: unknown): string | undefined {
  if (fault instanceof FactorCancelled) return undefined;
  if (!(fault instanceof Refusal)) return texts.errors.other;
  if (fault instanceof WeakParameters) return `${texts.alarms.weak.what} ${texts.alarms.weak.next}`;
  if (fault instanceof RolledBack) return `${texts.alarms.rolledBack.what} ${texts.trouble.nothingOverwritten}`;
  if (fault instanceof Tampered) return `${texts.alarms.tampered.what} ${texts.trouble.nothingOverwritten}`;
  if (fault instanceof Invalid) return texts.errors.invalid(fault.message); // quoted: the words may be the server's
  if (OWN_SENTENCE.some((kind) => fault instanceof kind)) return fault.message;
  for (let kind = fault.constructor as typeof Refusal; kind !== Refusal; kind = Object.getPrototypeOf(kind) as typeof Refusal) {
    const found = (texts.errors as Record<string, unknown>)[kind.kind];
    if (typeof found === "string") return found;
  }
  return fault.message;
}

/** The sentence where a password alone was asked for. */
export const passwordSentence = (fault: unknown): string | undefined =>
  fault instanceof InvalidCredentials ? texts.errors.wrongPassword : sentenceOf(fault);
