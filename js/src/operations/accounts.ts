// Changes of an account: its password, its recovery key, its end.
import { InvalidCredentials, Tampered, WeakParameters } from "../errors.js";
import * as account from "../format/account.js";
import { newPassword, type PasswordKeys, passwordKeys, spelledAuth } from "../format/derive.js";
import { type Descriptor, normalEmail, reaches } from "../format/descriptor.js";
import { equal } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import { openWithRecovery } from "../format/keyringSlots.js";
import { printRecoveryKey, readRecoveryKey } from "../format/recovery.js";
import type { User } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import type { Core } from "./core.js";
import * as credentials from "./credentials.js";
import { type FactorSource, openSession, prove } from "./factors.js";
import * as keyrings from "./keyrings.js";
import { orLock, unlock } from "./login.js";

const LESS_WORK =
  "The server asked for less work in the derivation of keys than this device has seen; the password was not used. If " +
  "the server was restored from a backup of before that was raised, call changePassword with restored: true.";

/** Log in with the recovery key, and set a new password. */
export async function recover(
  core: Core,
  email: string,
  printed: string,
  password: string,
  source: FactorSource,
): Promise<User> {
  const own = normalEmail(email);
  newPassword(password);
  const key = await readRecoveryKey(printed);
  core.lock();
  const descriptor = await keyrings.getDescriptor(core, own);
  const secret = await account.recoveryPassword(key, own, descriptor).catch((refusal: unknown) => {
    if (!(refusal instanceof Tampered)) throw refusal;
    throw new InvalidCredentials("This recovery key does not open this account, or not any more.");
  });
  const user = await openSession(core, own, secret, source);
  return orLock(core, async () => {
    await unlock(core, own, descriptor, (sealed) => openWithRecovery(sealed, key));
    await setPassword(core, own, secret, password, source);
    return user;
  });
}

/**
 * Another password. Nothing but the keyring is encrypted anew; every other session of the account ends.
 *
 * `old` is the password that the server knows: after a restore from a backup, that may be an earlier one. `restored`: a
 * person says that this is the case, so that the work of before is not taken for an attack.
 */
export async function changePassword(
  core: Core,
  old: string,
  next: string,
  source: FactorSource,
  restored: boolean,
): Promise<void> {
  const { email, descriptor: known } = keyrings.unlocked(core);
  newPassword(next);
  const stored = await keyrings.getDescriptor(core, email, false);
  const seen = core.device.account(email);
  if (seen && !restored && !reaches(stored, seen)) throw new WeakParameters(LESS_WORK);
  const descriptor = equal(stored.salt, known.salt) ? known : stored;
  const keys = await passwordKeys(email, old, descriptor);
  // Unlocked with another password than the one that the server knows, perhaps.
  if (!core.session.isOpen) await openSession(core, email, spelledAuth(keys.auth), source);
  await setPassword(core, email, spelledAuth(keys.auth), next, source, keys);
}

/** Set another password, with a secret that the server takes. */
export function setPassword(
  core: Core,
  email: string,
  secret: string,
  next: string,
  source: FactorSource,
  keys?: PasswordKeys,
): Promise<void> {
  const prepare = async (ring: Keyring, descriptor: Descriptor): Promise<account.Prepared> =>
    account.changePassword(await revealed(core, ring, keys), email, next, descriptor);
  return credentials.rewrap(core, secret, prepare, source);
}

/** The keyring with the bytes of its account key: one of a session that was resumed is opened with the password. */
const revealed = async (core: Core, ring: Keyring, keys?: PasswordKeys): Promise<Keyring> =>
  ring.reveal().key.isHeld && keys ? credentials.openWithPassword(core, keys) : ring;

/** The keys of the password, if it opens the keyring of this device. */
async function ownPassword(core: Core, password: string): Promise<{ email: string; keys: PasswordKeys }> {
  const { email, descriptor } = keyrings.unlocked(core);
  const keys = await passwordKeys(email, password, descriptor);
  await credentials.openWithPassword(core, keys);
  return { email, keys };
}

/** A new recovery key, to be printed. One from before opens nothing any more. */
export async function setRecovery(core: Core, password: string, source: FactorSource): Promise<string> {
  const { email, keys } = await ownPassword(core, password);
  let printed = "";
  const prepare = async (ring: Keyring, old: Descriptor): Promise<account.Prepared> => {
    const made = await account.setRecovery(await revealed(core, ring, keys), email, password, old);
    printed = await printRecoveryKey(made.recovery);
    return made;
  };
  await credentials.rewrap(core, spelledAuth(keys.auth), prepare, source);
  return printed;
}

/** No recovery key any more. */
export async function removeRecovery(core: Core, password: string, source: FactorSource): Promise<void> {
  const { email, keys } = await ownPassword(core, password);
  const prepare = async (ring: Keyring, old: Descriptor): Promise<account.Prepared> =>
    account.removeRecovery(await revealed(core, ring, keys), email, password, old);
  await credentials.rewrap(core, spelledAuth(keys.auth), prepare, source);
}

/** Delete the account and everything in it. */
export async function deleteAccount(core: Core, password: string, source: FactorSource): Promise<void> {
  const { email, descriptor } = keyrings.unlocked(core);
  const keys = await passwordKeys(email, password, descriptor);
  await prove(core.session, source, (factor) =>
    core.session.sendOrDone(requests.deleteAccount(spelledAuth(keys.auth), factor)),
  );
  const { saved } = core.session;
  core.device.forgetAccount(email);
  core.lock();
  await saved?.delete();
}
