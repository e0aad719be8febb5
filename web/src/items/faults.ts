// Faults of changes, told in a notice.
import { DocumentConflict, PayloadTooLarge } from "@strongroom/client";
import { sentenceOf } from "../account/faults.js";
import { tell } from "../state/notices.js";
import { moreTexts } from "../texts/lazyTexts.js";

/** The sentence for a change that failed; undefined where there is nothing to say. */
export function changeSentence(fault: unknown): string | undefined {
  if (fault instanceof DocumentConflict) return moreTexts.items.changedElsewhere;
  if (fault instanceof PayloadTooLarge) return fault.message;
  return sentenceOf(fault);
}

/** Tell what went wrong. */
export function tellFault(fault: unknown): void {
  const sentence = changeSentence(fault);
  if (sentence !== undefined) tell(sentence, { kind: "fault" });
}
