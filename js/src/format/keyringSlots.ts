// The ways into an account: the slots of a keyring, for the password, the recovery key and passkeys; and new keys.
import { Invalid, Locked, Tampered } from "../errors.js";
import type { PasswordKeys } from "./derive.js";
import type { Descriptor } from "./descriptor.js";
import {
  type Bytes,
  fromBase64,
  items,
  join,
  KEY,
  must,
  NONE,
  number,
  type Random,
  readNumber,
  toBase64,
} from "./encoding.js";
import { entryOf, Keyring, passwordSlot, readHead, SLOT } from "./keyring.js";
import { FLOOR, type Slot, SLOT_ID, SLOTS, UNREADABLE, type Vault } from "./keyringBody.js";
import { ACCOUNT } from "./keys.js";
import { type PasskeyId, passkeyOfSlot, passkeySlot } from "./passkey.js";
import { type PasskeySecret, passkeyWrap } from "./passkeySecret.js";
import { primitives } from "./primitives.js";
import { filler, keyPair, openSealed, sealTo } from "./publicBox.js";
import { recoveryAuth, recoveryWrap } from "./recovery.js";
import { Secret } from "./secret.js";

const recoverySlot = (account: Bytes): Bytes => items("slot-recovery", account);

/** The first version of a keyring, for a new account. */
export function firstKeyring(password: PasswordKeys, descriptor: Descriptor, random: Random): Promise<Keyring> {
  const account = random(ACCOUNT);
  const key = new Secret(random(KEY));
  const [sign, agree, seed] = [random(KEY), random(KEY), random(KEY)].map(toBase64) as [string, string, string];
  const head = { account, version: 1, generation: 1, previous: new Uint8Array(KEY), slots: NONE, digest: NONE };
  const ring = Keyring.of(head, key, {
    account: toBase64(account),
    slots: [],
    recovery: null,
    identity: [{ generation: 1, sign, agree }],
    storage: [{ generation: 1, seed }],
    vaults: [],
    gone: [],
    past: [],
    merged: [],
    must: [],
  });
  return withPassword(ring, password, descriptor, random);
}

/** The next version, for another password. Nothing else is encrypted anew. */
export const withPassword = (
  ring: Keyring,
  { wrap }: PasswordKeys,
  descriptor: Descriptor,
  random: Random,
): Promise<Keyring> => withSlot(ring, "password", wrap, passwordSlot(ring.account, descriptor), random);

/** The next version, which this recovery key opens, and no other. `sealAuth` belongs with it. */
export async function withRecovery(ring: Keyring, recovery: Secret, random: Random): Promise<Keyring> {
  const made = await withSlot(ring, "recovery", await recoveryWrap(recovery), recoverySlot(ring.account), random);
  return made.next({ recovery: toBase64((await recoveryAuth(recovery)).public) });
}

/** The next version, which no recovery key opens. */
export function withoutRecovery(ring: Keyring): Keyring {
  const { slots } = ring.reveal().body;
  return ring.next({ slots: slots.filter(({ type }) => type !== "recovery"), recovery: null }, { slots: NONE });
}

/** The next version, which this passkey opens too. */
export const withPasskey = async (ring: Keyring, secret: PasskeySecret, random: Random): Promise<Keyring> =>
  withSlot(ring, "passkey", await passkeyWrap(secret, ring.account), passkeySlot(ring.account, secret), random);

/** The next version, which this passkey does not open. */
export function withoutPasskey(ring: Keyring, passkey: PasskeyId): Keyring {
  const associated = toBase64(passkeySlot(ring.account, passkey));
  const { slots } = ring.reveal().body;
  const others = slots.filter((slot) => slot.type !== "passkey" || slot.associated !== associated);
  return ring.next({ slots: others }, { slots: NONE });
}

/** The passkeys that open a keyring. */
export const passkeysOf = (ring: Keyring): PasskeyId[] =>
  ring.reveal().body.slots.flatMap(({ type, associated }) => {
    const found = type === "passkey" ? passkeyOfSlot(fromBase64(associated), ring.account) : null;
    return found ? [found] : [];
  });

/** Whether all eight ways in are taken. */
export const isFull = (ring: Keyring): boolean => ring.reveal().body.slots.length === SLOTS;

async function withSlot(
  ring: Keyring,
  type: string,
  secret: Secret,
  associated: Bytes,
  random: Random,
): Promise<Keyring> {
  const spelled = toBase64(associated);
  const many = type === "passkey"; // one for each credential; of the other types there is one
  const { slots } = ring.reveal().body;
  const others = slots.filter((slot) => slot.type !== type || (many && slot.associated !== spelled));
  const taken = new Set(others.map(({ slot }) => slot));
  const free = Array.from({ length: SLOTS }, (_, place) => place).filter((place) => !taken.has(place));
  if (!free.length)
    throw new Invalid({ slot: "cannot be added: all eight ways into this account are taken; remove one first" });
  const made: Slot = {
    slot: free[readNumber(random(4)) % free.length] as number,
    type,
    id: toBase64(random(SLOT_ID)),
    public: type === "password" ? null : toBase64((await keyPair(secret)).public),
    associated: spelled,
  };
  return ring.next({ slots: [...others, made].sort((one, other) => one.slot - other.slot) }, { slots: NONE });
}

