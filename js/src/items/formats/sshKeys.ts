// SSH keys between text and PKCS#8, which CXF wants.
import { type Bytes, join, number, readNumber, toBase64 } from "../../format/encoding.js";
import { SPACE, strip } from "../text.js";
import { b64url, fromB64url, fromBase64 } from "./bytes.js";

const PKCS8 = /^-----BEGIN PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/;
const PEM = /^-----BEGIN ((?:OPENSSH |RSA |EC )PRIVATE KEY)-----\s([A-Za-z0-9+/=\s]+)-----END \1-----\s*$/;
const LONGEST = 100_000;
const LONGEST_NAME = 100;
const MAGIC = "openssh-key-v1\0";
const [INTEGER, BITS, OCTETS, NULL, OID, SEQUENCE, FIRST, SECOND] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x30, 0xa0, 0xa1];
const RSA = Uint8Array.of(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1);
const EC = Uint8Array.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1);
const ED25519 = Uint8Array.of(0x2b, 0x65, 0x70);
/** The curves that SSH names: their identifiers, and how many bytes a private key has. */
const CURVES: readonly (readonly [string, Bytes, number])[] = [
  ["nistp256", Uint8Array.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7), 32],
  ["nistp384", Uint8Array.of(0x2b, 0x81, 4, 0, 34), 48],
  ["nistp521", Uint8Array.of(0x2b, 0x81, 4, 0, 35), 66],
];

/** A key of CXF as text in PEM form; undefined where it is none. */
export function pem(spelled: string): string | undefined {
  const data = fromB64url(spelled);
  if (!data?.length) return undefined;
  const lines = toBase64(data).match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** A private key in PEM form as CXF spells it; undefined for what cannot be converted, such as an encrypted key. */
export function pkcs8(text: string): string | undefined {
  const match = PKCS8.exec(text);
  if (match) {
    const data = fromBase64((match[1] as string).replace(/\s/g, ""));
    return data && b64url(data);
  }
  const other = text.length > LONGEST ? null : PEM.exec(text);
  const data = other && fromBase64((other[2] as string).replace(/\s/g, ""));
  if (!other || !data) return undefined;
  const made = { O: ofOpenSsh, R: wrappedRsa, E: ofSec1 }[(other[1] as string)[0] as "O" | "R" | "E"](data);
  return made && b64url(made);
}

/** The name of a key's algorithm, as SSH names it; empty where it cannot be told. */
export function algorithm(text: string, publicKey: string): string {
  const first = strip(publicKey).split(new RegExp(`[${SPACE}]+`))[0];
  if (first) return first;
  const spelled = pkcs8(text);
  const data = spelled && fromB64url(spelled);
  const [whole, ...more] = (data && elements(data)) || [];
  const [version, named, key] = (whole?.tag === SEQUENCE && !more.length && elements(whole.body)) || [];
  const [name, curve] = (named && elements(named.body)) || [];
  if (version?.tag !== INTEGER || !name || key?.tag !== OCTETS) return "";
  const [inner] = elements(key.body) ?? [];
  if (isSame(name.body, ED25519)) return inner?.tag === OCTETS && inner.body.length === 32 ? "ssh-ed25519" : "";
  if (inner?.tag !== SEQUENCE) return "";
  if (isSame(name.body, RSA)) return elements(inner.body)?.length === 9 ? "ssh-rsa" : "";
  const found =
    curve && isSame(name.body, EC) ? CURVES.find(([, identifier]) => isSame(curve.body, identifier)) : undefined;
  return found ? `ecdsa-sha2-${found[0]}` : "";
}

const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, at) => byte === other[at]);

// DER

interface Element {
  readonly tag: number;
  readonly body: Bytes;
}

