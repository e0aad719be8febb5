// Texts of items as they are shown: cut where they are long, and with characters that hide or reorder others made visible.

/** Characters that reorder or hide others: controls, bidirectional marks, spaces of no width, tags. Joiners of letters stay. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN.source, "gu");
const LINE = 300;
const PLAIN = /^[!-~]+(?: [!-~]+)*$/; // what stands on one line as it is: most titles

/** The first characters of a text; half of a surrogate pair is not shown. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)}…`;
}

/** A text for one line: without line breaks and hidden characters, and of at most 300 characters. */
export const oneLine = (text: string, most = LINE): string =>
  text.length <= most && PLAIN.test(text)
    ? text
    : cut(
        text
          .slice(0, 4 * most)
          .replace(/[\s\u2028\u2029]+/g, " ")
          .replace(ALL_HIDDEN, "")
          .trim(),
        most,
      );

/** A part of a text: as it is, or a hidden character by its number. */
export interface Part {
  readonly text: string;
  readonly isHidden: boolean;
}

/** The parts of a text, hidden characters apart. */
export function partsOf(text: string): Part[] {
  if (!HIDDEN.test(text)) return [{ text, isHidden: false }];
  const found: Part[] = [];
  let from = 0;
  for (const { index, 0: sign } of text.matchAll(ALL_HIDDEN)) {
    if (index > from) found.push({ text: text.slice(from, index), isHidden: false });
    found.push({ text: `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`, isHidden: true });
    from = index + sign.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), isHidden: false });
  return found;
}

/** A text for searching: without accents, capitals and hidden characters. */
export function folded(text: string): string {
  if (/^[\x20-\x7e\n]*$/.test(text)) return text.toLowerCase();
  return text
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .replace(ALL_HIDDEN, "")
    .replace(/[\u200c\u200d]/g, "")
    .toLowerCase();
}

/** Bytes in a unit that people read. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [value, unit] = bytes < 1_000_000 ? [bytes / 1000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** A time in the form of this device. */
export const timeText = (milliseconds: number): string =>
  new Date(milliseconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
