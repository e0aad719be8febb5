// A start without a server: the account is opened from its replica.
import { InvalidCredentials, Locked, Tampered } from "../errors.js";
import { openBox } from "../format/box.js";
import { masterKey, spelledAuth, splitMaster } from "../format/derive.js";
import { readDescriptor } from "../format/descriptor.js";
import { checkedText, fromBase64, fromText, must } from "../format/encoding.js";
import { openWithPassword } from "../format/keyringSlots.js";
import type { Core } from "../operations/core.js";
import { type FactorSource, openSession } from "../operations/factors.js";
import type { Storage } from "./storage.js";
import { Store } from "./tables.js";
import { emailKey, emailLabel } from "./unlock.js";

/** Unlock the account from its replica, without a server. The first request logs in. */
export async function unlockFrom(core: Core, storage: Storage, password: string, source: FactorSource): Promise<void> {
  checkedText(password, "password");
  const store = new Store(storage);
  let facts: (string | undefined)[];
  try {
    facts = await Promise.all(["salt", "email", "descriptor", "keyring"].map((name) => store.fact(name)));
  } finally {
    store.close();
  }
  const [salt, whose, spelled, sealed] = facts;
  if (salt === undefined || whose === undefined || spelled === undefined || sealed === undefined) {
    throw new Locked("This replica holds no keys: it was never opened by somebody who had logged in.");
  }
  const descriptor = readDescriptor(spelled);
  const keys = await splitMaster(await masterKey(fromBase64(salt), password, descriptor));
  try {
    const ring = await openWithPassword(sealed, keys, descriptor);
    const email = fromText(await openBox(await emailKey(ring), fromBase64(whose), emailLabel(ring)));
    must(email !== null);
    core.lock();
    await core.device.recordAccount(email, ring, descriptor);
    Object.assign(core, { email, ring, sealed, descriptor });
    core.session.logIn = () => openSession(core, email, spelledAuth(keys.auth), source);
  } catch (fault) {
    throw fault instanceof Tampered
      ? new InvalidCredentials("The password is wrong, or the replica was changed.")
      : fault;
  }
}
