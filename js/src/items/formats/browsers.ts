// Passwords of browsers, in CSV: Chrome and its relatives, Firefox, Safari.
import { FileRefused, InvalidTotp } from "../errors.js";
import { CONCEALED } from "../shapes.js";
import { partition } from "../text.js";
import { parseTotp } from "../totp.js";
import {
  checked,
  type FileData,
  type Found,
  type Json,
  Problem,
  put,
  type Reader,
  sourced,
  sourceId,
} from "./common.js";
import { parseCsv } from "./csv.js";

type Browser = "chrome" | "firefox" | "safari";
const NEEDED: Readonly<Record<Browser, readonly string[]>> = {
  chrome: ["name", "url", "username", "password"],
  firefox: ["url", "username", "password", "guid"],
  safari: ["title", "url", "username", "password"],
};
const TAKEN = [
  "name",
  "title",
  "note",
  "notes",
  "url",
  "username",
  "password",
  "otpauth",
  "guid",
  "timecreated",
  "timepasswordchanged",
];

/** Passwords of Chrome, Edge, Brave, Opera and Vivaldi. */
export const readChrome: Reader = (file) => checked(rows(file, "chrome"));
/** Passwords of Firefox. */
export const readFirefox: Reader = (file) => checked(rows(file, "firefox"));
/** Passwords of Safari, and of Apple's app Passwords. */
export const readSafari: Reader = (file) => checked(rows(file, "safari"));

async function* rows(file: FileData, browser: Browser): AsyncGenerator<Found> {
  for await (const [, row] of parseCsv(file)) {
    if (row instanceof Problem) {
      yield row;
      continue;
    }
    const values = new Map<string, string>();
    const rest: Json = {};
    for (const [name, value] of Object.entries(row)) {
      const small = name.toLowerCase();
      if (TAKEN.includes(small) && !values.has(small)) values.set(small, value);
      else if (value) put(rest, name, value);
    }
    const [missing] = NEEDED[browser].filter((name) => !values.has(name)).sort();
    if (missing !== undefined) {
      const name = (browser[0] as string).toUpperCase() + browser.slice(1);
      throw new FileRefused(`The file is not CSV of ${name}: it has no column '${missing}'.`);
    }
    yield itemOf((name) => values.get(name) ?? "", rest, browser);
  }
}

function itemOf(cell: (name: string) => string, rest: Json, browser: Browser): Found {
  /** The first of two that is not empty; the other is kept. */
  const firstOf = (name: string, other: string): string => {
    if (cell(name) && cell(other)) rest[other] = cell(other);
    return cell(name) || cell(other);
  };
  const whenOf = (name: string): number | undefined => {
    const found = secondsOf(cell(name));
    if (found === undefined && cell(name)) rest[name] = cell(name);
    return found;
  };
  const [url, username, given, notes] = [
    cell("url"),
    cell("username"),
    firstOf("name", "title"),
    firstOf("note", "notes"),
  ];
  const item: Json = {
    type: "login",
    title: given || hostOf(url),
    username,
    password: cell("password"),
    urls: url ? [url] : [],
    notes,
    creationAt: whenOf("timecreated"),
    modifiedAt: whenOf("timepasswordchanged"),
  };
  const code = cell("otpauth");
  if (code) {
    try {
      item.totp = parseTotp(code);
    } catch (fault) {
      if (!(fault instanceof InvalidTotp)) throw fault;
      item.fields = [{ label: "otpauth", value: code, type: CONCEALED }];
    }
  }
  return sourced(item, browser, cell("guid") || sourceId(given, url, username), rest);
}

/** The host in an address, in small letters; the address itself where it has none. */
function hostOf(url: string): string {
  const text = url.replace(/^[\0-\x20]+/, "").replace(/[\t\r\n]/g, "");
  const rest = /^(?:[A-Za-z][A-Za-z0-9+.-]*:)?\/\/([^/?#]*)/.exec(text)?.[1];
  if (rest === undefined) return url;
  if (rest.includes("[") !== rest.includes("]")) return url;
  const place = rest.slice(rest.lastIndexOf("@") + 1);
  const bracket = /^\[([^\]]*)\]/.exec(place);
  const host = bracket ? (bracket[1] as string) : partition(place, ":")[0];
  const [name, zone] = partition(host, "%");
  return name.toLowerCase() + (host.includes("%") ? `%${zone}` : "") || url;
}

/** A time of Firefox, in milliseconds, as seconds. */
const secondsOf = (text: string): number | undefined =>
  /^\d{1,15}$/.test(text) ? Math.floor(Number(text) / 1000) : undefined;
