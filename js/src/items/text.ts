// Texts as the Python client treats them: both must find, refuse and print the same.

/** Characters that stand around a text and do not count: Unicode's white space, without the byte order mark. */
export const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const AROUND = new RegExp(`[${SPACE}]`);
const UNPRINTABLE = /[\p{C}\p{Z}]/u;

/** A text without the characters at its end that a pattern matches. A pattern with an end would look at each of them again and again. */
export function stripEnd(text: string, around: RegExp): string {
  let end = text.length;
  while (end > 0 && around.test(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
}

/** A text without the characters around it that a pattern matches: white space. */
export function strip(text: string, around = AROUND): string {
  let start = 0;
  while (start < text.length && around.test(text[start] as string)) start += 1;
  return stripEnd(text.slice(start), around);
}

/** A text in which capitals do not matter: those that differ by them only become the same. */
export const folded = (text: string): string =>
  Array.from(text, (sign) => (sign === "ı" ? sign : sign.toUpperCase().toLowerCase())).join("");

/** Whether every character can be shown. Of the spaces, only the plain one is. */
export const isPrintable = (text: string): boolean => !UNPRINTABLE.test(text.replaceAll(" ", ""));

/** The first characters of a text: code points, not units of UTF-16. */
export const first = (text: string, count: number): string =>
  text.length <= count
    ? text
    : Array.from(text.slice(0, 2 * count))
        .slice(0, count)
        .join("");

/** A text in quotation marks, for a sentence; what cannot be shown is escaped. */
export function quoted(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const known: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", [mark]: `\\${mark}` };
  return mark + Array.from(text, (sign) => known[sign] ?? (isPrintable(sign) ? sign : escaped(sign))).join("") + mark;
}

function escaped(sign: string): string {
  const number = sign.codePointAt(0) ?? 0;
  const [letter, length] = number < 0x100 ? ["x", 2] : number < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${number.toString(16).padStart(length, "0")}`;
}

/** A text in percent-encoding. Letters, digits, `-._~` and the characters of `safe` stand as they are. */
export const percentEncoded = (text: string, safe: string): string =>
  encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%[0-7][0-9A-F]/g, (spelled) => {
      const sign = String.fromCharCode(parseInt(spelled.slice(1), 16));
      return safe.includes(sign) ? sign : spelled;
    });

/** The text behind percent-encoding; what is not UTF-8 becomes a replacement character. */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (run) => {
    const raw = Uint8Array.from(run.match(/[0-9A-Fa-f]{2}/g) ?? [], (pair) => parseInt(pair, 16));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw);
  });
}

/** The texts before and after the first separator; all of it before, where there is none. */
export function partition(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}
