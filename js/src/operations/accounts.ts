// Operations on an account: register, log in, change the password, recover, delete.
import {
  InvalidCredentials, InvalidRefreshToken, Locked, MethodNotAllowed, NotFound, SecondFactorRequired, Tampered,
  Unauthorized, WeakParameters,
} from "../errors.js";
import * as account from "../format/account.js";
import { newPassword, type PasswordKeys, passwordKeys, spelledAuth } from "../format/derive.js";
import { DEFAULT, type Descriptor, normalEmail, reaches, spellDescriptor } from "../format/descriptor.js";
import { equal } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import { printRecoveryKey, readRecoveryKey } from "../format/recovery.js";
import { openWithPassword, openWithRecovery } from "../format/waysIn.js";
import type { SignedIn, User } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import { get as getKeyring } from "../net/requests/keyrings.js";
import type { Core } from "./core.js";
import * as credentials from "./credentials.js";
import { FactorSource, openSession, prove } from "./factors.js";
import * as keyrings from "./keyrings.js";

const NO_KEYS = "This server stores no keys. Either it is no strongroom server, or it is not to be trusted.";
const LESS_WORK =
  "The server asked for less work in the derivation of keys than this device has seen; the password was not used. If " +
  "the server was restored from a backup of before that was raised, call changePassword with restored: true.";
const PERHAPS_TYPED =
  "The email or the password is wrong. (If the operator of the server made this account, see `adoptAccount`.)";

/** Run what follows on a new session; whatever goes wrong, no key and no token stays. */
async function orLock<T>(core: Core, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (fault) {
    core.lock();
    throw fault;
  }
}

/** Register an account, and open its first session. */
export async function register(core: Core, email: string, password: string, invitation?: string): Promise<User> {
  const own = normalEmail(email);
  core.lock();
  const made = await account.register(own, password);
  const auth = spelledAuth(made.password.auth);
  const call = requests.register(own, auth, spellDescriptor(made.descriptor), made.sealed, core.deviceName, invitation);
  let opened: SignedIn | undefined = await core.session.sendOrDone(call);
  if (!opened) {
    try {
      // The answer to an earlier sending was lost: the account is ours if our password opens it.
      opened = await core.session.send(requests.login(own, auth, core.deviceName));
    } catch (refusal) {
      if (!(refusal instanceof InvalidCredentials)) throw refusal;
      opened = await core.session.send(call); // it is not: refused again, with the reason
    }
  }
  const user = core.begin(own, opened);
  return orLock(core, async () => {
    try {
      keyrings.requireStored(await core.session.send(getKeyring()), made.sealed, made.ring.version);
    } catch (refusal) {
      if (refusal instanceof NotFound || refusal instanceof MethodNotAllowed) throw new Tampered(NO_KEYS);
      throw refusal;
    }
    core.device.forgetAccount(own);
    await keyrings.use(core, own, made.ring, made.sealed, made.descriptor);
    return user;
  });
}

/** Log in: open a session, and unlock the keyring. */
export async function login(core: Core, email: string, password: string, source: FactorSource): Promise<User> {
  const own = normalEmail(email);
  core.lock();
  const descriptor = await credentials.getDescriptor(core, own);
  const keys = await passwordKeys(own, password, descriptor);
  let user: User;
  try {
    user = await openSession(core, own, spelledAuth(keys.auth), source);
  } catch (refusal) {
    if (!(refusal instanceof InvalidCredentials) || core.device.account(own)) throw refusal;
    throw new InvalidCredentials(PERHAPS_TYPED);
  }
  return orLock(core, async () => {
    await credentials.unlock(core, own, descriptor, (sealed) => openWithPassword(sealed, keys, descriptor));
    if (!reaches(descriptor, DEFAULT)) {
      // More work for whoever guesses, while the password is at hand; nobody is asked for another code for this.
      await setPassword(core, own, spelledAuth(keys.auth), password, new FactorSource()).catch((refusal: unknown) => {
        if (!(refusal instanceof SecondFactorRequired)) throw refusal;
      });
    }
    return user;
  });
}

/** Log in with the recovery key, and set a new password. */
export async function recover(
  core: Core, email: string, printed: string, password: string, source: FactorSource,
): Promise<User> {
  const own = normalEmail(email);
  newPassword(password);
  const key = await readRecoveryKey(printed);
  core.lock();
  const descriptor = await credentials.getDescriptor(core, own);
  const secret = await account.recoveryPassword(key, own, descriptor).catch((refusal: unknown) => {
    if (!(refusal instanceof Tampered)) throw refusal;
    throw new InvalidCredentials("This recovery key does not open this account, or not any more.");
  });
  const user = await openSession(core, own, secret, source);
  return orLock(core, async () => {
    await credentials.unlock(core, own, descriptor, (sealed) => openWithRecovery(sealed, key));
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
  core: Core, old: string, next: string, source: FactorSource, restored: boolean,
): Promise<void> {
  const { email, descriptor: known } = keyrings.unlocked(core);
  newPassword(next);
  const stored = await credentials.getDescriptor(core, email, false);
  const seen = core.device.account(email);
  if (seen && !restored && !reaches(stored, seen)) throw new WeakParameters(LESS_WORK);
  const descriptor = equal(stored.salt, known.salt) ? known : stored;
  const keys = await passwordKeys(email, old, descriptor);
  // Unlocked with another password than the one that the server knows, perhaps.
  if (!core.session.isOpen) await openSession(core, email, spelledAuth(keys.auth), source);
  await setPassword(core, email, spelledAuth(keys.auth), next, source, keys);
}

function setPassword(
  core: Core, email: string, secret: string, next: string, source: FactorSource, keys?: PasswordKeys,
): Promise<void> {
  const prepare = async (ring: Keyring, descriptor: Descriptor): Promise<account.Prepared> =>
    account.changePassword(await revealed(core, ring, keys), email, next, descriptor);
  return credentials.rewrap(core, secret, prepare, source);
}

/** The keyring with the bytes of its account key: one of a session that was resumed is opened with the password. */
const revealed = async (core: Core, ring: Keyring, keys?: PasswordKeys): Promise<Keyring> =>
  ring.isHeld && keys ? credentials.openWithPassword(core, keys) : ring;

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

/** Log out of this session, or of all; every key is forgotten, whatever the server responds. */
export async function logout(core: Core, everywhere: boolean): Promise<void> {
  const { saved } = core.session;
  try {
    await core.session.sendOrDone(requests.logout(everywhere));
  } catch (refusal) {
    const ended = [Unauthorized, InvalidRefreshToken, Locked].some((kind) => refusal instanceof kind);
    if (!ended) throw refusal;
  } finally {
    core.lock();
    await saved?.delete();
  }
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
