// One-time codes (RFC 6238) from a secret in base32 or an `otpauth://` URI, and the codes of Steam.
import { Unsupported } from "../errors.js";
import { type Bytes, number } from "../format/encoding.js";
import { InvalidTotp } from "./errors.js";
import { partition, percentDecoded, percentEncoded, SPACE, strip } from "./text.js";
import type { OneTimeCode } from "./types.js";

const HASHES: Readonly<Record<string, string>> = {
  sha1: "SHA-1",
  sha256: "SHA-256",
  sha512: "SHA-512",
  steam: "SHA-1",
};
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** The characters of Steam's codes. */
const STEAM = "23456789BCDFGHJKMNPQRTVWXY";
const STEAM_LENGTH = 5;
const LONGEST_PERIOD = 86_400;
const LONGEST_TEXT = 10_000;
const MOST_PARAMETERS = 50;
const IGNORED = new RegExp(`[${SPACE}=-]`, "g");
const UNREADABLE = "The otpauth URI cannot be read.";

/** The members of one-time codes with those that are absent. */
const whole = ({
  secret = "",
  algorithm = "sha1",
  digits = 6,
  period = 30,
  issuer = "",
  username = "",
}: OneTimeCode) => ({ secret, algorithm, digits, period, issuer, username });

/** The code at `now`, in seconds since 1970. */
export async function totpCode(totp: OneTimeCode, now: number): Promise<string> {
  const [secret, hash] = checked(totp);
  const { algorithm, digits, period } = whole(totp);
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle)
    throw new Unsupported("There is no crypto.subtle here: browsers have it only on pages from HTTPS or localhost.");
  const key = await subtle.importKey("raw", secret, { name: "HMAC", hash }, false, ["sign"]);
  const mac = new Uint8Array(await subtle.sign("HMAC", key, number(Math.floor(Math.trunc(now) / period))));
  const at = (mac.at(-1) ?? 0) & 15;
  let left = new DataView(mac.buffer).getUint32(at) & 0x7fffffff;
  if (algorithm !== "steam") return String(left % 10 ** digits).padStart(digits, "0");
  let found = "";
  for (let count = 0; count < STEAM_LENGTH; count += 1, left = Math.floor(left / STEAM.length))
    found += STEAM[left % STEAM.length];
  return found;
}

/** For how many seconds the code of `now` is still the current one. */
export function secondsLeft(totp: OneTimeCode, now: number): number {
  checked(totp);
  const { period } = whole(totp);
  return period - (Math.trunc(now) % period);
}

/** What a text describes: an `otpauth://totp/…` URI, `steam://SECRET`, or a secret in base32. */
export function parseTotp(given: string): OneTimeCode {
  const text = strip(given);
  if (text.length > LONGEST_TEXT) throw new InvalidTotp();
  const [scheme, after] = partition(text, "://");
  let found: OneTimeCode;
  if (!text.includes("://")) found = { secret: spelled(text) };
  else if (scheme.toLowerCase() === "steam")
    found = { secret: spelled(after), algorithm: "steam", digits: STEAM_LENGTH };
  else if (scheme.toLowerCase() === "otpauth") found = fromUri(after);
  else throw new InvalidTotp();
  checked(found);
  return found;
}

/** The `otpauth://` URI, as apps read it from a QR code. */
export function totpUri(totp: OneTimeCode): string {
  checked(totp);
  const { secret, algorithm, digits, period, issuer, username } = whole(totp);
  const label = (issuer && `${percentEncoded(issuer, "")}:`) + percentEncoded(username, "@");
  const parameters: [string, string | number][] = [["secret", secret]];
  if (issuer) parameters.push(["issuer", issuer]);
  if (algorithm === "steam") parameters.push(["encoder", "steam"]);
  else if (algorithm !== "sha1") parameters.push(["algorithm", algorithm.toUpperCase()]);
  if (digits !== 6 && algorithm !== "steam") parameters.push(["digits", digits]);
  if (period !== 30) parameters.push(["period", period]);
  return `otpauth://totp/${label}?${parameters.map(([name, value]) => `${name}=${percentEncoded(String(value), "")}`).join("&")}`;
}

function fromUri(after: string): OneTimeCode {
  const [rest] = partition(after.replace(/[\t\r\n]/g, ""), "#");
  const [place, query] = partition(rest, "?");
  const [host, path] = partition(place, "/");
  const given = parametersOf(query);
  if (host.includes("[") !== host.includes("]")) throw new InvalidTotp(UNREADABLE);
  let [algorithm, digits] = [
    (given.get("algorithm") || "sha1").toLowerCase().replaceAll("-", ""),
    integer(given.get("digits") || "6"),
  ];
  const period = integer(given.get("period") || "30");
  if (host.toLowerCase() !== "totp")
    throw new InvalidTotp("Only otpauth URIs of the kind totp are supported: the codes of hotp follow on a counter.");
  const label = percentDecoded(path.replace(/^\/+/, ""));
  const [before, behind] = partition(label, ":");
  const [issuer, username] = label.includes(":") ? [before, behind] : ["", before];
  if ((given.get("encoder") ?? "").toLowerCase() === "steam") [algorithm, digits] = ["steam", STEAM_LENGTH];
  return {
    secret: spelled(given.get("secret") ?? ""),
    algorithm,
    digits,
    period,
    issuer: given.get("issuer") || strip(issuer),
    username: strip(username),
  };
}

function parametersOf(query: string): Map<string, string> {
  const parts = query.split("&");
  if (parts.length > MOST_PARAMETERS) throw new InvalidTotp(UNREADABLE);
  return new Map(
    parts.filter(Boolean).map((part) => {
      const [name, value] = partition(part, "=");
      return [percentDecoded(name.replaceAll("+", " ")), percentDecoded(value.replaceAll("+", " "))];
    }),
  );
}

/** The integer that a text spells. */
export function integer(text: string): number {
  if (!/^[+-]?\d+(?:_\d+)*$/.test(strip(text))) throw new InvalidTotp(UNREADABLE);
  return Number(strip(text).replaceAll("_", ""));
}

/** A secret as it is stored: without spaces, hyphens and padding, in capitals. */
const spelled = (secret: string): string => secret.replace(IGNORED, "").toUpperCase();

/** The secret and the name of its hash; refused where no code can be made. */
function checked(totp: OneTimeCode): [Bytes, string] {
  const { secret, algorithm, digits, period } = whole(totp);
  const hash = Object.hasOwn(HASHES, algorithm) ? HASHES[algorithm] : undefined;
  if (hash === undefined) throw new InvalidTotp("The algorithm of one-time codes is sha1, sha256, sha512 or steam.");
  if (algorithm !== "steam" && !(digits >= 6 && digits <= 8))
    throw new InvalidTotp("One-time codes have 6 to 8 digits.");
  if (!(period >= 1 && period <= LONGEST_PERIOD))
    throw new InvalidTotp(`The period of one-time codes is 1 to ${LONGEST_PERIOD} seconds.`);
  const raw = fromBase32(spelled(secret));
  if (!raw?.length) throw new InvalidTotp("The secret of one-time codes is not base32.");
  return [raw, hash];
}

/** The bytes that base32 spells, without its padding; undefined where it is none. */
function fromBase32(text: string): Bytes | undefined {
  if ([1, 3, 6].includes(text.length % 8)) return undefined;
  const found: number[] = [];
  let [bits, held] = [0, 0];
  for (const sign of text) {
    const digit = BASE32.indexOf(sign);
    if (digit < 0) return undefined;
    held = ((held << 5) | digit) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    found.push((held >> bits) & 255);
  }
  return Uint8Array.from(found);
}
