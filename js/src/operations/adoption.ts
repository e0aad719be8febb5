// Adoption: an account whose password the server knows becomes one that only its owner can open.
//
// An operator makes such an account with `strongroom users add`. It has no keyring, and its password is sent as typed.
import { AccountNotEmpty, Invalid, InvalidCredentials, KeyringNotFound, NotFound } from "../errors.js";
import { register } from "../format/account.js";
import { newPassword, spelledAuth } from "../format/derive.js";
import { normalEmail, spellDescriptor } from "../format/descriptor.js";
import { checkedText } from "../format/encoding.js";
import type { User } from "../net/decoders.js";
import { changePassword } from "../net/requests/accounts.js";
import { get as getKeyring } from "../net/requests/keyrings.js";
import { listAll } from "../net/requests/vaults.js";
import type { Core } from "./core.js";
import { FactorSource, openSession } from "./factors.js";
import { requireStored, use } from "./keyrings.js";
import { apiKeys, revokeKey } from "./sessionsAndKeys.js";

const WRONG =
  "The email or the password is wrong. If this account was adopted already, log in with the password that was set.";
const NOT_EMPTY =
  "Another program has stored vaults in this account, and could not log in any more after this. Nothing was changed. " +
  "Delete them with that program, or register another account.";

/**
 * Log in with the password as typed, and set a new one together with the first keyring, in one request.
 *
 * Nothing stays with those who knew the first password: other sessions end, and API keys are revoked.
 */
export async function adopt(core: Core, email: string, password: string, next: string): Promise<User> {
  const own = normalEmail(email);
  newPassword(next);
  if (next.normalize("NFC") === checkedText(password, "password").normalize("NFC"))
    throw new Invalid({ newPassword: "must be another one: the server knows this password" });
  if (core.device.account(own))
    // a password that only its owner knows must not be sent as typed
    throw new Invalid({ email: "is of an account that has keys; log in. The password was not sent" });
  core.lock();
  let user: User;
  try {
    user = await openSession(core, own, password, new FactorSource());
  } catch (refusal) {
    throw refusal instanceof InvalidCredentials ? new InvalidCredentials(WRONG) : refusal;
  }
  try {
    await requireUnused(core);
    await setFirstKeyring(core, own, password, next);
    await revokeAll(core);
  } catch (fault) {
    core.lock();
    throw fault;
  }
  return user;
}

/** Refuse an account that has a keyring, or data of another program. */
async function requireUnused(core: Core): Promise<void> {
  const found = await core.session.send(getKeyring()).catch((refusal: unknown) => {
    if (!(refusal instanceof KeyringNotFound)) throw refusal;
  });
  if (found) throw new Invalid({ email: "is of an account that has keys; log in" });
  if ((await core.session.send(listAll())).vaults.length) throw new AccountNotEmpty(NOT_EMPTY);
}

async function setFirstKeyring(core: Core, email: string, password: string, next: string): Promise<void> {
  const { password: keys, descriptor, sealed, ring } = await register(email, next);
  const kdf = spellDescriptor(descriptor);
  await core.session.sendOrDone(changePassword(password, spelledAuth(keys.auth), kdf, sealed, 0, ring.version));
  requireStored(await core.session.send(getKeyring()), sealed, ring.version);
  await use(core, email, ring, sealed, descriptor);
}

async function revokeAll(core: Core): Promise<void> {
  try {
    for (const { uid } of await apiKeys(core)) await revokeKey(core, uid);
  } catch (refusal) {
    if (!(refusal instanceof NotFound)) throw refusal; // a server without documents has no API keys
  }
}
