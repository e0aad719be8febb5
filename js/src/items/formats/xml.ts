// Reads XML strictly and without a document type: entities, and with them their bombs and files, cannot be defined.
//
// A page under Trusted Types cannot use the browser's own reader, and that one defines entities.
import type { Bytes } from "../../format/encoding.js";
import { FileRefused } from "../errors.js";
import { strip } from "../text.js";
import { decoded, type Json } from "./common.js";

const DEEPEST = 100;
const MOST_TAGS = 4_000_000;
const LESS_THAN = 60;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", apos: "'", quot: '"' };
const START =
  ":A-Z_a-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\u{10000}-\\u{effff}";
const NAME = new RegExp(`[${START}][${START}0-9.\\u00b7\\u0300-\\u036f\\u203f\\u2040-]*`, "uy");
const REFERENCE = new RegExp(`&(?:#(\\d+)|#x([0-9A-Fa-f]+)|([${START}][${START}0-9.\\u00b7-]*));`, "uy");
const ATTRIBUTE = /([^\s=/>]+)[ \t\n]*=[ \t\n]*("[^"<]*"|'[^'<]*')/y;
const DECLARATION =
  /^<\?xml[ \t\n]+version[ \t\n]*=[ \t\n]*["'][\w.:-]+["'](?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*["']([A-Za-z][A-Za-z0-9._-]*)["'])?(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*["'](?:yes|no)["'])?[ \t\n]*\?>/;
const FORBIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const SPACES = /[ \t\n]*/y;

/** An element: its attributes, its text, and the elements in it. */
export class Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly inner: Element[] = [];
  text = "";

  constructor(name: string, attributes: Readonly<Record<string, string>>) {
    this.name = name;
    this.attributes = attributes;
  }

  /** The first element at a path. */
  first(...path: readonly string[]): Element | undefined {
    return path.reduce<Element | undefined>((found, name) => found?.inner.find((one) => one.name === name), this);
  }

  /** The text of the first element at a path. */
  value(...path: readonly string[]): string {
    return this.first(...path)?.text ?? "";
  }

  /** The elements of a name. */
  all(name: string): Element[] {
    return this.inner.filter((one) => one.name === name);
  }

  /** An attribute; undefined where it has none. */
  attribute(name: string): string | undefined {
    return Object.hasOwn(this.attributes, name) ? this.attributes[name] : undefined;
  }

  /** The element as it came, for what has no place. */
  asJson(): Json {
    return {
      name: this.name,
      ...(Object.keys(this.attributes).length ? { attributes: this.attributes } : {}),
      ...(strip(this.text) ? { text: this.text } : {}),
      ...(this.inner.length ? { inner: this.inner.map((one) => one.asJson()) } : {}),
    };
  }
}

/** The element that holds the outermost element of a file. */
export function parseXml(data: Bytes): Element {
  let tags = 0;
  for (const byte of data) if (byte === LESS_THAN) tags += 1;
  if (tags > MOST_TAGS) throw new FileRefused("The file has too many elements.");
  return new Reading(textOf(data)).whole();
}

const notWhole = (line: number): FileRefused => new FileRefused(`The file is not whole XML: see line ${line}.`);
const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length;

