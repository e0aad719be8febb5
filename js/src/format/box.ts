// Committing authenticated encryption with a fresh key for each message:
// box = salt (32) ‖ commitment (32) ‖ ciphertext ‖ tag (16)
import { type Bytes, equal, items, join, KEY, must, TAG } from "./encoding.js";
import { type Key, primitives } from "./primitives.js";

/** How much longer a box is than what is in it. */
export const OVERHEAD = KEY + KEY + TAG;
const INFO = items("box");

async function fresh(key: Key, salt: Bytes): Promise<[Bytes, Bytes]> {
  const made = await primitives().hkdf(key, salt, INFO, 2 * KEY);
  return [made.slice(0, KEY), made.slice(KEY)];
}

/** Encrypt. The salt is 32 fresh random bytes. */
export async function sealBox(key: Key, salt: Bytes, plaintext: Bytes, associated: Bytes): Promise<Bytes> {
  const [once, commitment] = await fresh(key, salt);
  return join(salt, commitment, await primitives().encrypt(once, plaintext, associated));
}

/** Decrypt and verify; Tampered unless this key sealed it for this associated data. */
export async function openBox(key: Key, box: Bytes, associated: Bytes): Promise<Bytes> {
  const [once, commitment] = await fresh(key, box.slice(0, KEY));
  must(equal(commitment, box.subarray(KEY, 2 * KEY)));
  const plaintext = await primitives().decrypt(once, box.slice(2 * KEY), associated);
  must(plaintext !== null);
  return plaintext;
}
