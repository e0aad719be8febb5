// Register, log in, log out: what every program does.
import {
  InvalidCredentials,
  InvalidRefreshToken,
  Locked,
  MethodNotAllowed,
  NotFound,
  SecondFactorRequired,
  Tampered,
  Unauthorized,
} from "../errors.js";
import * as account from "../format/account.js";
import { passwordKeys, spelledAuth } from "../format/derive.js";
import { DEFAULT, type Descriptor, normalEmail, reaches, spellDescriptor } from "../format/descriptor.js";
import { openWithPassword } from "../format/keyringSlots.js";
import type { SignedIn, User } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import { get as getKeyring } from "../net/requests/keyrings.js";
import type { Core } from "./core.js";
import type { Code } from "./factors.js";
import * as keyrings from "./keyrings.js";
import { passwords } from "../lazyImports.js";

const NO_KEYS = "This server stores no keys. Either it is no strongroom server, or it is not to be trusted.";
const PERHAPS_TYPED =
  "The email or the password is wrong. (If the operator of the server made this account, see `adoptAccount`.)";

/** Run what follows on a new session; whatever goes wrong, no key and no token stays. */
export async function orLock<T>(core: Core, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (fault) {
    core.lock();
    throw fault;
  }
}

/** Get the keyring, and open it with the password, the recovery key or a passkey. */
export async function unlock(core: Core, email: string, descriptor: Descriptor, open: keyrings.Open): Promise<void> {
  await keyrings.openStored(core, email, descriptor, await core.session.send(getKeyring()), open);
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
export async function login(core: Core, email: string, password: string, code?: Code): Promise<User> {
  const own = normalEmail(email);
  core.lock();
  const isKnown = core.device.account(own) !== undefined;
  const descriptor = await keyrings.getDescriptor(core, own);
  const keys = await passwordKeys(own, password, descriptor);
  let user: User;
  try {
    user = core.begin(own, await openSession(core, own, spelledAuth(keys.auth), code));
  } catch (refusal) {
    if (!(refusal instanceof InvalidCredentials) || isKnown) throw refusal;
    throw new InvalidCredentials(PERHAPS_TYPED);
  }
  return orLock(core, async () => {
    await unlock(core, own, descriptor, (sealed) => openWithPassword(sealed, keys, descriptor));
    if (isKnown && !reaches(descriptor, DEFAULT)) {
      // More work for whoever guesses, while the password is at hand; nobody is asked for another code for this. A device
      // that has not seen the account before cannot know whether the server was restored just now: a change of slots
      // would part it from the other devices.
      const { accounts, FactorSource } = await passwords();
      const source = new FactorSource();
      await accounts.setPassword(core, own, spelledAuth(keys.auth), password, source).catch((refusal: unknown) => {
        if (!(refusal instanceof SecondFactorRequired)) throw refusal;
      });
    }
    return user;
  });
}

/** Open a session; where the account has a second factor, with that. */
async function openSession(core: Core, email: string, auth: string, code?: Code): Promise<SignedIn> {
  try {
    return await core.session.send(requests.login(email, auth, core.deviceName));
  } catch (refusal) {
    if (!(refusal instanceof SecondFactorRequired)) throw refusal;
    const { finishLogin, FactorSource } = await passwords();
    return finishLogin(core.session, refusal, new FactorSource(code));
  }
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
