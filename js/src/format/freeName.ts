// Names for vaults where two want the same one.
import { fromText, text } from "./encoding.js";
import { LONGEST } from "./names.js";

/** The name, or where a vault has it already, the name with a number; `taken` gives undefined for a free one. */
export function freeName(name: string, taken: (name: string) => unknown): string {
  let free = name;
  for (let number = 2; taken(free) !== undefined; number += 1) {
    const suffix = ` (${number})`;
    let raw = text(name).subarray(0, LONGEST - suffix.length);
    while (fromText(raw) === null) raw = raw.subarray(0, -1); // not in the middle of a character
    free = fromText(raw) + suffix;
  }
  return free;
}
