// The keyring: opened, replaced with optimistic concurrency, and compared with what this device has seen of it.
import {
  Conflict, CredentialsRolledBack, InvalidCredentials, InvalidSecondFactor, KeyringConflict, Locked, MethodNotAllowed,
  NotFound, RolledBack, Tampered, WrongServer,
} from "../errors.js";
import { type Prepared, renew, rotate as rotateKeys } from "../format/account.js";
import {
  type Descriptor, FLOOR, type PasswordKeys, passwordKeys, readDescriptor, spelledAuth, spellDescriptor,
} from "../format/derive.js";
import { digest, equal, fromUrl, must } from "../format/encoding.js";
import { Keyring, readHead } from "../format/keyring.js";
import type { StoredKeyring } from "../net/decoders.js";
import { changePassword, prelogin } from "../net/requests/accounts.js";
import * as requests from "../net/requests/keyrings.js";
import type { Core } from "./core.js";
import { type FactorSource, prove } from "./factors.js";
import { isGap, OLDER_KEYRING, TWO_KEYRINGS } from "./rollback.js";

const NO_LOGIN = "There is no login of strongroom at this address; check the URL, its path included.";
const WENT_ON =
  "After a restore from a backup the account went on without what this device has seen of it. Nothing was written. " +
  "Sync a device first that has seen all; if there is none, export this replica and begin a new one.";
const WRONG_DESCRIPTOR = "The server's key-derivation descriptor is not the one that the keyring was sealed for.";
const UNSAID =
  "The server's directory of vaults lacks one that this device has seen, and nobody who has the keys said that it was deleted.";
export const NO_NEWER = "The server refuses every keyring as older than its own, and never shows a newer one.";
const MOST_TRIES = 20;

/** Makes the keyring that is to be stored, from the newest one. */
export type Prepare = (ring: Keyring, descriptor: Descriptor) => Promise<Prepared>;
type Open = (sealed: string) => Promise<Keyring>;

/** What is there once somebody has logged in. */
interface Unlocked {
  readonly email: string;
  readonly ring: Keyring;
  readonly sealed: string;
  readonly descriptor: Descriptor;
}

/** The email, the keyring and the descriptor of the account, if somebody has logged in. */
export function unlocked({ email, ring, sealed, descriptor }: Core): Unlocked {
  if (email === undefined || !ring || sealed === undefined || !descriptor) throw new Locked();
  return { email, ring, sealed, descriptor };
}

/** The key-derivation descriptor that the server gives for an email. */
export async function getDescriptor(core: Core, email: string, check = true): Promise<Descriptor> {
  const seen = check ? core.device.account(email) : undefined;
  try {
    return readDescriptor((await core.session.send(prelogin(email))).kdf, seen ?? FLOOR);
  } catch (refusal) {
    if (refusal instanceof NotFound || refusal instanceof MethodNotAllowed) throw new WrongServer(NO_LOGIN);
    throw refusal;
  }
}

/** The keyring, opened anew with the password: refuses a wrong one before slots are sealed for it. */
export async function openWithPassword(core: Core, keys: PasswordKeys): Promise<Keyring> {
  const { sealed, descriptor } = unlocked(core);
  try {
    return await Keyring.withPassword(sealed, keys, descriptor);
  } catch (refusal) {
    if (refusal instanceof Tampered) throw new InvalidCredentials("The password is wrong.");
    throw refusal;
  }
}

/** The keys of the password, if it opens the newest keyring. A wrong one is not sent. */
export async function checkedPassword(core: Core, password: string): Promise<PasswordKeys> {
  const { email, descriptor } = unlocked(core);
  const keys = await passwordKeys(email, password, descriptor);
  await reload(core);
  await openWithPassword(core, keys);
  return keys;
}

/** Get the keyring, and open it with the password, the recovery key or a passkey. */
export async function unlock(core: Core, email: string, descriptor: Descriptor, open: Open): Promise<void> {
  await openStored(core, email, descriptor, await core.session.send(requests.get()), open);
}

/** Reload the keyring: another device may have changed it. */
export const reload = (core: Core): Promise<void> => locked(core, () => reloadNow(core));

const locked = <T>(core: Core, task: () => Promise<T>): Promise<T> => core.session.locks.run("keyring", task);

