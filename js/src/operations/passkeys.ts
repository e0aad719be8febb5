// Operations on passkeys: list, add, rename, delete; log in with one, and let one open the account.
//
// Which passkeys are registered is the server's word. Which of them open the account is in the keyring, and proven.
import { CeremonyFailed, Invalid, Locked, PasskeyNotFound, Tampered } from "../errors.js";
import { addPasskey, removePasskey } from "../format/account.js";
import { type PasswordKeys, spelledAuth } from "../format/derive.js";
import { normalEmail } from "../format/descriptor.js";
import { checkedText, equal, fromUrl, toUrl } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import { type PasskeyId, passkeyId } from "../format/passkey.js";
import { isFull, openWithPasskey, passkeysOf } from "../format/keyringSlots.js";
import { Factor } from "../net/call.js";
import type { RecoveryCodes, User } from "../net/decoders.js";
import * as requests from "../net/requests/passkeys.js";
import * as ceremonies from "./ceremonies.js";
import type { Core } from "./core.js";
import { type Authenticator, FactorSource, prove } from "./factors.js";
import * as credentials from "./credentials.js";
import * as keyrings from "./keyrings.js";
import { unlock } from "./login.js";

const NO_PRF =
  "This passkey cannot open the account: its authenticator does not have the PRF extension. Log in with the password, " +
  "and give the authenticator as `code`.";
const NOT_OPENING =
  "This passkey logs in, and does not open the account: log in with the password, and call `passkeys.enableUnlock`. If " +
  "it did open the account before, the server may have changed the keyring.";
const FULL = "cannot be added: eight ways into this account are the most, the password included; disable one first";

/** A passkey of the account. `unlocks`: it opens the account's keys, which is proven; the rest is the server's word. */
export interface ListedPasskey {
  /** Null if it opens the keys and the server does not know it; `passkeys.disableUnlock` removes it. */
  readonly uid: string | null;
  readonly name: string;
  readonly rpId: string;
  readonly credentialId: string;
  readonly unlocks: boolean;
  readonly createdAt: number | null;
  readonly lastUsedAt: number | null;
}

/** A passkey that was added. */
export interface NewPasskey {
  readonly passkey: ListedPasskey;
  /** Whether it can open the account's keys, once `passkeys.enableUnlock` was called. */
  readonly hasPrf: boolean;
  /** There if it is the account's first second factor, and shown only here. */
  readonly recoveryCodes: RecoveryCodes | null;
}

/** The passkeys that the server knows, and those that open the account. */
export async function listPasskeys(core: Core): Promise<ListedPasskey[]> {
  await keyrings.reload(core);
  const { passkeys } = await core.session.send(requests.list());
  const opening = new Map(passkeysOf(core.keyring()).map((one) => [`${one.rpId} ${toUrl(one.credential)}`, one]));
  const rpId = core.session.connection.host;
  const listed = passkeys.map(({ uid, name, credentialId, createdAt, lastUsedAt }): ListedPasskey => {
    const unlocks = opening.delete(`${rpId} ${credentialId}`);
    return { uid, name, rpId, credentialId, unlocks, createdAt, lastUsedAt };
  });
  const others = [...opening]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([, one]): ListedPasskey => ({
        uid: null,
        name: "",
        rpId: one.rpId,
        credentialId: toUrl(one.credential),
        unlocks: true,
        createdAt: null,
        lastUsedAt: null,
      }),
    );
  return [...listed, ...others];
}

/** Make a passkey, and register it: it logs in, and is a second factor. */
export async function add(
  core: Core,
  name: string,
  password: string,
  authenticator: Authenticator,
  source: FactorSource,
): Promise<NewPasskey> {
  const called = checkedText(name, "name");
  const keys = await credentials.checkedPassword(core, password);
  const { publicKey } = await prove(core.session, source, (factor) =>
    core.session.send(requests.beginRegistration(spelledAuth(keys.auth), factor)),
  );
  const made = await ceremonies.create(core.session, authenticator, publicKey);
  const { passkey, recoveryCodes } = await core.session.send(requests.add(called, made.sent, made.prf));
  if (passkey.credentialId !== made.credentialId)
    throw new Tampered("The server registered another passkey than the one that it was given.");
  const { uid, credentialId, createdAt } = passkey;
  const listed = {
    uid,
    name: passkey.name,
    rpId: made.rpId,
    credentialId,
    unlocks: false,
    createdAt,
    lastUsedAt: null,
  };
  return { passkey: listed, hasPrf: made.prf, recoveryCodes };
}

