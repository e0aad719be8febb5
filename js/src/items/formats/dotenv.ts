// Files of variables, `.env`: each variable becomes a secret.
import { strip } from "../text.js";
import {
  checked,
  fitsBesides,
  type Found,
  keptBesides,
  Problem,
  type Reader,
  readText,
  sourced,
  sourceId,
} from "./common.js";

const NAME = "dotenv";
const VARIABLE = /[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*/y;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$", "`": "`" };
const BLANK = /^[ \t]*(?:#([^\n]*))?$/;

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
  let comments: string[] = []; // before the next variable
  while (at < text.length) {
    const end = endOf(text, at);
    VARIABLE.lastIndex = at;
    const match = VARIABLE.exec(text);
    const name = match?.[1];
    if (name === undefined || VARIABLE.lastIndex > end) {
      const blank = BLANK.exec(text.slice(at, end));
      if (!blank) yield new Problem(`Line ${number} is no variable.`);
      else comments.push(strip(blank[1] ?? ""));
      [at, number] = [end + 1, number + 1];
      continue;
    }
    const found = valueAt(text, VARIABLE.lastIndex, end);
    if (!found) {
      yield new Problem(`Line ${number} has a quotation mark without an end.`);
      [at, number] = [end + 1, number + 1];
      continue;
    }
    const [value, after, beside] = found;
    const next = endOf(text, after);
    const blank = BLANK.exec(text.slice(after, next));
    if (!blank) yield new Problem(`Line ${number} goes on after its value.`);
    else {
      // a name says little: every project has its DATABASE_URL
      const item = sourced({ type: "secret", title: name, value }, NAME, sourceId(name, value));
      const said = [...comments, beside, strip(blank[1] ?? "")].filter(Boolean);
      comments = [];
      const kept = said.length && fitsBesides(said) ? keptBesides(item, { comments: said }) : undefined;
      if (said.length && !kept)
        yield new Problem(
          `The comments of the variable in line ${number} were left out: they, or it, fit into no document.`,
        );
      yield kept ?? item;
    }
    number += text.slice(at, next).split("\n").length;
    at = next + 1;
  }
  if (comments.some(Boolean))
    yield new Problem("The file ends with comments that belong to no variable; they were left out.");
}

/** The value that begins here, where it ends, and a comment in between; undefined for a quotation that does not end. */
function valueAt(text: string, at: number, end: number): [string, number, string] | undefined {
  const quote = text[at];
  if (quote === "'") {
    const close = text.indexOf("'", at + 1);
    return close < 0 ? undefined : [text.slice(at + 1, close), close + 1, ""];
  }
  if (quote === '"') {
    let close = at + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === "\\" ? 2 : 1;
    if (close >= text.length) return undefined;
    return [
      text.slice(at + 1, close).replace(/\\(.)/gsu, (whole, sign: string) => ESCAPES[sign] ?? whole),
      close + 1,
      "",
    ];
  }
  const line = text.slice(at, end);
  const comment = line.search(/[ \t]#/);
  return comment < 0 ? [strip(line), end, ""] : [strip(line.slice(0, comment)), end, strip(line.slice(comment + 2))];
}
