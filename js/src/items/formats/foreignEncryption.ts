// Opens exports of other programs that are encrypted with a password. Nothing of ours is encrypted here.
//
// Bitwarden: the key is made by PBKDF2 or Argon2id and stretched by HKDF; AES-256-CBC with HMAC-SHA-256 over it.
import { type Bytes, join } from "../../format/encoding.js";
import { argon2 } from "../../lazyBasicImports.js";
import { fromBase64 } from "./bytes.js";
import { get } from "./common.js";

const [PBKDF2, ARGON2ID] = [0, 1];
const BLOCK = 16;
// What a file may ask for: more would let it hold up the machine.
const MOST_ITERATIONS = 10_000_000;
const MOST_PASSES = 20;
const MOST_MEMORY = 1_024; // MiB
const MOST_LANES = 16;

/** The file asks for a key derivation that is unknown, or that no export has. */
export class BadParameters extends Error {}

const encoder = new TextEncoder();
const hmacKey = (raw: Bytes): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);

/** Decrypts the texts of one file. */
export class Opener {
  readonly #key: CryptoKey;
  readonly #mac: CryptoKey;

  private constructor(key: CryptoKey, mac: CryptoKey) {
    this.#key = key;
    this.#mac = mac;
  }

  static async of(password: string, file: unknown): Promise<Opener> {
    const key = await hmacKey(await derived(encoder.encode(password), file));
    const expanded = async (use: string): Promise<Bytes> =>
      new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(`${use}\u0001`)));
    const opening = await crypto.subtle.importKey("raw", await expanded("enc"), "AES-CBC", false, ["decrypt"]);
    return new Opener(opening, await hmacKey(await expanded("mac")));
  }

  /** The plaintext; undefined where the text is of another kind, was changed, or has another password. */
  async open(text: unknown): Promise<Bytes | undefined> {
    if (typeof text !== "string" || !text.startsWith("2.")) return undefined;
    const parts = text.slice(2).split("|").map(fromBase64);
    const [iv, data, mac] = parts;
    if (parts.length !== 3 || !iv || !data || !mac) return undefined;
    if (!(await crypto.subtle.verify("HMAC", this.#mac, mac, join(iv, data)))) return undefined;
    if (iv.length !== BLOCK || !data.length || data.length % BLOCK) return undefined;
    try {
      return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-CBC", iv }, this.#key, data));
    } catch {
      return undefined;
    }
  }
}

async function derived(password: Bytes, file: unknown): Promise<Bytes> {
  const [salt, kind, iterations] = [get(file, "salt"), get(file, "kdfType"), get(file, "kdfIterations")];
  if (typeof salt !== "string" || !salt.isWellFormed()) throw new BadParameters();
  const salted = encoder.encode(salt);
  if (kind === PBKDF2) {
    const rounds = within(iterations, MOST_ITERATIONS);
    const key = await crypto.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
    return new Uint8Array(
      await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: salted, iterations: rounds }, key, 256),
    );
  }
  if (kind !== ARGON2ID) throw new BadParameters();
  const passes = within(iterations, MOST_PASSES);
  const [memory, lanes] = [
    within(get(file, "kdfMemory"), MOST_MEMORY),
    within(get(file, "kdfParallelism"), MOST_LANES),
  ];
  const { argon2id } = await argon2();
  return argon2id(
    password,
    new Uint8Array(await crypto.subtle.digest("SHA-256", salted)),
    memory * 1024,
    passes,
    lanes,
  );
}

function within(value: unknown, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > most) throw new BadParameters();
  return value;
}
