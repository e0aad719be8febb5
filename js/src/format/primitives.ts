// The primitives, and nothing built from them. A runtime without WebCrypto brings its own by `usePrimitives`.
import { Unsupported } from "../errors.js";
import { argon2 } from "../lazyBasicImports.js";
import type { Bytes } from "./encoding.js";

/** A key that is used and not shown: of WebCrypto, a `CryptoKey` that cannot be extracted. */
export type Key = object;

/** What the format is built from. All of it but Argon2id is in WebCrypto. */
export interface Primitives {
  /** Bytes of the system's cryptographic generator. */
  random(length: number): Bytes;
  /** SHA-256. */
  sha256(data: Bytes): Promise<Bytes>;
  /** A key for HKDF-SHA-256 or HMAC-SHA-256. */
  key(use: "HKDF" | "HMAC", raw: Bytes): Promise<Key>;
  /** HKDF-SHA-256, extract and expand. */
  hkdf(key: Key, salt: Bytes, info: Bytes, length: number): Promise<Bytes>;
  /** HMAC-SHA-256. */
  hmac(key: Key, data: Bytes): Promise<Bytes>;
  /** Whether this is the HMAC-SHA-256, found in constant time. */
  verify(key: Key, mac: Bytes, data: Bytes): Promise<boolean>;
  /** AES-256-GCM with a nonce of twelve zero bytes, under a key that is used once: ciphertext and tag. */
  encrypt(key: Bytes, plaintext: Bytes, associated: Bytes): Promise<Bytes>;
  /** The plaintext, or null if the tag does not fit. */
  decrypt(key: Bytes, ciphertext: Bytes, associated: Bytes): Promise<Bytes | null>;
  /** The X25519 shared secret, or null where it would be zero. */
  x25519(privateKey: Bytes, publicKey: Bytes): Promise<Bytes | null>;
  /** Argon2id, version 1.3, one lane, 32 bytes. `memory` is in KiB. */
  argon2id(password: Bytes, salt: Bytes, memory: number, passes: number): Promise<Bytes>;
}

/** The eight bytes of DER that stand before an X25519 private key in PKCS #8, and those that name the curve. */
const PKCS8 = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 110, 4, 34, 4, 32);
const gcm = (additionalData: Bytes) => ({ name: "AES-GCM", iv: new Uint8Array(12), additionalData });
const bytes = async (made: Promise<ArrayBuffer>): Promise<Bytes> => new Uint8Array(await made);
const isOperationError = (fault: unknown): boolean => fault instanceof Error && fault.name === "OperationError";

function subtle(): SubtleCrypto {
  const found = globalThis.crypto?.subtle as SubtleCrypto | undefined;
  if (!found)
    throw new Unsupported("There is no crypto.subtle here: browsers have it only on pages from HTTPS or localhost.");
  return found;
}

/** The value, or null where the operation was refused for what it was given. */
async function orNull(made: Promise<ArrayBuffer>): Promise<Bytes | null> {
  try {
    return await bytes(made);
  } catch (fault) {
    if (isOperationError(fault)) return null;
    throw fault;
  }
}

/** WebCrypto, and Argon2id in a worker. */
export const webCrypto: Primitives = {
  random: (length) => crypto.getRandomValues(new Uint8Array(length)),
  sha256: (data) => bytes(subtle().digest("SHA-256", data)),
  key: (use, raw) =>
    use === "HKDF"
      ? subtle().importKey("raw", raw, use, false, ["deriveBits"])
      : subtle().importKey("raw", raw, { name: use, hash: "SHA-256" }, false, ["sign", "verify"]),
  hkdf: (key, salt, info, length) =>
    bytes(subtle().deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key as CryptoKey, length * 8)),
  hmac: (key, data) => bytes(subtle().sign("HMAC", key as CryptoKey, data)),
  verify: (key, mac, data) => subtle().verify("HMAC", key as CryptoKey, mac, data),
  async encrypt(key, plaintext, associated) {
    const once = await subtle().importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    return bytes(subtle().encrypt(gcm(associated), once, plaintext));
  },
  async decrypt(key, ciphertext, associated) {
    const once = await subtle().importKey("raw", key, "AES-GCM", false, ["decrypt"]);
    return orNull(subtle().decrypt(gcm(associated), once, ciphertext));
  },
  async x25519(privateKey, publicKey) {
    const pkcs8 = new Uint8Array(48);
    pkcs8.set(PKCS8);
    pkcs8.set(privateKey, 16);
    const [own, other] = await Promise.all([
      subtle().importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]),
      subtle().importKey("raw", publicKey, "X25519", false, []),
    ]);
    const shared = await orNull(subtle().deriveBits({ name: "X25519", public: other }, own, 256));
    return shared?.some((byte) => byte !== 0) ? shared : null;
  },
  argon2id: async (...given) => (await argon2()).argon2id(...given),
};

let current: Primitives = webCrypto;

/** The primitives in use. */
export const primitives = (): Primitives => current;

/** Use other primitives than WebCrypto, from now on and everywhere: for a runtime that has none. */
export function usePrimitives(others: Primitives): void {
  current = others;
}
