// Notes in Markdown, as nodes of Preact: nothing in a note is ever read as HTML.
//
// Headings, paragraphs, lists, quotations, rules, code, emphasis and links. Pictures and HTML are shown as the text that
// they are. A link is one only if it begins with https://, http:// or mailto:, and says where it leads.
import type { ComponentChildren } from "preact";
import { ShownText } from "./fieldRow.js";

const MOST = 40_000; // characters; longer notes are shown as they are
const MOST_OF_A_LINE = 10_000; // characters; longer lines are shown as they are
const DEEPEST = 6; // quotations and emphasis in each other
const LINK = /^(?:https?:\/\/|mailto:)[^\s\u0000-\u0020<>"]+$/i;

/** Whether a note is short enough to be shown as Markdown. */
export const isShownAsMarkdown = (text: string): boolean => text.length <= MOST;

/** The address of a link, if it may be one. */
export function safeAddress(text: string): string | undefined {
  if (text.length > 4096 || !LINK.test(text)) return undefined;
  try {
    const { protocol, href } = new URL(text);
    return ["https:", "http:", "mailto:"].includes(protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}

/** A link to another page: it learns nothing of this one. */
export function OuterLink({ address, children }: { address: string; children: ComponentChildren }) {
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" title={address.slice(0, 300)}>
      {children}
    </a>
  );
}

/** A note. */
export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0)}</div>;
}

// Every expression here takes a time that grows no faster than the line: an item may come from somebody else.
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/s;
const RULE = /^ {0,3}(?:\*[ \t]*){3,}$|^ {0,3}(?:-[ \t]*){3,}$|^ {0,3}(?:_[ \t]*){3,}$/;
const QUOTE = /^ {0,3}> ?/;
const BULLET = /^( {0,3})(?:[-*+]|(\d{1,9})[.)])[ \t]+/;

/** Lines as blocks. */
function blocks(lines: readonly string[], depth: number): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  let at = 0;
  const takeWhile = (isWanted: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && isWanted(lines[at] as string)) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] as string;
    const [, fence] = FENCE.exec(line) ?? [];
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (fence !== undefined) {
      at += 1;
      const inside = takeWhile(
        (one) => !(one.trimStart().startsWith(fence) && !one.trim().replaceAll(fence[0] as string, "")),
      );
      at += 1;
      found.push(
        <pre>
          <code>
            <ShownText text={inside.join("\n")} />
          </code>
        </pre>,
      );
    } else if (heading) {
      at += 1;
      const level = Math.min(6, (heading[1]?.length ?? 1) + 2); // below the headings of the page
      const Head = `h${level}` as "h3";
      found.push(<Head>{spans(headingText(heading[2] ?? ""), 0)}</Head>);
    } else if (RULE.test(line)) {
      at += 1;
      found.push(<hr />);
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      const inside = takeWhile((one) => QUOTE.test(one));
      found.push(
        <blockquote>
          {blocks(
            inside.map((one) => one.replace(QUOTE, "")),
            depth + 1,
          )}
        </blockquote>,
      );
    } else if (BULLET.test(line) && depth < DEEPEST) {
      const isNumbered = BULLET.exec(line)?.[2] !== undefined;
      const inside = takeWhile((one) => isListLine(one, isNumbered));
      found.push(list(inside, isNumbered, depth));
    } else {
      at += 1;
      const rest = takeWhile((one) => Boolean(one.trim()) && !startsBlock(one));
      found.push(<p>{withBreaks([line, ...rest])}</p>);
    }
  }
  return found;
}

/** A heading without the signs that may close it. */
const headingText = (text: string): string => withoutEnd(text.trimEnd(), "#").trimEnd();

/** A text without those of some characters that end it. */
function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
}

const startsBlock = (line: string): boolean => [FENCE, HEADING, RULE, QUOTE, BULLET].some((start) => start.test(line));

function isListLine(line: string, isNumbered: boolean): boolean {
  const bullet = BULLET.exec(line);
  if (bullet) return (bullet[2] !== undefined) === isNumbered && !RULE.test(line);
  return /^(?: {2,}|\t)\S/.test(line);
}

