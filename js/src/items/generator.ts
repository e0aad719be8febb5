// Generates passwords and passphrases, and says how many bits they have: how many equally likely ones there are.
import { Invalid } from "../errors.js";
import { primitives } from "../format/primitives.js";

const SMALL = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
/** Neither quotes nor backslashes, which shells and forms treat in their own ways. */
const SYMBOLS = "!#$%&*+-./:;=?@^_~";
const [SHORTEST, LONGEST] = [8, 256];
const [FEWEST, MOST] = [3, 32];
// Words that nobody has to have heard: five letters that can be spoken, 16.9 bits each.
const CONSONANTS = "bdfghjklmnprstvwz";
const VOWELS = "aeiou";
const WORD = [CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS];

/** A secret, and how many bits it has. */
export interface Generated {
  readonly value: string;
  readonly bits: number;
}

/** A password of letters and digits, and of symbols unless they are not wanted; of each kind at least one. */
export function generatePassword(length = 20, { symbols = true }: { symbols?: boolean | undefined } = {}): Generated {
  if (!Number.isInteger(length) || length < SHORTEST || length > LONGEST)
    throw new Invalid(
      { length: `must be ${SHORTEST} to ${LONGEST}` },
      `A password has ${SHORTEST} to ${LONGEST} characters.`,
    );
  const kinds = [SMALL, SMALL.toUpperCase(), DIGITS, ...(symbols ? [SYMBOLS] : [])];
  const alphabet = kinds.join("");
  for (;;) {
    // drawing anew until all kinds are there keeps all that are left equally likely
    const value = Array.from({ length }, () => choice(alphabet)).join("");
    if (kinds.every((kind) => [...value].some((sign) => kind.includes(sign))))
      return { value, bits: bitsOf(kinds, length) };
  }
}

/** A passphrase of words that can be spoken and typed. */
export function generatePassphrase(words = 5, { separator = "-" }: { separator?: string | undefined } = {}): Generated {
  if (!Number.isInteger(words) || words < FEWEST || words > MOST)
    throw new Invalid({ words: `must be ${FEWEST} to ${MOST}` }, `A passphrase has ${FEWEST} to ${MOST} words.`);
  const made = Array.from({ length: words }, () => WORD.map(choice).join(""));
  return {
    value: made.join(separator),
    bits: words * WORD.reduce((sum, letters) => sum + Math.log2(letters.length), 0),
  };
}

/** One of the characters, each as likely as any other: bytes that would favour some are thrown away. */
function choice(letters: string): string {
  const fair = 256 - (256 % letters.length);
  for (;;) {
    const [byte = 255] = primitives().random(1);
    if (byte < fair) return letters[byte % letters.length] as string;
  }
}

/** Those with every kind: all, less those that lack a kind, counted by inclusion and exclusion. */
function bitsOf(kinds: readonly string[], length: number): number {
  let count = 0n;
  for (let chosen = 0; chosen < 1 << kinds.length; chosen += 1) {
    const left = kinds.filter((_, at) => !((chosen >> at) & 1));
    const size = BigInt(left.reduce((sum, kind) => sum + kind.length, 0)) ** BigInt(length);
    count += (kinds.length - left.length) % 2 ? -size : size;
  }
  const digits = count.toString(2);
  return Math.log2(parseInt(digits.slice(0, 53), 2)) + Math.max(0, digits.length - 53);
}
