// The keyring: the account key, sealed for each way in, and the directory of vaults with their keys.
//
// keyring = head ‖ body, a box under the keyring key whose associated data is the head
// head    = format (1) ‖ kind (1) ‖ account id (16) ‖ version (8) ‖ generation (4) ‖ previous (32)
//           ‖ number of slots (1) ‖ bytes of a slot (2) ‖ eight slots
//
// The server cannot join the parts of two keyrings, cannot tell used slots from unused ones, and cannot show one vault
// under another's name, nor hide one.
import { Invalid, Locked, Unsupported, VaultAlreadyExists } from "../errors.js";
import { OVERHEAD as BOX, openBox, sealBox } from "./box.js";
import { bound, type Descriptor } from "./descriptor.js";
import {
  AGAIN,
  type Bytes,
  checkFormat,
  checkedName,
  checkedUid,
  checkedVersion,
  compare,
  equal,
  FORMAT,
  fromBase64,
  isVersion,
  isZero,
  items,
  join,
  KEY,
  must,
  NONE,
  number,
  PARENT,
  type Random,
  readNumber,
  toBase64,
  toUrl,
} from "./encoding.js";
import {
  type Body,
  decodeBody,
  encodeBody,
  type Head,
  isSame,
  MOST_PAST,
  SLOTS,
  UNREADABLE,
  type Vault,
} from "./keyringBody.js";
import { ACCOUNT, deriveKey, type Generation, vaultKeys, type VaultKeys } from "./keys.js";
import { pad, unpad } from "./padding.js";
import { type Key, primitives } from "./primitives.js";
import { Secret } from "./secret.js";

const KIND = 4;
const MOST = 262_144; // characters of a keyring
/** Bytes of a slot. */
export const SLOT = 148;
const COUNT = 2 + ACCOUNT + 8 + 4 + KEY;
const START = COUNT + 3;
const HEAD = START + SLOTS * SLOT;
const UNKNOWN = "The server's keyring has a format that this client does not know.";

/** A vault of the directory, without its keys. */
export interface VaultEntry {
  readonly uid: string;
  readonly name: string;
  /** Whether names are sealed on the wire. */
  readonly sealed: boolean;
  /** Whether the vault was made on the server. */
  readonly made: boolean;
  /** The lowest generation of a live row. */
  readonly floor: number;
  /** The generation of its newest key. */
  readonly generation: number;
}

/** What a keyring says of itself. */
export interface State extends Head {
  /** The slots as they are stored; empty where they are to be made anew. */
  readonly slots: Bytes;
  /** SHA-256 of this keyring; empty until it is sealed. */
  readonly digest: Bytes;
}

/** A vault of the directory, without its keys. */
export const entryOf = ({ uid, name, sealed, made, floor, keys }: Vault): VaultEntry => ({
  uid,
  name,
  sealed,
  made,
  floor,
  generation: keys.at(-1)?.generation ?? 0,
});
/** Ascending order of uids. */
export const byUid = (one: { uid: string }, other: { uid: string }): number => compare(one.uid, other.uid);

/** The associated data of the password's slot. */
export const passwordSlot = (account: Bytes, descriptor: Descriptor): Bytes =>
  items("slot-password", account, ...bound(descriptor));

/** The beginning of a keyring's SHA-256, as `past` and `merged` have it. */
export const shortOf = (digest: Uint8Array): string => toBase64(digest.subarray(0, PARENT));

/** An opened keyring. A change of it gives the next version; `seal` gives what the server is to store. */
export class Keyring implements State {
  readonly account: Bytes;
  readonly version: number;
  readonly generation: number;
  readonly previous: Bytes;
  readonly slots: Bytes;
  readonly digest: Bytes;
  readonly #key: Secret;
  readonly #body: Body;

  private constructor({ account, version, generation, previous, slots, digest }: State, key: Secret, body: Body) {
    this.account = account;
    this.version = version;
    this.generation = generation;
    this.previous = previous;
    this.slots = slots;
    this.digest = digest;
    this.#key = key;
    this.#body = body;
  }

  /** A keyring that is not sealed yet, from the content of its body. */
  static of(state: State, key: Secret, body: Body): Keyring {
    return new Keyring(state, key, decodeBody(encodeBody(body), state));
  }

  // The directory

