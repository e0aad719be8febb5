// What an account stores in one request: at registration, at a change of password, for recovery.
import { newDescriptor, newPassword, type PasswordKeys, passwordKeys, spelledAuth } from "./derive.js";
import type { Descriptor } from "./descriptor.js";
import { AGAIN, checkedText, equal, fromBase64, must, type Random } from "./encoding.js";
import type { Keyring } from "./keyring.js";
import * as keyringSlots from "./keyringSlots.js";
import type { PasskeyId } from "./passkey.js";
import type { PasskeySecret } from "./passkeySecret.js";
import { primitives } from "./primitives.js";
import { newRecoveryKey, openAuth, sealAuth } from "./recovery.js";
import type { Secret } from "./secret.js";

/** What a server is to store in one request, and the keys that go with it. */
export interface Prepared {
  readonly password: PasswordKeys;
  readonly descriptor: Descriptor;
  readonly ring: Keyring;
  readonly sealed: string;
}

const system: Random = (length) => primitives().random(length);

/** A new account: a fresh account key, sealed for the password. */
export async function register(email: string, password: string, random: Random = system): Promise<Prepared> {
  newPassword(password);
  const descriptor = await newDescriptor(random);
  const keys = await passwordKeys(email, password, descriptor);
  return prepared(await keyringSlots.firstKeyring(keys, descriptor, random), keys, descriptor, random);
}

/** Another password for the same account key. A recovery key goes on working, and the work is never made less. */
export function changePassword(
  ring: Keyring,
  email: string,
  password: string,
  old: Descriptor,
  random: Random = system,
): Promise<Prepared> {
  newPassword(password);
  return setPassword(ring, email, password, old, random);
}

/** The next keyring for the keys of a password that a server has stored already, with this descriptor. */
export const rewrap = async (
  ring: Keyring,
  keys: PasswordKeys,
  descriptor: Descriptor,
  random: Random = system,
): Promise<Prepared> =>
  prepared(await keyringSlots.withPassword(ring, keys, descriptor, random), keys, descriptor, random);

/** A new recovery key. The password is set anew with it: one that was there before must not log in any more. */
export async function setRecovery(
  ring: Keyring,
  email: string,
  password: string,
  old: Descriptor,
  random: Random = system,
): Promise<Prepared & { readonly recovery: Secret }> {
  const recovery = newRecoveryKey(random);
  const made = await setPassword(await keyringSlots.withRecovery(ring, recovery, random), email, password, old, random);
  requireSame(await keyringSlots.openWithRecovery(made.sealed, recovery), made);
  must(equal((await openAuth(recovery, email, made.descriptor)).reveal(), made.password.auth.reveal()), AGAIN);
  return { ...made, recovery };
}

/** No recovery key any more; the password is set anew, as for a new one. */
export const removeRecovery = (
  ring: Keyring,
  email: string,
  password: string,
  old: Descriptor,
  random: Random = system,
): Promise<Prepared> => setPassword(keyringSlots.withoutRecovery(ring), email, password, old, random);

/** A passkey that opens the account besides; the password stays. */
export async function addPasskey(
  ring: Keyring,
  keys: PasswordKeys,
  descriptor: Descriptor,
  secret: PasskeySecret,
  random: Random = system,
): Promise<Prepared> {
  const made = await prepared(await keyringSlots.withPasskey(ring, secret, random), keys, descriptor, random);
  requireSame(await keyringSlots.openWithPasskey(made.sealed, secret), made);
  return made;
}

/** A passkey opens the account no more; the password stays. */
export const removePasskey = (
  ring: Keyring,
  keys: PasswordKeys,
  descriptor: Descriptor,
  passkey: PasskeyId,
  random: Random = system,
): Promise<Prepared> => prepared(keyringSlots.withoutPasskey(ring, passkey), keys, descriptor, random);

/** New keys of the next generation for the account and every vault; the password stays. */
export const rotate = (
  ring: Keyring,
  keys: PasswordKeys,
  descriptor: Descriptor,
  random: Random = system,
): Promise<Prepared> => prepared(keyringSlots.rotated(ring, random), keys, descriptor, random);

/** New keys of the next generation, and another password, in one keyring. */
export function renew(
  ring: Keyring,
  email: string,
  password: string,
  old: Descriptor,
  random: Random = system,
): Promise<Prepared> {
  newPassword(password);
  return setPassword(keyringSlots.rotated(ring, random), email, password, old, random);
}

/** What to send as `password` when the password is lost; then open the keyring, and change the password. */
export const recoveryPassword = async (key: Secret, email: string, descriptor: Descriptor): Promise<string> =>
  spelledAuth(await openAuth(key, email, descriptor));

async function setPassword(
  ring: Keyring,
  email: string,
  password: string,
  old: Descriptor,
  random: Random,
): Promise<Prepared> {
  let descriptor = await newDescriptor(random, old);
  const keys = await passwordKeys(email, checkedText(password, "password"), descriptor);
  const { recovery } = ring.reveal().body;
  if (recovery !== null) descriptor = await sealAuth(fromBase64(recovery), email, descriptor, keys, random);
  return prepared(await keyringSlots.withPassword(ring, keys, descriptor, random), keys, descriptor, random);
}

/** The sealed keyring, once its password has opened it: a slot that was sealed wrongly would shut its owner out. */
async function prepared(
  changed: Keyring,
  password: PasswordKeys,
  descriptor: Descriptor,
  random: Random,
): Promise<Prepared> {
  const { sealed, ring } = await keyringSlots.sealWithSlots(changed, random, password);
  const made = { password, descriptor, ring, sealed };
  requireSame(await keyringSlots.openWithPassword(sealed, password, descriptor), made);
  return made;
}

function requireSame(opened: Keyring, { ring }: Prepared): void {
  must(equal(opened.reveal().key.reveal(), ring.reveal().key.reveal()) && equal(opened.digest, ring.digest), AGAIN);
}