/** The elements of DER, one after the other; undefined where it is none. */
function elements(data: Bytes): Element[] | undefined {
  const found: Element[] = [];
  for (let at = 0; at < data.length; ) {
    const [tag = 0, short = 0] = [data[at], data[at + 1]];
    const count = short < 128 ? 0 : short - 128;
    if (count > 4) return undefined;
    const length = count ? readNumber(data.subarray(at + 2, at + 2 + count)) : short;
    const start = at + 2 + count;
    at = start + length;
    if (at > data.length) return undefined;
    found.push({ tag, body: data.slice(start, at) });
  }
  return found;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Bytes {
  const body = join(...parts);
  const size =
    body.length < 128
      ? Uint8Array.of(body.length)
      : body.length < 256
        ? Uint8Array.of(0x81, body.length)
        : join(Uint8Array.of(0x82), number(body.length, 2));
  return join(Uint8Array.of(tag), size, body);
}

/** A number that is not negative. */
function integer(raw: Uint8Array): Bytes {
  const start = raw.findIndex((byte) => byte !== 0);
  const plain = start < 0 ? Uint8Array.of(0) : raw.subarray(start);
  return der(INTEGER, (plain[0] ?? 0) > 127 ? Uint8Array.of(0) : new Uint8Array(0), plain);
}

const ZERO = integer(Uint8Array.of(0));
const wrapped = (named: Bytes, key: Bytes): Bytes => der(SEQUENCE, ZERO, der(SEQUENCE, named), der(OCTETS, key));

function wrappedRsa(key: Bytes): Bytes | undefined {
  const [whole, ...more] = elements(key) ?? [];
  const inner = whole?.tag === SEQUENCE && !more.length ? elements(whole.body) : undefined;
  return inner?.length === 9 && inner.every(({ tag }) => tag === INTEGER)
    ? wrapped(join(der(OID, RSA), der(NULL)), key)
    : undefined;
}

function wrappedEc(curve: Bytes, key: Bytes, point: Bytes): Bytes | undefined {
  const [, , size] = CURVES.find(([, identifier]) => isSame(curve, identifier)) ?? [];
  const start = key.findIndex((byte) => byte !== 0);
  const plain = key.subarray(start);
  if (size === undefined || start < 0 || plain.length > size || point.length !== 2 * size + 1) return undefined;
  const padded = join(new Uint8Array(size - plain.length), plain);
  const inner = der(
    SEQUENCE,
    integer(Uint8Array.of(1)),
    der(OCTETS, padded),
    der(SECOND, der(BITS, Uint8Array.of(0), point)),
  );
  return wrapped(join(der(OID, EC), der(OID, curve)), inner);
}

function ofSec1(data: Bytes): Bytes | undefined {
  const [whole] = elements(data) ?? [];
  const [version, key, ...more] = (whole?.tag === SEQUENCE && elements(whole.body)) || [];
  const part = (tag: number): Element | undefined =>
    elements(more.find((one) => one.tag === tag)?.body ?? new Uint8Array(0))?.[0];
  const [curve, point] = [part(FIRST), part(SECOND)];
  if (
    version?.tag !== INTEGER ||
    key?.tag !== OCTETS ||
    curve?.tag !== OID ||
    point?.tag !== BITS ||
    point.body[0] !== 0
  )
    return undefined;
  return wrappedEc(curve.body, key.body, point.body.slice(1));
}

// OpenSSH

/** Reads texts with their length before them. */
class Parts {
  readonly #data: Bytes;
  #at: number;

  constructor(data: Bytes, at = 0) {
    this.#data = data;
    this.#at = at;
  }

  get left(): Bytes {
    return this.#data.slice(this.#at);
  }

  count(): number {
    this.#at += 4;
    return this.#at > this.#data.length ? NaN : readNumber(this.#data.subarray(this.#at - 4, this.#at));
  }

  next(): Bytes | undefined {
    const length = this.count();
    this.#at += length;
    return this.#at <= this.#data.length ? this.#data.slice(this.#at - length, this.#at) : undefined;
  }

  /** A name, or the beginning of what is none. */
  text(): string {
    return String.fromCharCode(...(this.next() ?? []).slice(0, LONGEST_NAME));
  }
}

function ofOpenSsh(data: Bytes): Bytes | undefined {
  if (!String.fromCharCode(...data.subarray(0, MAGIC.length)).startsWith(MAGIC)) return undefined;
  const head = new Parts(data, MAGIC.length);
  if (head.text() !== "none" || head.text() !== "none" || head.text() !== "" || head.count() !== 1) return undefined;
  head.next(); // the public key
  const body = head.next();
  if (!body || head.left.length) return undefined;
  const parts = new Parts(body);
  const [check, again] = [parts.count(), parts.count()];
  if (check !== again) return undefined;
  const kind = parts.text();
  const made =
    kind === "ssh-rsa"
      ? rsaOf(parts)
      : kind === "ssh-ed25519"
        ? ed25519Of(parts)
        : kind.startsWith("ecdsa-sha2-")
          ? ecOf(parts)
          : undefined;
  const comment = parts.next();
  return comment && parts.left.every((byte, at) => byte === at + 1) ? made : undefined;
}

function ed25519Of(parts: Parts): Bytes | undefined {
  const [point, both] = [parts.next(), parts.next()];
  if (point?.length !== 32 || both?.length !== 64 || !isSame(both.subarray(32), point)) return undefined;
  return wrapped(der(OID, ED25519), der(OCTETS, both.subarray(0, 32)));
}

function ecOf(parts: Parts): Bytes | undefined {
  const [name, point, key] = [parts.text(), parts.next(), parts.next()];
  const [, curve] = CURVES.find(([one]) => one === name) ?? [];
  return curve && point && key ? wrappedEc(curve, key, point) : undefined;
}

function rsaOf(parts: Parts): Bytes | undefined {
  const given = Array.from({ length: 6 }, () => parts.next());
  const [n, e, d, inverse, p, q] = given;
  if (!n || !e || !d || !inverse || !p || !q) return undefined;
  const rest = (prime: Bytes): Bytes => {
    const hex = (raw: Bytes): string => `0x0${Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    const digits = (BigInt(hex(d)) % (BigInt(hex(prime)) - 1n)).toString(16);
    return Uint8Array.from(digits.padStart(digits.length + (digits.length % 2), "0").match(/../g) ?? [], (pair) =>
      parseInt(pair, 16),
    );
  };
  if (readNumber(p) < 2 || readNumber(q) < 2) return undefined;
  return wrappedRsa(der(SEQUENCE, ZERO, ...[n, e, d, p, q, rest(p), rest(q), inverse].map(integer)));
}
