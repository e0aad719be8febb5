// How strong a password is that a person has chosen: an upper bound, as the command line estimates it.

const WEAK = 45; // bits
const FAIR = 65;
const WORD = 11; // bits of a word that was drawn from a list of some thousand
const COMMON = new Set(
  ("password passwort qwerty qwertz azerty letmein welcome admin iloveyou monkey dragon secret master strongroom football " +
    "baseball sunshine princess login abc test").split(" "),
);
const CLASSES: readonly (readonly [RegExp, number])[] = [[/[a-z]/, 26], [/[A-Z]/, 26], [/[0-9]/, 10], [/[^a-zA-Z0-9]/, 33]];

/** At most so many bits: of the cheaper way to guess it, by its words or by its characters. */
export function bits(password: string): number {
  const alphabet = CLASSES.reduce((sum, [pattern, size]) => sum + (pattern.test(password) ? size : 0), 0);
  const byCharacters = withoutRuns(password) * Math.log2(Math.max(2, alphabet));
  const words = password.toLowerCase().split(/[^\p{L}]+/u).filter(Boolean);
  if (!words.length || /\p{Lu}/u.test([...password].slice(1).join(""))) return byCharacters;
  const rest = [...password.replace(/\p{L}/gu, "")].length * Math.log2(10);
  let byWords = words.length > 1 ? Math.log2(10) : rest;
  for (const word of new Set(words)) byWords += COMMON.has(word) ? 3 : Math.min(WORD, [...word].length * Math.log2(26));
  return Math.min(byCharacters, byWords);
}

/** The number of characters; those that repeat or follow on the one before (abc, 321) count once. */
function withoutRuns(password: string): number {
  const points = [...password].map((char) => char.codePointAt(0) ?? 0);
  return points.filter((point, at) => at === 0 || Math.abs(point - (points[at - 1] ?? 0)) > 1).length;
}

/** How strong a password is. */
export type Strength = "weak" | "fair" | "strong";

/** The strength of so many bits. */
export const strengthOf = (found: number): Strength => (found < WEAK ? "weak" : found < FAIR ? "fair" : "strong");
