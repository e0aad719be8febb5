// CSV as RFC 4180 has it, strictly: what follows on a quotation is a comma or the end of the line.
import { FileRefused } from "../errors.js";
import { strip } from "../text.js";
import { type FileData, MOST_ITEM_BYTES, Problem, readText } from "./common.js";

const MOST_COLUMNS = 100;

/** A row: the number of its last line, and its cells by the names in the head. */
export type Row = readonly [number, Readonly<Record<string, string>> | Problem];

/**
 * The rows of a CSV file with a head.
 *
 * Where the head has all the names in `escaping`, in small letters, a backslash stands before quotation marks and
 * backslashes; else quotation marks are doubled.
 */
export async function* parseCsv(file: FileData, escaping: readonly string[] = []): AsyncGenerator<Row> {
  const text = await readText(file);
  if (text.includes("\0")) throw new FileRefused("The file is not CSV: it has null characters.");
  const rows = new Rows(text);
  const head = rows.next();
  if (head === "damaged") {
    yield [rows.line, damaged(rows.line)];
    return;
  }
  if (!head) throw new FileRefused("The file is empty.");
  if (head.length > MOST_COLUMNS) throw new FileRefused("The file has more than 100 columns.");
  const names = distinct(head.map((name) => strip(name)));
  const small = names.map((name) => name.toLowerCase());
  rows.isEscaping = escaping.length > 0 && escaping.every((name) => small.includes(name));
  for (;;) {
    const row = rows.next();
    if (!row) return;
    if (row === "damaged") {
      yield [rows.line, damaged(rows.line)];
      return;
    }
    if (!row.length) continue;
    if (row.length > names.length) yield [rows.line, new Problem(`Line ${rows.line} has more columns than the head.`)];
    else yield [rows.line, Object.fromEntries(names.map((name, at) => [name, row[at] ?? ""]))];
  }
}

/** The names of columns, with a number after one that occurs again: none hides another. */
function distinct(names: readonly string[]): string[] {
  const found = new Set<string>();
  for (const name of names) {
    let [number, one] = [1, name];
    while (found.has(one)) {
      number += 1;
      one = `${name} #${number}`;
    }
    found.add(one);
  }
  return [...found];
}

const damaged = (line: number): Problem => new Problem(`Line ${line} is not CSV; what follows was not read.`);

/** Reads row by row. */
class Rows {
  readonly #text: string;
  #at = 0;
  /** The number of the line that was read last. */
  line = 0;
  isEscaping = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** The cells of the next row; none for an empty line, undefined at the end. */
  next(): string[] | "damaged" | undefined {
    if (this.#at >= this.#text.length) return undefined;
    const cells: string[] = [];
    for (;;) {
      const cell = this.#cell();
      if (cell === "damaged") return cell;
      if (cell.isLast && !cells.length && !cell.text && !cell.isQuoted) return [];
      cells.push(cell.text);
      if (cell.isLast) return cells;
    }
  }

  #damagedHere(): "damaged" {
    this.line += 1;
    return "damaged";
  }

  #cell(): { text: string; isLast: boolean; isQuoted: boolean } | "damaged" {
    const text = this.#text;
    const isQuoted = text[this.#at] === '"';
    let found = "";
    let isInside = isQuoted;
    if (isQuoted) this.#at += 1;
    for (;;) {
      const stop = isInside ? /["\\\r\n]/g : /[,\\\r\n]/g;
      stop.lastIndex = this.#at;
      const end = stop.exec(text)?.index ?? text.length;
      found += text.slice(this.#at, end);
      this.#at = end;
      if (found.length > MOST_ITEM_BYTES) return this.#damagedHere();
      const sign = text[end];
      if (sign === undefined) {
        if (!/[\r\n]$/.test(text)) this.line += 1;
        if (isInside) return "damaged";
        return { text: found, isLast: true, isQuoted };
      }
      this.#at += 1;
      if (sign === "\\") {
        if (this.isEscaping) {
          const escaped = text[this.#at];
          if (escaped === undefined) return this.#damagedHere();
          if (escaped === "\n" || escaped === "\r") this.line += 1;
          this.#at += 1;
          found += escaped;
        } else found += sign;
      } else if (sign === ",") return { text: found, isLast: false, isQuoted };
      else if (sign === '"') {
        if (this.isEscaping) isInside = false;
        else if (text[this.#at] === '"') {
          found += '"';
          this.#at += 1;
        } else if (this.#at < text.length && !/[,\r\n]/.test(text[this.#at] as string)) {
          return this.#damagedHere();
        } else isInside = false;
      } else {
        const isPair = sign === "\r" && text[this.#at] === "\n";
        if (isPair) this.#at += 1;
        this.line += 1;
        if (!isInside) return { text: found, isLast: true, isQuoted };
        found += isPair ? "\r\n" : sign;
      }
    }
  }
}