  /** The vaults, in ascending order of uid. */
  get vaults(): VaultEntry[] {
    return this.#body.vaults.map(entryOf);
  }

  /** The vault of this name. */
  vault(name: string): VaultEntry | undefined {
    return this.vaults.find((entry) => entry.name === name);
  }

  /** The vault with this uid. */
  entry(uid: string): VaultEntry | undefined {
    return this.vaults.find((entry) => entry.uid === uid);
  }

  /** Whether a key holder deleted this vault. */
  isGone(uid: string): boolean {
    return this.#body.gone.some((gone) => gone.uid === uid);
  }

  /** What a device remembers an identity by, of each generation: a newer keyring must hold it still. */
  identityChecks(): Promise<string[]> {
    return Promise.all(
      this.#body.identity.map(async ({ generation, sign, agree }) => {
        const parts = items("identity-check", this.account, generation, fromBase64(sign), fromBase64(agree));
        return toUrl(await primitives().sha256(parts));
      }),
    );
  }

  /** Whether this keyring was made knowing of an earlier one, by its version and SHA-256; null: too long ago. */
  followsOn(version: number, digest: Uint8Array): boolean | null {
    const { past, merged } = this.#body;
    const [before, wanted] = [this.version - version, shortOf(digest)];
    if (before > past.length) return null;
    return (
      (before > 0 && past.at(-before) === wanted) ||
      merged.some((one) => one.version === version && one.digest === wanted)
    );
  }

  /** The keys of a vault, of all generations: for a token, or for what follows from them. */
  secrets(uid: string): Generation[] {
    const keys = this.#body.vaults.find((vault) => vault.uid === uid)?.keys ?? [];
    return keys.map(({ generation, key }) => [generation, new Secret(fromBase64(key))]);
  }

  /** Whether every key that an earlier keyring has of a vault is here too, and the same, above the same floor. */
  keeps(earlier: Keyring, uid: string): boolean {
    const own = new Map(this.secrets(uid).map(([generation, key]) => [generation, key.reveal()]));
    return (
      (this.entry(uid)?.floor ?? 0) >= (earlier.entry(uid)?.floor ?? 0) &&
      earlier.secrets(uid).every(([generation, key]) => equal(own.get(generation) ?? NONE, key.reveal()))
    );
  }

  /** The keys that follow from those of a vault. */
  vaultKeys(uid: string): Promise<VaultKeys> {
    return vaultKeys(this.account, uid, this.secrets(uid), this.entry(uid)?.floor ?? 1, this.version);
  }

  /** The next version, with a new vault that is not made on the server yet. */
  withVault(uid: string, name: string, sealed: boolean, random: Random = primitives().random): Keyring {
    const own = checkedUid(uid);
    const entry: Vault = {
      uid: own,
      name: checkedName(name, "name"),
      sealed,
      made: false,
      floor: 1,
      keys: [{ generation: 1, key: toBase64(random(KEY)) }],
    };
    if (this.vault(name) || this.entry(own)) throw new VaultAlreadyExists();
    const { vaults, gone } = this.#body;
    return this.next({ vaults: [...vaults, entry].sort(byUid), gone: gone.filter((one) => one.uid !== own) });
  }

  /** The next version, with another name of this vault, or with its being made. */
  withEntry(uid: string, changes: Partial<Pick<Vault, "name" | "made">>): Keyring {
    return this.withChanged(uid, (vault) => {
      const changed = { ...vault, ...changes };
      const taken = this.vault(checkedName(changed.name, "name"));
      if (taken && taken.uid !== vault.uid) throw new VaultAlreadyExists();
      return changed;
    });
  }

  /** The next version, with this change of a vault. */
  withChanged(uid: string, change: (vault: Vault) => Vault): Keyring {
    const own = checkedUid(uid);
    if (!this.entry(own)) throw new Invalid({ uid: "must be a vault of the directory" });
    return this.next({ vaults: this.#body.vaults.map((vault) => (vault.uid === own ? change(vault) : vault)) });
  }

  // The slots, which `keyringSlots.ts` changes

  /** Whether the password's slot was sealed for this descriptor. */
  takes(descriptor: Descriptor): boolean {
    const associated = toBase64(passwordSlot(this.account, descriptor));
    return this.#body.slots.some((slot) => slot.associated === associated); // it names the kind of slot too
  }

  /** The next version, with these changes: changes of what is not sealed yet are one. */
  next(body: Partial<Body>, state: Partial<State> = {}, key: Secret = this.#key): Keyring {
    let { previous, version } = this;
    let { past } = this.#body;
    if (this.digest.length) {
      version += 1;
      previous = this.digest;
      past = [...past, shortOf(this.digest)].slice(-MOST_PAST);
    }
    const merged = this.#body.merged.filter((one) => one.version >= version - MOST_PAST);
    const { account, generation, slots } = this;
    const head = { account, generation, slots, version, previous, digest: NONE, ...state };
    return new Keyring(head, key, { ...this.#body, merged, ...body, past });
  }

  // Sealing and opening

  /**
   * What the server is to store for this version, and the keyring as it opens again.
   *
   * Send these same bytes again when a response is lost. Where slots are made anew, `sealSlots` gives them.
   */
  async seal(
    random: Random = primitives().random,
    slots: Bytes = this.slots,
  ): Promise<{ sealed: string; ring: Keyring }> {
    if (!slots.length) throw new Locked("The ways into an account change only with its password.");
    const head = join(
      Uint8Array.of(FORMAT, KIND),
      this.account,
      number(checkedVersion(this.version)),
      number(this.generation, 4),
      this.previous,
      number(SLOTS, 1),
      number(SLOT, 2),
      slots,
    );
    const box = await sealBox(
      await keyringKey(this.#key),
      random(KEY),
      pad(encodeBody(this.#body)),
      items("keyring", head),
    );
    const sealed = toBase64(join(head, box));
    if (sealed.length > MOST)
      throw new Invalid({ name: "does not fit: the directory of vaults is full; use fewer vaults or shorter names" });
    const ring = await Keyring.reopen(sealed, this.#key);
    must(isSame(ring.#body, this.#body) && ring.version === this.version, AGAIN);
    return { sealed, ring };
  }

  /** The keyring, opened with the account key. */
  static async reopen(sealed: string, key: Secret): Promise<Keyring> {
    const { raw, body, ...head } = readHead(sealed);
    const { version, previous } = head; // the generation is that of the newest identity in the body
    must(isVersion(version) && isZero(previous) === (version === 1), UNREADABLE);
    const content = unpad(await openBox(await keyringKey(key), body, items("keyring", raw)));
    return new Keyring({ ...head, digest: await digestOf(sealed) }, key, decodeBody(content, head));
  }

  /** The keyring of this account in a newer text, by the same account key. */
  reopened(sealed: string): Promise<Keyring> {
    return Keyring.reopen(sealed, this.#key);
  }

  /** The body as JSON has it, with all secrets: for a comparison, never to be kept. */
  reveal(): { readonly key: Secret; readonly body: Body } {
    return { key: this.#key, body: this.#body };
  }
}

/** The key of a keyring's body. */
const keyringKey = async (accountKey: Secret): Promise<Key> => deriveKey(await accountKey.key(), "HKDF", "keyring");

/** SHA-256 of a keyring's bytes: what the next one, and a device, knows it by. */
export const digestOf = (sealed: string): Promise<Bytes> => primitives().sha256(fromBase64(sealed));

/** What the head of a keyring says, as the server can read it too. */
export function readHead(sealed: string): Head & { slots: Bytes; raw: Bytes; body: Bytes } {
  must(sealed.length <= MOST, UNREADABLE);
  const whole = fromBase64(sealed);
  checkFormat(whole[0], UNKNOWN);
  must(whole.length >= START && whole[1] === KIND, UNKNOWN);
  const [count, size] = [whole[COUNT], readNumber(whole.subarray(COUNT + 1, START))];
  if (count !== SLOTS || size !== SLOT)
    // before the length, which follows from them
    throw new Unsupported(
      `This account's keyring has ${count} slots of ${size} bytes, which this client does not know; update the client.`,
    );
  must(whole.length >= HEAD + BOX, UNKNOWN);
  const after = 2 + ACCOUNT;
  return {
    account: whole.slice(2, after),
    version: readNumber(whole.subarray(after, after + 8)),
    generation: readNumber(whole.subarray(after + 8, after + 12)),
    previous: whole.slice(COUNT - KEY, COUNT),
    slots: whole.slice(START, HEAD),
    raw: whole.slice(0, HEAD),
    body: whole.slice(HEAD),
  };
}