/** The text of a file, in the encoding that it says, with line feeds only. */
function textOf(data: Bytes): string {
  const mark = (data[0] ?? 0) * 256 + (data[1] ?? 0);
  const isWide = mark === 0xfffe || mark === 0xfeff || data[0] === 0 || data[1] === 0;
  const wide = mark === 0xfffe || data[1] === 0 ? "utf-16le" : "utf-16be";
  const head = isWide ? "" : String.fromCharCode(...data.subarray(0, 200));
  const named =
    /^(?:\u00ef\u00bb\u00bf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)["']/.exec(head)?.[1]?.toLowerCase() ?? "utf-8";
  if (named === "iso-8859-1") return plain(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
  if (!["utf-8", "us-ascii", "utf-16"].includes(named))
    throw new FileRefused("The file has an encoding that no export of KeePass has.");
  if (!isWide) return plain(decoded(data)); // what is no UTF-8 becomes characters that are refused in their place
  try {
    return plain(new TextDecoder(wide, { fatal: true }).decode(data));
  } catch {
    throw notWhole(1);
  }
}

const plain = (text: string): string => (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text);

/** Reads one file from its beginning to its end. */
class Reading {
  readonly #text: string;
  readonly #end: number;
  readonly #root = new Element("", {});
  readonly #stack: Element[] = [this.#root];
  readonly #texts: string[][] = [[]];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    const forbidden = FORBIDDEN.exec(text);
    this.#end = forbidden ? forbidden.index : text.length;
  }

  whole(): Element {
    if (this.#text.startsWith("<?xml") && /^[ \t\n?]/.test(this.#text.slice(5, 6))) {
      const declared = DECLARATION.exec(this.#text);
      if (!declared) throw this.#fault(0);
      this.#at = declared[0].length;
    }
    while (this.#at < this.#text.length) {
      if (this.#text[this.#at] === "<") this.#markup();
      else this.#characters();
      if (this.#at > this.#end) throw this.#fault(this.#end);
    }
    if (this.#stack.length > 1 || !this.#root.inner.length) throw this.#fault(this.#text.length);
    return this.#root;
  }

  #fault(at: number): FileRefused {
    return notWhole(lineOf(this.#text, Math.min(at, this.#end)));
  }

  #characters(): void {
    const start = this.#at;
    const next = this.#text.indexOf("<", start);
    const end = next < 0 ? this.#text.length : next;
    const part = this.#text.slice(start, end);
    if (this.#stack.length === 1) {
      const bad = part.search(/[^ \t\n]/);
      if (bad >= 0) throw this.#fault(start + bad);
    } else {
      const bad = part.indexOf("]]>");
      if (bad >= 0) throw this.#fault(start + bad);
      this.#texts.at(-1)?.push(this.#expanded(part, start));
    }
    this.#at = end;
  }

  /** A text with what its references stand for. */
  #expanded(part: string, start: number): string {
    if (!part.includes("&")) return part;
    let found = "";
    let at = 0;
    for (;;) {
      const next = part.indexOf("&", at);
      if (next < 0) return found + part.slice(at);
      REFERENCE.lastIndex = next;
      const match = REFERENCE.exec(part);
      const sign = match && this.#referred(match);
      if (sign === undefined || !match) throw this.#fault(start + next);
      found += part.slice(at, next) + sign;
      at = REFERENCE.lastIndex;
    }
  }

  #referred([, decimal, hexadecimal, name]: RegExpExecArray): string | undefined {
    if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
    const number = decimal === undefined ? parseInt(hexadecimal ?? "", 16) : Number(decimal);
    const isGood = number <= 0x10ffff && !(number >= 0xd800 && number < 0xe000);
    const sign = isGood ? String.fromCodePoint(number) : "\0";
    return FORBIDDEN.test(sign) ? undefined : sign;
  }

  #markup(): void {
    const [text, start] = [this.#text, this.#at];
    if (text.startsWith("<!--", start)) {
      const end = text.indexOf("--", start + 4);
      if (end < 0) throw this.#fault(start);
      if (text[end + 2] !== ">") throw this.#fault(end + 2);
      this.#at = end + 3;
    } else if (text.startsWith("<![CDATA[", start)) {
      const end = text.indexOf("]]>", start);
      if (end < 0 || this.#stack.length === 1) throw this.#fault(start);
      this.#texts.at(-1)?.push(text.slice(start + 9, end));
      this.#at = end + 3;
    } else if (text.startsWith("<!DOCTYPE", start) && !this.#root.inner.length) {
      throw new FileRefused("The file has a document type or entities; no export of KeePass has.");
    } else if (text.startsWith("<?", start)) {
      NAME.lastIndex = start + 2;
      const name = NAME.exec(text)?.[0] ?? "";
      const end = text.indexOf("?>", start + 2);
      if (!name || name.toLowerCase() === "xml") throw this.#fault(start + 2);
      if (end < 0) throw this.#fault(start);
      if (end > NAME.lastIndex && !/[ \t\n]/.test(text[NAME.lastIndex] ?? "")) throw this.#fault(NAME.lastIndex);
      this.#at = end + 2;
    } else if (text.startsWith("</", start)) this.#close();
    else this.#open();
  }

  #close(): void {
    const start = this.#at;
    const name = this.#name(start + 2);
    this.#at = this.#afterSpaces(this.#at);
    if (this.#text[this.#at] !== ">") throw this.#fault(this.#at >= this.#text.length ? start : this.#at);
    if (this.#stack.length === 1 || this.#stack.at(-1)?.name !== name) throw this.#fault(start + 2);
    this.#at += 1;
    (this.#stack.pop() as Element).text = (this.#texts.pop() as string[]).join("");
  }

  #name(at: number): string {
    NAME.lastIndex = at;
    const name = NAME.exec(this.#text)?.[0];
    if (!name) throw this.#fault(at);
    this.#at = at + name.length;
    return name;
  }

  #open(): void {
    const [text, start] = [this.#text, this.#at];
    if (this.#stack.length === 1 && this.#root.inner.length) throw this.#fault(start);
    const name = this.#name(start + 1);
    const attributes = new Map<string, string>();
    for (;;) {
      SPACES.lastIndex = this.#at;
      const isApart = (SPACES.exec(text)?.[0] ?? "") !== "";
      this.#at = SPACES.lastIndex;
      const sign = text[this.#at];
      if (sign === undefined) throw this.#fault(start);
      if (sign === ">" || (sign === "/" && text[this.#at + 1] === ">")) {
        this.#at += sign === ">" ? 1 : 2;
        this.#begin(name, attributes, sign === "/");
        return;
      }
      if (!isApart) throw this.#fault(this.#at);
      const at = this.#at;
      const [spelled, value] = this.#attribute(start);
      if (attributes.has(spelled)) throw this.#fault(text.indexOf(">", at) < 0 ? start : at);
      attributes.set(spelled, value);
    }
  }

  #attribute(start: number): [string, string] {
    const at = this.#at;
    const name = this.#name(at);
    ATTRIBUTE.lastIndex = at;
    const match = ATTRIBUTE.exec(this.#text);
    if (!match || match[1] !== name)
      throw this.#fault(this.#text.indexOf(">", at) < 0 ? start : this.#faultAfterName());
    this.#at = ATTRIBUTE.lastIndex;
    const spelled = (match[2] as string).slice(1, -1);
    return [name, this.#expanded(spelled.replace(/[\t\n]/g, " "), at)];
  }

  /** Where an attribute goes wrong whose name was read: before its sign, before its value, or in it. */
  #faultAfterName(): number {
    const [text, sign] = [this.#text, this.#afterSpaces(this.#at)];
    if (text[sign] !== "=") return sign;
    const quote = this.#afterSpaces(sign + 1);
    return text[quote] === '"' || text[quote] === "'" ? Math.max(quote, text.indexOf("<", quote)) : quote;
  }

  #afterSpaces(at: number): number {
    SPACES.lastIndex = at;
    SPACES.exec(this.#text);
    return SPACES.lastIndex;
  }

  #begin(name: string, attributes: ReadonlyMap<string, string>, isEmpty: boolean): void {
    if (this.#stack.length > DEEPEST) throw new FileRefused("The file is nested too deeply.");
    const element = new Element(name, Object.fromEntries(attributes));
    this.#stack.at(-1)?.inner.push(element);
    if (isEmpty) return;
    this.#stack.push(element);
    this.#texts.push([]);
  }
}