async function reloadNow(core: Core, given?: StoredKeyring): Promise<void> {
  const { email, ring, descriptor } = unlocked(core);
  const stored = given ?? (await core.session.send(requests.get()));
  const head = readHead(stored.keyring);
  must(equal(head.account, ring.account), "The server sent the keyring of another account.");
  try {
    await openStored(core, email, descriptor, stored, (sealed) => ring.reopened(sealed));
  } catch (refusal) {
    if (!(refusal instanceof Tampered)) throw refusal;
    if (head.generation < ring.generation && stored.version < ring.version) throw new RolledBack(OLDER_KEYRING);
    if (head.generation <= ring.generation) throw refusal;
    throw new Locked("The account's keys were rotated on another device; log in again.");
  }
}

async function openStored(
  core: Core, email: string, descriptor: Descriptor, stored: StoredKeyring, open: Open,
): Promise<void> {
  const ring = await open(stored.keyring);
  must(ring.version === stored.version, "The server calls a keyring by another version than its own.");
  const seen = core.device.account(email);
  if (seen) countGap(core, ring, seen.version, fromUrl(seen.digest));
  if (core.ring) requireDirectory(core.ring, ring);
  let own = descriptor;
  if (!ring.takes(own)) {
    own = await getDescriptor(core, email); // the password was changed on another device
    must(ring.takes(own), WRONG_DESCRIPTOR);
  }
  await use(core, email, ring, stored.keyring, own);
}

/** Refuse a newer keyring that lacks a vault, or a key of one: only a key holder's word removes it. */
export function requireDirectory(seen: Keyring, ring: Keyring): void {
  if (ring.version <= seen.version) return;
  for (const { uid } of seen.vaults) {
    if (ring.entry(uid)) must(ring.keeps(seen, uid), TWO_KEYRINGS);
    else if (!ring.isGone(uid)) throw new RolledBack(UNSAID);
  }
}

/** Count a keyring that does not say whether it follows on the one of version `seen`; refuse one that does not. */
export function countGap(core: Core, ring: Keyring, seen: number, seenDigest: Uint8Array): void {
  if (ring.version > seen && isGap(ring, seen, seenDigest)) core.gaps.add(ring.version);
}

/**
 * Write something that is sealed; anew, where the server has a newer keyring than the one that it was sealed with.
 *
 * A key may have been rotated: nothing is stored under the one of before, however late it arrives.
 */
export async function withNewest<T>(core: Core, write: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    try {
      return await write();
    } catch (refusal) {
      if (!(refusal instanceof KeyringConflict)) throw refusal;
      await reload(core);
    }
  }
  throw new Tampered(NO_NEWER);
}

/** Go on with this keyring, and remember it; refused where this device has seen another or a newer one. */
export async function use(
  core: Core, email: string, ring: Keyring, sealed: string, descriptor: Descriptor,
): Promise<void> {
  await core.device.recordAccount(email, ring, descriptor);
  const isNew = sealed !== core.sealed;
  Object.assign(core, { ring, descriptor, sealed });
  for (const keep of core.onKeyring) keep();
  if (isNew) await core.session.saved?.update();
}

/** Refuse a keyring that is not the one that the server was given. */
export function requireStored(stored: StoredKeyring, sealed: string, version: number): void {
  must(stored.keyring === sealed && stored.version === version, "The server did not keep the keyring that it was given.");
}

/** Update the keyring with optimistic concurrency; `change` gives undefined if there is nothing to change. */
export const update = (core: Core, change: (ring: Keyring) => Keyring | undefined): Promise<void> =>
  locked(core, async () => {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const { email, ring, descriptor } = unlocked(core);
      const changed = change(ring);
      if (!changed) return;
      const { sealed, ring: made } = await changed.seal();
      try {
        const stored = await core.session.send(requests.put(sealed, ring.version, made.version));
        requireStored(stored, sealed, made.version);
      } catch (refusal) {
        if (!(refusal instanceof Conflict)) throw refusal;
        await reloadNow(core);
        continue;
      }
      return use(core, email, made, sealed, descriptor);
    }
    throw new Tampered(NO_NEWER);
  });

/**
 * Store another password's keyring, descriptor and auth key in one request. `keys` are those of the old password.
 *
 * The keyring follows on the newest that this device has seen, also where a restored server has an older one.
 */
export const rewrap = (core: Core, secret: string, prepare: Prepare, source: FactorSource): Promise<void> =>
  locked(core, () => rewrapNow(core, secret, prepare, source));

