// Errors as sentences for people.
import {
  AccountDisabled,
  EmailAlreadyExists,
  Invalid,
  InvalidCredentials,
  InvalidInvitation,
  RateLimited,
  Refusal,
  RolledBack,
  Tampered,
  WeakParameters,
  WrongServer,
} from "@strongroom/client";
import { isSaidByServer } from "@strongroom/client/net/errorsFromStatus";
import { FactorCancelled } from "../state/factor.js";
import { isMissingPart, tellMissingPart } from "../state/release.js";
import { texts } from "../texts/en.js";

/** Classes whose own sentence is good for a person. */
const OWN_SENTENCE = [AccountDisabled, EmailAlreadyExists, InvalidInvitation, RateLimited, WrongServer];

/** What people call the fields that the client names. */
const FIELDS: Readonly<Record<string, string>> = {
  url: texts.common.server,
  email: texts.common.email,
  password: texts.common.password,
  recovery_key: texts.recoverySheet.key,
};

/** What is not valid: in the words of the server, quoted as such, or in those of the client, which checks before it asks. */
function invalidSentence(fault: Invalid): string {
  if (isSaidByServer(fault)) return texts.errors.serverSays(fault.message);
  const [name = "", ...rest] = fault.message.split(" ");
  const first = Object.hasOwn(FIELDS, name) ? FIELDS[name] : `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
  return [first, ...rest].join(" ");
}

/** The sentence for an error; undefined where there is nothing to say, because the person has cancelled. */
export function sentenceOf(fault: unknown): string | undefined {
  if (fault instanceof FactorCancelled) return undefined;
  if (isMissingPart(fault)) {
    tellMissingPart(); // with a button to reload, wherever the sentence is shown
    return texts.release.partMissing;
  }
  if (!(fault instanceof Refusal)) return texts.errors.other;
  if (fault instanceof WeakParameters) return `${texts.alarms.weak.what} ${texts.alarms.weak.next}`;
  if (fault instanceof RolledBack) return `${texts.alarms.rolledBack.what} ${texts.syncProblems.nothingOverwritten}`;
  if (fault instanceof Tampered) return `${texts.alarms.tampered.what} ${texts.syncProblems.nothingOverwritten}`;
  if (fault instanceof Invalid) return invalidSentence(fault);
  if (OWN_SENTENCE.some((kind) => fault instanceof kind)) return fault.message;
  for (
    let kind = fault.constructor as typeof Refusal;
    kind !== Refusal;
    kind = Object.getPrototypeOf(kind) as typeof Refusal
  ) {
    const found = (texts.errors as Record<string, unknown>)[kind.kind];
    if (typeof found === "string") return found;
  }
  return fault.message;
}

/** The sentence where a password alone was asked for. */
export const passwordSentence = (fault: unknown): string | undefined =>
  fault instanceof InvalidCredentials ? texts.errors.wrongPassword : sentenceOf(fault);
