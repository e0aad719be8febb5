// How strong a password is that a person has chosen: an upper bound, for nobody can know how it was chosen.
import { folded } from "./text.js";

/** Bits: each guess takes a second of a computer, and an attacker has thousands for years. */
const WEAK = 45;
const FAIR = 65;
/** Bits of a word that was drawn from a list of some thousand. */
const WORD = 11;
const COMMON = new Set([
  "password",
  "passwort",
  "qwerty",
  "qwertz",
  "azerty",
  "letmein",
  "welcome",
  "admin",
  "iloveyou",
  "monkey",
  "dragon",
  "secret",
  "master",
  "strongroom",
  "football",
  "baseball",
  "sunshine",
  "princess",
  "login",
  "abc",
  "test",
]);
const CLASSES: readonly [RegExp, number][] = [
  [/[a-z]/, 26],
  [/[A-Z]/, 26],
  [/[0-9]/, 10],
  [/[^a-zA-Z0-9]/, 33],
];

/** How strong a password is: at most so many bits, and what to call that. */
export interface Strength {
  readonly bits: number;
  readonly level: "weak" | "fair" | "strong";
}

/** How strong a password is that a person has chosen. */
export function strength(password: string): Strength {
  const bits = bitsOf(password);
  return { bits, level: bits < WEAK ? "weak" : bits < FAIR ? "fair" : "strong" };
}

/** At most so many bits: of the cheaper way to guess it, by its words or by its characters. */
function bitsOf(password: string): number {
  const alphabet = CLASSES.reduce((sum, [pattern, size]) => sum + (pattern.test(password) ? size : 0), 0);
  const byCharacters = withoutRuns(password) * Math.log2(Math.max(2, alphabet));
  const words = folded(password)
    .split(/[^\p{L}\p{Nl}\p{No}]+/u)
    .filter(Boolean);
  if (!words.length || [...password].slice(1).some((sign) => /\p{Lu}/u.test(sign))) return byCharacters;
  const rest = [...password.replace(/[\p{L}\p{Nl}\p{No}]/gu, "")].length * Math.log2(10);
  const byWords = [...new Set(words)].reduce(
    (sum, word) => sum + (COMMON.has(word) ? 3 : Math.min(WORD, [...word].length * Math.log2(26))),
    0,
  );
  return Math.min(byCharacters, byWords + (words.length > 1 ? Math.log2(10) : rest));
}

/** How many characters count: repeated ones, and those that follow on each other (abc, 321), count once. */
function withoutRuns(password: string): number {
  const numbers = Array.from(password, (sign) => sign.codePointAt(0) ?? 0);
  return numbers.filter((number, at) => at === 0 || Math.abs(number - (numbers[at - 1] as number)) > 1).length;
}