/** Let a registered passkey open the account, too. Its own assertion is the second factor of that. */
export async function enableUnlock(
  core: Core,
  passkey: ListedPasskey,
  password: string,
  authenticator: Authenticator,
): Promise<void> {
  uidOf(passkey);
  const keys = await credentials.checkedPassword(core, password);
  const ring = core.keyring();
  if (isFull(ring) && !opens(ring, idOf(passkey))) throw new Invalid({ passkey: FULL });
  const { publicKey } = await core.session.send(requests.beginProof());
  const { sent, secret } = await ceremonies.get(core.session, authenticator, publicKey, true, passkey.credentialId);
  if (!secret) throw new CeremonyFailed(NO_PRF);
  const source = new FactorSource(new Factor({ passkey: sent }));
  await credentials.changeSlots(core, keys, (now, descriptor) => addPasskey(now, keys, descriptor, secret), source);
}

/** Let a passkey open the account no more. What it could open before, it can open still. */
export async function disableUnlock(
  core: Core,
  passkey: ListedPasskey,
  password: string,
  source: FactorSource,
): Promise<void> {
  await removeSlot(core, passkey, await credentials.checkedPassword(core, password), source);
}

async function removeSlot(core: Core, passkey: ListedPasskey, keys: PasswordKeys, source: FactorSource): Promise<void> {
  const id = idOf(passkey);
  if (opens(core.keyring(), id))
    await credentials.changeSlots(core, keys, (ring, descriptor) => removePasskey(ring, keys, descriptor, id), source);
}

/** Give a passkey another name. */
export async function rename(core: Core, passkey: ListedPasskey, name: string): Promise<void> {
  await core.session.send(requests.rename(uidOf(passkey), checkedText(name, "name")));
}

/** Delete a passkey: it neither opens the account nor logs in. */
export async function remove(
  core: Core,
  passkey: ListedPasskey,
  password: string,
  source: FactorSource,
): Promise<void> {
  const keys = await credentials.checkedPassword(core, password);
  await removeSlot(core, passkey, keys, source);
  const { uid } = passkey;
  if (uid === null) return;
  await prove(core.session, source, (factor) =>
    core.session.sendOrDone(requests.remove(uid, spelledAuth(keys.auth), factor)),
  );
}

/** Log in with a passkey and open the account, in one ceremony. */
export async function login(core: Core, authenticator: Authenticator, email?: string): Promise<User> {
  const expected = email === undefined ? undefined : normalEmail(email);
  core.lock();
  const { publicKey } = await core.session.send(requests.beginLogin());
  const { sent, secret } = await ceremonies.get(core.session, authenticator, publicKey, true);
  if (!secret) throw new Locked(NO_PRF);
  const opened = await core.session.send(requests.login(sent, core.deviceName));
  const whose = expected ?? emailOf(opened.user);
  const user = core.begin(whose, opened);
  try {
    const descriptor = await keyrings.getDescriptor(core, whose);
    await unlock(core, whose, descriptor, async (sealed) => {
      try {
        return await openWithPasskey(sealed, secret);
      } catch (refusal) {
        // That no slot opens means most likely that there is none for this passkey.
        throw refusal instanceof Tampered ? new Locked(NOT_OPENING) : refusal;
      }
    });
  } catch (fault) {
    core.lock();
    throw fault;
  }
  return user;
}

function emailOf({ email }: User): string {
  try {
    return normalEmail(email);
  } catch {
    throw new Tampered("The server opened a session of no account.");
  }
}

function uidOf({ uid }: ListedPasskey): string {
  if (uid === null)
    throw new PasskeyNotFound("The server does not know this passkey; call `passkeys.disableUnlock` to remove it.");
  return uid;
}

function idOf({ rpId, credentialId }: ListedPasskey): PasskeyId {
  try {
    return passkeyId(rpId, fromUrl(credentialId));
  } catch (refusal) {
    throw refusal instanceof Tampered ? new Invalid({ passkey: "has no credential id" }) : refusal;
  }
}

const opens = (ring: Keyring, { rpId, credential }: PasskeyId): boolean =>
  passkeysOf(ring).some((one) => one.rpId === rpId && equal(one.credential, credential));
