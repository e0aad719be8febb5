// The keyring: opened, replaced with optimistic concurrency, and compared with what this device has seen of it.
import {
  Conflict,
  KeyringConflict,
  Locked,
  MethodNotAllowed,
  NotFound,
  RolledBack,
  Tampered,
  WrongServer,
} from "../errors.js";
import { type Descriptor, FLOOR, readDescriptor } from "../format/descriptor.js";
import { equal, fromUrl, must } from "../format/encoding.js";
import { type Keyring, readHead } from "../format/keyring.js";
import type { StoredKeyring } from "../net/decoders.js";
import { prelogin } from "../net/requests/accounts.js";
import * as requests from "../net/requests/keyrings.js";
import type { Core } from "./core.js";
import { isGap, OLDER_KEYRING, TWO_KEYRINGS } from "./rollback.js";

const NO_LOGIN = "There is no login of strongroom at this address; check the URL, its path included.";
const WRONG_DESCRIPTOR = "The server's key-derivation descriptor is not the one that the keyring was sealed for.";
const UNSAID =
  "The server's directory of vaults lacks one that this device has seen, and nobody who has the keys said that it was deleted.";
export const NO_NEWER = "The server refuses every keyring as older than its own, and never shows a newer one.";
export const MOST_TRIES = 20;

/** Opens the text of a keyring. */
export type Open = (sealed: string) => Promise<Keyring>;

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

/** Reload the keyring: another device may have changed it. */
export const reload = (core: Core): Promise<void> => locked(core, () => reloadNow(core));

/** Run a task while no other of this client changes the keyring. */
export const locked = <T>(core: Core, task: () => Promise<T>): Promise<T> => core.session.locks.run("keyring", task);

/** The same, for a task that has the lock; `given` is what the server has sent. */
export async function reloadNow(core: Core, given?: StoredKeyring): Promise<void> {
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

/** Open a keyring that the server has sent, and go on with it unless something speaks against it. */
export async function openStored(
  core: Core,
  email: string,
  descriptor: Descriptor,
  stored: StoredKeyring,
  open: Open,
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
  core: Core,
  email: string,
  ring: Keyring,
  sealed: string,
  descriptor: Descriptor,
): Promise<void> {
  await core.device.recordAccount(email, ring, descriptor);
  const isNew = sealed !== core.sealed;
  Object.assign(core, { ring, descriptor, sealed });
  for (const keep of core.onKeyring) await keep();
  if (isNew) await core.session.saved?.update();
}

/** Refuse a keyring that is not the one that the server was given. */
export function requireStored(stored: StoredKeyring, sealed: string, version: number): void {
  must(
    stored.keyring === sealed && stored.version === version,
    "The server did not keep the keyring that it was given.",
  );
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