async function rewrapNow(core: Core, secret: string, prepare: Prepare, source: FactorSource): Promise<void> {
  const { version } = await newestStored(core);
  const { email, ring, descriptor } = unlocked(core);
  const made = await prepare(ring, descriptor);
  const auth = spelledAuth(made.password.auth);
  let isDone = true;
  await prove(core.session, source, async (factor) => {
    const kdf = spellDescriptor(made.descriptor);
    const call = changePassword(secret, auth, kdf, made.sealed, version, made.ring.version, factor);
    // Undefined is the answer too: `isDone` says whether the refusal means that an earlier attempt was applied.
    const [answer, inDoubt] = await core.session.sendInDoubt(call);
    isDone = !(answer instanceof Error);
    if (answer instanceof Error && !(inDoubt && isAlreadyDone(answer))) throw answer;
  });
  const stored = await core.session.send(requests.get());
  if (!isDone && stored.keyring !== made.sealed) throw new InvalidCredentials(); // wrong each time that it was sent
  requireStored(stored, made.sealed, made.ring.version);
  await use(core, email, made.ring, made.sealed, made.descriptor);
}

const isAlreadyDone = (refusal: Error): boolean =>
  refusal instanceof InvalidCredentials || refusal instanceof InvalidSecondFactor;

/** The keyring as the server has it; a newer one than this device's is opened, an older one left alone. */
async function newestStored(core: Core): Promise<StoredKeyring> {
  const stored = await core.session.send(requests.get());
  if (stored.version >= core.keyring().version) await reloadNow(core, stored);
  else await requirePast(core, stored);
  return stored;
}

/** Refuse to replace a keyring that this device's does not follow on: a vault's key may be in that one alone. */
async function requirePast(core: Core, { version, keyring }: StoredKeyring): Promise<void> {
  if (!core.keyring().followsOn(version, await digest(keyring))) throw new RolledBack(WENT_ON);
}

/** New keys of the next generation for the account and every vault. What is stored is not sealed anew here. */
export const rotate = (core: Core, keys: PasswordKeys, next: string | undefined, source: FactorSource): Promise<void> =>
  locked(core, async () => {
    await reloadNow(core);
    const ring = await openWithPassword(core, keys);
    const { email, descriptor } = unlocked(core);
    if (next === undefined) return putSlots(core, await rotateKeys(ring, keys, descriptor), ring.version, source);
    // In one keyring: the keys of before are never sealed for the new password.
    const prepare: Prepare = async (_, old) => renew(await openWithPassword(core, keys), email, next, old);
    return rewrapNow(core, spelledAuth(keys.auth), prepare, source);
  });

/** Store a keyring with other slots for the same password. */
async function putSlots(core: Core, made: Prepared, replaced: number, source: FactorSource): Promise<void> {
  const { version } = made.ring;
  let stored = await prove(core.session, source, (factor) =>
    core.session.sendOrDone(requests.put(made.sealed, replaced, version, spelledAuth(made.password.auth), factor)),
  );
  if (!stored) {
    stored = await core.session.send(requests.get()); // an earlier attempt, whose response was lost, has used the factor
    if (stored.keyring !== made.sealed) throw new InvalidSecondFactor();
  }
  requireStored(stored, made.sealed, version);
  await use(core, unlocked(core).email, made.ring, made.sealed, made.descriptor);
}

/** Store another set of ways into the account; the password, whose keys these are, stays. */
export const changeSlots = (core: Core, keys: PasswordKeys, prepare: Prepare, source: FactorSource): Promise<void> =>
  locked(core, async () => {
    await reloadNow(core);
    const ring = await openWithPassword(core, keys);
    await putSlots(core, await prepare(ring, unlocked(core).descriptor), ring.version, source);
  });

/**
 * Give a server that was restored from a backup the keyring again that this device has: the identical text.
 *
 * Where the server's password or recovery key is one of before, nothing is written.
 */
export const restore = (core: Core): Promise<void> =>
  locked(core, async () => {
    const { email, ring, sealed, descriptor } = unlocked(core);
    const stored = await core.session.send(requests.get());
    if (stored.version >= ring.version) return reloadNow(core, stored);
    const theirs = await getDescriptor(core, email, false);
    const [mine, head] = [readHead(sealed), readHead(stored.keyring)];
    const same =
      equal(head.account, ring.account) && equal(head.slots, mine.slots) && head.generation === mine.generation &&
      isSame(theirs, descriptor);
    if (!same) throw new CredentialsRolledBack();
    await requirePast(core, stored);
    requireStored(await core.session.send(requests.put(sealed, stored.version, ring.version)), sealed, ring.version);
  });

const isSame = (one: Descriptor, other: Descriptor): boolean =>
  JSON.stringify(spellDescriptor(one)) === JSON.stringify(spellDescriptor(other));