/** The entries of a list; lines that are indented belong to the entry above. */
function list(lines: readonly string[], isNumbered: boolean, depth: number): ComponentChildren {
  const entries: string[][] = [];
  for (const line of lines) {
    if (BULLET.test(line)) entries.push([line.replace(BULLET, "")]);
    else entries.at(-1)?.push(line.replace(/^(?: {1,4}|\t)/, ""));
  }
  const inner = entries.map((entry, at) => (
    <li key={at}>{entry.length === 1 ? spans(entry[0] ?? "", 0) : blocks(entry, depth + 1)}</li>
  ));
  const first = Number(BULLET.exec(lines[0] ?? "")?.[2] ?? 1);
  return isNumbered ? <ol start={first}>{inner}</ol> : <ul>{inner}</ul>;
}

/** Lines of a paragraph: a line break is one. */
function withBreaks(lines: readonly string[]): ComponentChildren[] {
  return lines.flatMap((line, at) => (at ? [<br key={at} />, ...spans(line, 0)] : spans(line, 0)));
}

const SPANS = new RegExp(
  [
    String.raw`\\([!-/:-@[-\`{-~])`, // an escaped character
    String.raw`(?<!\`)(\`{1,10})([^\`]{1,500})\2(?!\`)`, // code
    String.raw`(?<!!)\[([^[\]\n]{1,300})\]\(([^()\s]{1,2000})\)`, // a link
    String.raw`<((?:https?://|mailto:)[^\s<>]{1,2000})>`, // an address in brackets
    String.raw`(https?://[^\s<>"'\`]{1,2000})`, // an address
    String.raw`(\*\*|__)(?=\S)(.{0,500}?\S)\8`, // strong
    String.raw`(?<![\w*])([*_])(?=\S)([^*_]{0,500}?\S)\10(?![\w*])`, // emphasis
    String.raw`~~(?=\S)(.{0,500}?\S)~~`, // struck out
  ].join("|"),
  "g",
);

/** A line as texts, code, emphasis and links. */
function spans(line: string, depth: number): ComponentChildren[] {
  if (depth > DEEPEST || line.length > MOST_OF_A_LINE) return [<ShownText key="line" text={line} />];
  const found: ComponentChildren[] = [];
  let from = 0;
  for (const match of line.matchAll(SPANS)) {
    const [whole, escaped, , code, label, address, bracketed, bare, , strong, , emphasis, struck] = match;
    if (match.index > from) found.push(<ShownText text={line.slice(from, match.index)} />);
    from = match.index + whole.length;
    if (escaped !== undefined) found.push(escaped);
    else if (code !== undefined)
      found.push(
        <code>
          <ShownText text={code} />
        </code>,
      );
    else if (label !== undefined) found.push(linked(address ?? "", whole, spans(label, depth + 1), label));
    else if (bracketed !== undefined) found.push(linked(bracketed, whole));
    else if (bare !== undefined) {
      const trimmed = withoutEnd(bare, ".,;:!?)]");
      found.push(linked(trimmed, trimmed), bare.slice(trimmed.length));
    } else if (strong !== undefined) found.push(<strong>{spans(strong, depth + 1)}</strong>);
    else if (emphasis !== undefined) found.push(<em>{spans(emphasis, depth + 1)}</em>);
    else if (struck !== undefined) found.push(<del>{spans(struck, depth + 1)}</del>);
  }
  if (from < line.length) found.push(<ShownText text={line.slice(from)} />);
  return found;
}

/** A link, or the text as it stands where it may not be one. Where its label is not the address, the host is said too. */
function linked(target: string, whole: string, children?: ComponentChildren, label?: string): ComponentChildren {
  const address = safeAddress(target);
  if (address === undefined) return <ShownText text={whole} />;
  const host = label === undefined || label === target ? "" : hostOf(address);
  return (
    <>
      <OuterLink address={address}>{children ?? <ShownText text={target} />}</OuterLink>
      {host && <span class="linkHost"> ({host})</span>}
    </>
  );
}

const hostOf = (address: string): string => new URL(address).host || address.replace(/^mailto:/, "");