/** The next version, with a key of the next generation for the account, its identity, storage and each vault. */
export function rotated(ring: Keyring, random: Random): Keyring {
  const { identity, storage, vaults, slots } = ring.reveal().body;
  const generation = ring.generation + 1;
  const [sign, agree, seed] = [random(KEY), random(KEY), random(KEY)].map(toBase64) as [string, string, string];
  const key = new Secret(random(KEY));
  const next = vaults.map((vault) => rotatedVault(vault, random));
  return ring.next(
    {
      identity: [...identity, { generation, sign, agree }],
      storage: [...storage, { generation, seed }],
      vaults: next,
      slots: slots.filter(({ type }) => type !== "passkey"),
    },
    { generation, slots: NONE },
    key,
  );
}

/** The next version, with a key of the next generation for one vault. */
export const withRotatedVault = (ring: Keyring, uid: string, random: Random): Keyring =>
  ring.withChanged(uid, (vault) => rotatedVault(vault, random));

/** The next version, with these floors of vaults by uid; none is ever lowered. Undefined: nothing changes. */
export function withFloors(ring: Keyring, floors: ReadonlyMap<string, number>): Keyring | undefined {
  const { vaults, must } = ring.reveal().body;
  const raised = vaults.map((vault) => {
    const floor = Math.min(floors.get(vault.uid) ?? 1, entryOf(vault).generation);
    return floor > vault.floor ? { ...vault, floor } : vault;
  });
  if (raised.every((vault, at) => vault === vaults[at])) return undefined;
  return ring.next({ vaults: raised, must: must.includes(FLOOR) ? must : [...must, FLOOR] });
}

function rotatedVault(vault: Vault, random: Random): Vault {
  const generation = entryOf(vault).generation + 1;
  return { ...vault, keys: [...vault.keys, { generation, key: toBase64(random(KEY)) }] };
}

/** A keyring whose slots may have to be made anew, sealed; that takes the password. */
export const sealWithSlots = async (
  ring: Keyring,
  random: Random = primitives().random,
  password?: PasswordKeys,
): Promise<{ sealed: string; ring: Keyring }> =>
  ring.seal(random, ring.slots.length ? ring.slots : await sealSlots(ring, random, password));

async function sealSlots(ring: Keyring, random: Random, password?: PasswordKeys): Promise<Bytes> {
  if (!password) throw new Locked("The ways into an account change only with its password.");
  const { key, body } = ring.reveal();
  const payload = join(number(ring.generation, 4), key.reveal());
  const { public: own } = await keyPair(password.wrap);
  const used = new Map(body.slots.map((slot) => [slot.slot, slot]));
  const made: Bytes[] = [];
  for (let place = 0; place < SLOTS; place += 1) {
    const slot = used.get(place);
    const to = slot?.public == null ? own : fromBase64(slot.public);
    made.push(slot ? await sealTo(to, payload, fromBase64(slot.associated), random) : await filler(SLOT, random));
  }
  return join(...made);
}

/** A keyring, opened with the keys of a password. The descriptor is the one that these were derived with. */
export const openWithPassword = async (
  sealed: string,
  { wrap }: PasswordKeys,
  descriptor: Descriptor,
): Promise<Keyring> => bySlot(sealed, wrap, passwordSlot(readHead(sealed).account, descriptor));

/** A keyring, opened with the recovery key. */
export const openWithRecovery = async (sealed: string, recovery: Secret): Promise<Keyring> =>
  bySlot(sealed, await recoveryWrap(recovery), recoverySlot(readHead(sealed).account));

/** A keyring, opened with what a passkey's authenticator gave. */
export async function openWithPasskey(sealed: string, secret: PasskeySecret): Promise<Keyring> {
  const { account } = readHead(sealed);
  return bySlot(sealed, await passkeyWrap(secret, account), passkeySlot(account, secret));
}

async function bySlot(sealed: string, secret: Secret, associated: Bytes): Promise<Keyring> {
  const [pair, { slots, generation }] = [await keyPair(secret), readHead(sealed)];
  for (let at = 0; at < slots.length; at += SLOT) {
    const payload = await openSealed(pair, slots.slice(at, at + SLOT), associated).catch((fault: unknown) => {
      if (!(fault instanceof Tampered)) throw fault;
      return null;
    });
    if (!payload) continue;
    must(readNumber(payload.subarray(0, 4)) === generation, UNREADABLE);
    return Keyring.reopen(sealed, new Secret(payload.slice(4)));
  }
  throw new Tampered(UNREADABLE);
}
