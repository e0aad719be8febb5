// Boxes that are sealed to a public key, for a secret that is not at hand:
// sealed = ephemeral public key (32) ‖ box under HKDF(X25519 of both, both public keys)
import { OVERHEAD as BOX, openBox, sealBox } from "./box.js";
import { AGAIN, type Bytes, equal, items, join, KEY, must, NONE, type Random } from "./encoding.js";
import { type Key, primitives } from "./primitives.js";
import { Secret } from "./secret.js";

/** How much longer a sealed box is than what is in it. */
export const OVERHEAD = KEY + BOX;
const KEY_PAIR = items("key-pair");
const SEALED_KEY = items("sealed-key");
const BASE = new Uint8Array(KEY);
BASE[0] = 9;

/** An X25519 key pair that follows from a secret. */
export interface KeyPair {
  readonly private: Secret;
  readonly public: Bytes;
}

/** The public key of a private key. */
async function publicOf(privateKey: Bytes): Promise<Bytes> {
  const made = await primitives().x25519(privateKey, BASE);
  must(made !== null);
  return made;
}

/** The key pair of a secret. */
export async function keyPair(secret: Secret): Promise<KeyPair> {
  const made = await primitives().hkdf(await secret.key(), NONE, KEY_PAIR, KEY);
  return { private: new Secret(made), public: await publicOf(made) };
}

async function boxKey(privateKey: Bytes, other: Bytes, point: Bytes, recipient: Bytes): Promise<Key> {
  const shared = await primitives().x25519(privateKey, other);
  must(shared !== null);
  const key = await primitives().hkdf(await primitives().key("HKDF", shared), join(point, recipient), SEALED_KEY, KEY);
  return primitives().key("HKDF", key);
}

/** A box that only the private key of this public key opens. */
export async function sealTo(recipient: Bytes, plaintext: Bytes, associated: Bytes, random: Random): Promise<Bytes> {
  const ephemeral = random(KEY);
  const point = await publicOf(ephemeral);
  const key = await boxKey(ephemeral, recipient, point, recipient);
  const made = await sealBox(key, random(KEY), plaintext, associated);
  must(equal(await openBox(key, made, associated), plaintext), AGAIN);
  return join(point, made);
}

/** What was sealed to this key pair for this associated data. */
export async function openSealed(pair: KeyPair, sealed: Bytes, associated: Bytes): Promise<Bytes> {
  must(sealed.length >= OVERHEAD);
  const point = sealed.slice(0, KEY);
  return openBox(await boxKey(pair.private.reveal(), point, point, pair.public), sealed.slice(KEY), associated);
}

/** Bytes that nobody can tell from a sealed box of this length: a point of the curve, then random ones. */
export const filler = async (length: number, random: Random): Promise<Bytes> =>
  join(await publicOf(random(KEY)), random(length - KEY));
