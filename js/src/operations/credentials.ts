// The ways into an account: its keyring is opened, and stored with other slots. What is in it does not change by that.
import {
  Conflict,
  CredentialsRolledBack,
  InvalidCredentials,
  InvalidSecondFactor,
  RolledBack,
  Tampered,
} from "../errors.js";
import { type Prepared, renew, rotate as rotateKeys } from "../format/account.js";
import { type PasswordKeys, passwordKeys, spelledAuth } from "../format/derive.js";
import { type Descriptor, spellDescriptor } from "../format/descriptor.js";
import { equal } from "../format/encoding.js";
import { digestOf, type Keyring, readHead, shortOf } from "../format/keyring.js";
import * as keyringSlots from "../format/keyringSlots.js";
import { merging } from "../lazyImports.js";
import type { StoredKeyring } from "../net/decoders.js";
import { changePassword } from "../net/requests/accounts.js";
import * as requests from "../net/requests/keyrings.js";
import type { Core } from "./core.js";
import { type FactorSource, prove } from "./factors.js";
import {
  getDescriptor,
  locked,
  MOST_TRIES,
  NO_NEWER,
  reload,
  reloadNow,
  requireStored,
  unlocked,
  use,
} from "./keyrings.js";

const WENT_ON =
  "After a restore from a backup the account went on without what this device has seen of it. Nothing was written. " +
  "Sync a device first that has seen all; if there is none, call replica.export and begin a new replica.";

/** Makes the keyring that is to be stored, from the newest one. */
export type Prepare = (ring: Keyring, descriptor: Descriptor) => Promise<Prepared>;

/** The keyring, opened anew with the password: refuses a wrong one before slots are sealed for it. */
export async function openWithPassword(core: Core, keys: PasswordKeys): Promise<Keyring> {
  const { sealed, descriptor } = unlocked(core);
  try {
    return await keyringSlots.openWithPassword(sealed, keys, descriptor);
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
  await core.session.saved?.renew(); // the server has deleted the shares of all sessions with the password
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
  if (!core.keyring().followsOn(version, await digestOf(keyring))) throw new RolledBack(WENT_ON);
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
 * Where another device went on after the restore, both keyrings are merged. Where the server's password or recovery key
 * is one of before, nothing is written.
 */
export async function restore(core: Core): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    try {
      return await locked(core, () => restoreNow(core));
    } catch (refusal) {
      if (!(refusal instanceof Conflict)) throw refusal; // another device was quicker
    }
  }
  throw new Tampered(NO_NEWER);
}

async function restoreNow(core: Core): Promise<void> {
  const { email, ring, sealed, descriptor } = unlocked(core);
  const stored = await core.session.send(requests.get());
  const theirs = await getDescriptor(core, email, false);
  const [mine, head] = [readHead(sealed), readHead(stored.keyring)];
  const same =
    equal(head.account, ring.account) &&
    equal(head.slots, mine.slots) &&
    head.generation === mine.generation &&
    isSame(theirs, descriptor);
  const other = same ? await ring.reopened(stored.keyring) : undefined;
  const isForked = other !== undefined && areForked(ring, other);
  if (!isForked && stored.version >= ring.version) {
    await reloadNow(core, stored);
    core.isForked = false;
    return;
  }
  if (!other) throw new CredentialsRolledBack();
  if (isForked) return merge(core, other);
  await requirePast(core, stored);
  requireStored(await core.session.send(requests.put(sealed, stored.version, ring.version)), sealed, ring.version);
}

/** Whether two keyrings of one account were made without knowing of each other. */
function areForked(one: Keyring, other: Keyring): boolean {
  const [older, newer] = one.version <= other.version ? [one, other] : [other, one];
  if (older.version === newer.version) return shortOf(older.digest) !== shortOf(newer.digest);
  return newer.followsOn(older.version, older.digest) === false;
}

/** Store a keyring that follows on both: of two that were made without knowing of each other after a restore. */
async function merge(core: Core, theirs: Keyring): Promise<void> {
  const { email, ring, descriptor } = unlocked(core);
  const { mergeKeyrings } = await merging();
  let merged: Keyring;
  try {
    merged = mergeKeyrings(ring, theirs);
  } catch (refusal) {
    throw refusal instanceof Tampered ? new RolledBack(WENT_ON) : refusal;
  }
  const { sealed, ring: made } = await merged.seal();
  requireStored(await core.session.send(requests.put(sealed, theirs.version, made.version)), sealed, made.version);
  core.isForked = false;
  await use(core, email, made, sealed, descriptor);
}

const isSame = (one: Descriptor, other: Descriptor): boolean =>
  JSON.stringify(spellDescriptor(one)) === JSON.stringify(spellDescriptor(other));
