// Key derivation from a password. The server gets one of two independent keys: neither password nor the other.
//
// master   = Argon2id(NFC of the password, 16 bytes of SHA-256 of email and salt, memory, passes, one lane)
// auth key = HKDF(master, "auth")     sent as `password`, in base64url
// wrap key = HKDF(master, "wrap")     never leaves the device
import { Invalid } from "../errors.js";
import { checkWork, DEFAULT, type Descriptor, type Floor, kdfSalt, SALT, SEALED_AUTH } from "./descriptor.js";
import { type Bytes, checkedText, lengthOf, type Random, text, toUrl } from "./encoding.js";
import { derive } from "./keys.js";
import { primitives } from "./primitives.js";
import { filler } from "./publicBox.js";
import { Secret } from "./secret.js";

/** What follows from a password. */
export interface PasswordKeys {
  readonly auth: Secret;
  readonly wrap: Secret;
}

/** A fresh descriptor, without a recovery key; never with less work than `least`. */
export async function newDescriptor(random: Random = primitives().random, least: Floor = DEFAULT): Promise<Descriptor> {
  const salt = random(SALT);
  const made = {
    salt,
    recovery: await filler(SEALED_AUTH, random),
    memory: Math.max(least.memory, DEFAULT.memory),
    passes: Math.max(least.passes, DEFAULT.passes),
  };
  checkWork(made);
  return made;
}

/** An auth key as the server is sent it, as `password`. */
export const spelledAuth = (auth: Secret): string => toUrl(auth.reveal());

/** A password's bytes: composed characters (NFC), in UTF-8, so that every keyboard makes the same. */
function normalPassword(password: unknown): Bytes {
  const typed = checkedText(password, "password");
  if (!typed || lengthOf(typed) > 1024) throw new Invalid({ password: "must be 1 to 1024 characters" });
  return text(typed.normalize("NFC"));
}

/** The bytes of a password that is to be set; an old one is only checked by being right. */
export function newPassword(password: unknown): Bytes {
  if (lengthOf(checkedText(password, "password").normalize("NFC")) < 8)
    throw new Invalid({ password: "must be 8 to 1024 characters" });
  return normalPassword(password);
}

/** The slow step: some hundred milliseconds of work, in a worker. `salt` is `kdfSalt` of the email. */
export async function masterKey(salt: Bytes, password: string, descriptor: Descriptor): Promise<Secret> {
  checkWork(descriptor);
  return new Secret(await primitives().argon2id(normalPassword(password), salt, descriptor.memory, descriptor.passes));
}

/** The two keys that follow from a master key. */
export async function splitMaster(master: Secret): Promise<PasswordKeys> {
  const key = await master.key();
  const [auth, wrap] = await Promise.all([derive(key, "auth"), derive(key, "wrap")]);
  return { auth: new Secret(auth), wrap: new Secret(wrap) };
}

/** The keys that follow from a password. */
export const passwordKeys = async (email: string, password: string, descriptor: Descriptor): Promise<PasswordKeys> =>
  splitMaster(await masterKey(await kdfSalt(email, descriptor), password, descriptor));
