// The descriptor: how an account's keys are derived from its password. It is public, and the server hands it out.
import { Invalid, Unsupported, WeakParameters } from "../errors.js";
import {
  type Bytes,
  checkFormat,
  checkedText,
  FORMAT,
  fromBase64,
  hasControl,
  isObject,
  type Item,
  items,
  lengthOf,
  must,
  toBase64,
} from "./encoding.js";
import { primitives } from "./primitives.js";
import { DESCRIPTOR, readJson } from "./strictJson.js";

/** The least that a key derivation must cost: memory in KiB, and passes over it. */
export interface Floor {
  readonly memory: number;
  readonly passes: number;
}

/** What a reader takes at the least: a server cannot talk a client into less. */
export const FLOOR: Floor = { memory: 65_536, passes: 3 };
/** What a writer sets; a later edition of the format may raise it. */
export const DEFAULT: Floor = { memory: 65_536, passes: 3 };
const MOST_MEMORY = 1_048_576; // KiB
const MOST_PASSES = 16;
const MOST_WORK = 4_194_304; // memory in KiB times passes
/** Bytes of the salt. */
export const SALT = 16;
/** Bytes of the auth key, sealed to a public key. */
export const SEALED_AUTH = 144;
const UNREADABLE = "The server's key-derivation descriptor";
const KEYED =
  "This account needs a secret key beside its password, which this client does not know; update the client.";

/** How an account's master key is derived, and its auth key sealed for the recovery key. No secret is in it. */
export interface Descriptor extends Floor {
  readonly salt: Bytes;
  /** Without a recovery key, as many random bytes: it does not show which accounts have one. */
  readonly recovery: Bytes;
}

/** A descriptor in JSON. */
export interface SpelledDescriptor {
  readonly format: number;
  readonly kdf: string;
  readonly memory: number;
  readonly passes: number;
  readonly lanes: number;
  readonly secretKey: boolean;
  readonly salt: string;
  readonly recovery: string;
}

/**
 * A descriptor as the server gives it, as text or as plain data; refused where it is not format 2 or outside the limits.
 *
 * `floor` is what this device has seen of this account: neither figure may fall below it.
 */
export function readDescriptor(given: unknown, floor: Floor = FLOOR): Descriptor {
  const cannot = `${UNREADABLE} cannot be read.`;
  const spelled = typeof given === "string" ? readJson(given, cannot, DESCRIPTOR) : given;
  must(isObject(spelled), cannot);
  const { format, kdf, memory, passes, lanes, secretKey } = spelled;
  const unknown = `${UNREADABLE} has a format that this client does not know.`;
  if (Number.isInteger(format)) checkFormat(format as number, unknown); // the other members may be others in another one
  if (secretKey === true) throw new Unsupported(KEYED); // which may add members too
  must([format, memory, passes, lanes].every(Number.isInteger) && secretKey === false, cannot);
  must(kdf === "argon2id", unknown);
  const made = {
    salt: fromBase64(spelled.salt),
    recovery: fromBase64(spelled.recovery),
    memory: memory as number,
    passes: passes as number,
  };
  must(
    made.salt.length === SALT && made.recovery.length === SEALED_AUTH,
    `${UNREADABLE} has fields of the wrong length.`,
  );
  checkWork(made, floor);
  if (lanes !== 1) throw new WeakParameters();
  return made;
}

/** Whether neither figure is below a floor. */
export const reaches = (work: Floor, floor: Floor): boolean =>
  work.memory >= floor.memory && work.passes >= floor.passes;

/** Refuse figures below the floor or above the ceiling. */
export function checkWork(work: Floor, floor: Floor = FLOOR): void {
  if (!reaches(work, FLOOR) || !reaches(work, floor)) throw new WeakParameters();
  if (work.memory > MOST_MEMORY || work.passes > MOST_PASSES || work.memory * work.passes > MOST_WORK)
    throw new WeakParameters("The server asked for more work than any account needs; the password was not used.");
}

/** A descriptor as plain data for JSON. */
export const spellDescriptor = ({ memory, passes, salt, recovery }: Descriptor): SpelledDescriptor => ({
  format: FORMAT,
  kdf: "argon2id",
  memory,
  passes,
  lanes: 1,
  secretKey: false,
  salt: toBase64(salt),
  recovery: toBase64(recovery),
});

/** What associated data holds of a descriptor. */
export const bound = ({ memory, passes, salt }: Descriptor): readonly Item[] => [memory, passes, salt];

/** The spelling of an email that counts: trimmed, and A to Z in lower case. */
export function normalEmail(email: unknown): string {
  const normal = checkedText(email, "email")
    .replace(/^[\t-\r ]+|[\t-\r ]+$/g, "")
    .replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const [before, after, ...more] = normal.split("@");
  const length = lengthOf(normal);
  if (
    !before ||
    !after ||
    more.length ||
    length > 254 ||
    hasControl(normal) ||
    /^\p{White_Space}|\p{White_Space}$/u.test(normal)
  )
    throw new Invalid({ email: "must be an email address of 3 to 254 characters with one @" });
  return normal;
}

/** The salt of the slow step. The email is part of it: a server that gives everybody one salt gains nothing. */
export const kdfSalt = async (email: string, descriptor: Descriptor): Promise<Bytes> =>
  (await primitives().sha256(items("salt", normalEmail(email), descriptor.salt))).slice(0, SALT);
