// The recovery key: 160 random bits that people can print, read out and type.
//
//     SR2-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX
//
// 36 signs of Crockford's alphabet: 160 bits, then the first 20 bits of a SHA-256 of them, so that a slip of the pen is
// noticed before anything is tried.
import { Invalid } from "../errors.js";
import type { PasswordKeys } from "./derive.js";
import { bound, type Descriptor, normalEmail } from "./descriptor.js";
import { type Bytes, checkFormat, checkedText, items, lengthOf, type Random } from "./encoding.js";
import { derive } from "./keys.js";
import { primitives } from "./primitives.js";
import { type KeyPair, keyPair, openSealed, sealTo } from "./publicBox.js";
import { Secret } from "./secret.js";

const SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH = 36;
const PREFIX = "SR2";
const IGNORED = /[\p{White_Space}-]/gu;

/** A fresh recovery key. */
export const newRecoveryKey = (random: Random = primitives().random): Secret => new Secret(random(20));

/** The secret whose key pair opens a slot of the keyring. */
export const recoveryWrap = async (key: Secret): Promise<Secret> =>
  new Secret(await derive(await key.key(), "recovery-wrap"));

/** The key pair that opens the auth key in the descriptor; the keyring holds its public key. */
export const recoveryAuth = async (key: Secret): Promise<KeyPair> =>
  keyPair(new Secret(await derive(await key.key(), "recovery-auth")));

/** The values of the signs that spell a recovery key: five bits each, the last four signs are its checksum. */
async function spell(secret: Bytes): Promise<number[]> {
  const check = await primitives().sha256(items("recovery-check", secret));
  const values: number[] = [];
  let [rest, bits] = [0, 0];
  for (const byte of [...secret, ...check.subarray(0, 3)]) {
    [rest, bits] = [(rest << 8) | byte, bits + 8];
    for (; bits >= 5; bits -= 5) values.push((rest >> (bits - 5)) & 31);
    rest &= 31;
  }
  return values.slice(0, LENGTH);
}

/** The secret that signs spell, by the value of each; null if the checksum does not fit. */
async function secretOf(values: readonly number[]): Promise<Bytes | null> {
  const secret = new Uint8Array(20);
  for (let bit = 0; bit < 160; bit += 1)
    if (((values[Math.floor(bit / 5)] ?? 0) >> (4 - (bit % 5))) & 1) secret[bit >> 3]! |= 128 >> (bit & 7);
  return (await spell(secret)).every((value, at) => value === values[at]) ? secret : null;
}

/** A recovery key as people print it. */
export async function printRecoveryKey(key: Secret): Promise<string> {
  const signs = (await spell(key.reveal())).map((value) => SIGNS[value]).join("");
  return [PREFIX, ...(signs.match(/.{4}/g) ?? [])].join("-");
}

/** From what a person typed: case, spaces and hyphens do not count, and O, I, L are read as 0, 1, 1. */
export async function readRecoveryKey(printed: unknown): Promise<Secret> {
  const typed = checkedText(printed, "recovery_key");
  const signs = typed.replace(IGNORED, "").replace(/[a-z]/g, (sign) => sign.toUpperCase());
  const other = /^SR([1-9])/.exec(signs);
  if (other) checkFormat(Number(other[1]));
  const values = [...signs.slice(PREFIX.length)].map((sign) =>
    SIGNS.indexOf(sign === "O" ? "0" : sign === "I" || sign === "L" ? "1" : sign),
  );
  if (!signs.startsWith(PREFIX) || values.length !== LENGTH || values.includes(-1))
    throw new Invalid({ recovery_key: fault(typed, signs.startsWith(PREFIX), values) });
  const secret = await secretOf(values);
  if (!secret) throw new Invalid({ recovery_key: await typo(values) });
  return new Secret(secret);
}

/** What is wrong with the form of what was typed, and in which group. It shows none of it. */
function fault(typed: string, hasPrefix: boolean, values: readonly number[]): string {
  if (!hasPrefix) return typed.startsWith("srv_") ? "is a token; use it with withToken" : `must begin with ${PREFIX}`;
  const bad = values.indexOf(-1);
  if (bad >= 0 && values.length === LENGTH)
    return `has a typo: sign ${(bad % 4) + 1} of group ${Math.floor(bad / 4) + 1} is in no recovery key`;
  const groups = typed
    .split(/[\p{White_Space}-]+/u)
    .filter(Boolean)
    .slice(1)
    .map(lengthOf);
  const wrong = groups.findIndex((length) => length !== 4);
  if (wrong >= 0 && groups.length === LENGTH / 4)
    return `has a typo: group ${wrong + 1} has ${groups[wrong]} signs instead of 4`;
  return `must be ${PREFIX} and nine groups of four letters or digits; it has ${values.length} instead of ${LENGTH}`;
}

/** Where the typo is, if one other sign, or two that changed places, make the checksum fit. */
async function typo(values: readonly number[]): Promise<string> {
  const likely = new Set<number>();
  for (let place = 0; place < LENGTH; place += 1) {
    const others = Array.from({ length: 32 }, (_, other) => values.with(place, other));
    if (place + 1 < LENGTH) others.push(values.with(place, values[place + 1]!).with(place + 1, values[place]!));
    const found = await Promise.all(others.map(secretOf));
    if (found.some((one) => one !== null)) likely.add(Math.floor(place / 4) + 1);
  }
  return likely.size === 1
    ? `has a typo, most likely in group ${[...likely][0]}; compare it with the print`
    : "has more than one typo, or was changed; compare all of it with the print";
}

const associated = (email: string, descriptor: Descriptor): Bytes =>
  items("sealed-auth", normalEmail(email), ...bound(descriptor));

/** The descriptor with the auth key sealed in it, for a login with the recovery key. */
export async function sealAuth(
  recovery: Bytes,
  email: string,
  descriptor: Descriptor,
  { auth }: PasswordKeys,
  random: Random,
): Promise<Descriptor> {
  return { ...descriptor, recovery: await sealTo(recovery, auth.reveal(), associated(email, descriptor), random) };
}

/** The auth key, for a login without the password. */
export const openAuth = async (key: Secret, email: string, descriptor: Descriptor): Promise<Secret> =>
  new Secret(await openSealed(await recoveryAuth(key), descriptor.recovery, associated(email, descriptor)));
