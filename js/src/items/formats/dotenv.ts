// Files of variables, `.env`: each variable becomes a secret.
import { strip } from "../text.js";
import { checked, type Found, Problem, type Reader, readText, sourced, sourceId } from "./common.js";

const NAME = "dotenv";
const VARIABLE = /[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*/y;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$", "`": "`" };
const BLANK = /^[ \t]*(?:#[^\n]*)?$/;

/** The variables of a file. Nothing is expanded: `$HOME` stays `$HOME`. */
export const read: Reader = async function* (file) {
  yield* checked(variables((await readText(file)).replaceAll("\r\n", "\n")));
};

const endOf = (text: string, at: number): number => {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
};

function* variables(text: string): Generator<Found> {
  let [at, number] = [0, 1];
  while (at < text.length) {
    const end = endOf(text, at);
    VARIABLE.lastIndex = at;
    const match = VARIABLE.exec(text);
    const name = match?.[1];
    if (name === undefined || VARIABLE.lastIndex > end) {
      if (!BLANK.test(text.slice(at, end))) yield new Problem(`Line ${number} is no variable.`);
      [at, number] = [end + 1, number + 1];
      continue;
    }
    const found = valueAt(text, VARIABLE.lastIndex, end);
    if (!found) {
      yield new Problem(`Line ${number} has a quotation mark without an end.`);
      [at, number] = [end + 1, number + 1];
      continue;
    }
    const [value, after] = found;
    const next = endOf(text, after);
    if (!BLANK.test(text.slice(after, next))) yield new Problem(`Line ${number} goes on after its value.`);
    // a name says little: every project has its DATABASE_URL
    else yield sourced({ type: "secret", title: name, value }, NAME, sourceId(name, value));
    number += text.slice(at, next).split("\n").length;
    at = next + 1;
  }
}

/** The value that begins here, and where it ends; undefined for a quotation that does not end. */
function valueAt(text: string, at: number, end: number): [string, number] | undefined {
  const quote = text[at];
  if (quote === "'") {
    const close = text.indexOf("'", at + 1);
    return close < 0 ? undefined : [text.slice(at + 1, close), close + 1];
  }
  if (quote === '"') {
    let close = at + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === "\\" ? 2 : 1;
    if (close >= text.length) return undefined;
    return [text.slice(at + 1, close).replace(/\\([^])/gu, (whole, sign: string) => ESCAPES[sign] ?? whole), close + 1];
  }
  return [strip(text.slice(at, end).split(/[ \t]#/)[0] ?? ""), end];
}
