// Sessions that outlive a page or a program: save, resume, and keep what is saved in step with what the server gives.
//
// A refresh token stays valid until its successor is used. So a new one is saved before it is used: a page that is closed
// at any moment leaves a token that is valid. Tabs that share a session take turns: each reads what is saved before it
// refreshes, and takes the tokens that another has put there.
import { Invalid, InvalidRefreshToken, Locked, Refusal } from "../errors.js";
import { openBox, sealBox } from "../format/box.js";
import { readJson } from "../format/strictJson.js";
import { normalEmail, readDescriptor, spellDescriptor, type SpelledDescriptor } from "../format/descriptor.js";
import { type Bytes, equal, fromBase64, items, KEY, text, toBase64, toUrl } from "../format/encoding.js";
import { Keyring, readHead } from "../format/keyring.js";
import { type Key, primitives } from "../format/primitives.js";
import { Secret } from "../format/secret.js";
import type { SavedTokens, TokenPair } from "../net/session.js";
import type { Core } from "./core.js";
import { type Memory, merged } from "./device.js";
import { unlocked } from "./keyrings.js";

const GONE =
  "The saved session is gone: another tab or program has logged out or in again, or it was deleted; log in again.";
const DAMAGED = "is damaged, or was changed; log in again, and save the session anew";
const OTHERS = "holds the session of another account; log that one out, or use another place";

/** What a place keeps of a session. The keys cannot be extracted where the place can keep such. */
export interface SessionRecord {
  readonly id: string;
  /** Seals the contents. */
  readonly sealing: Key;
  /** The account key. */
  readonly account: Key;
  /** The tokens, the keyring and what was seen: a box. */
  readonly sealed: Bytes;
}

/** Where a session is saved. */
export interface SessionPlace {
  /** What is saved there. */
  read(): Promise<SessionRecord | undefined>;
  /** Replace it in one step; with `over`, only if the record of this id is still there. It is on disk when this returns. */
  write(record: SessionRecord, over?: string): Promise<void>;
  /** Delete it. */
  delete(): Promise<void>;
  /** Run a task while no other tab or program uses the place. */
  alone<T>(task: () => Promise<T>): Promise<T>;
  /** Whether the place can keep a CryptoKey; otherwise keys are kept as their bytes, in base64. */
  readonly keepsKeys: boolean;
}

interface Contents {
  readonly url: string;
  readonly email: string;
  readonly access: string;
  readonly refresh: string;
  readonly keyring: string;
  readonly descriptor: SpelledDescriptor;
  readonly memory: Memory;
}

/** A key as a place keeps it. */
const keep = async ({ keepsKeys }: SessionPlace, secret: Secret): Promise<Key> =>
  keepsKeys ? secret.key() : { bytes: toBase64(secret.reveal()) };

/** A key that a place has kept. */
const kept = ({ keepsKeys }: SessionPlace, key: Key): Secret =>
  keepsKeys ? new Secret(key) : new Secret(fromBase64("bytes" in key ? key.bytes : null));

const associated = (id: string): Bytes => items("session-file", id);

/** The session of a client that is saved. */
class SavedSession implements SavedTokens {
  readonly #core: Core;
  readonly #place: SessionPlace;
  readonly #record: SessionRecord;
  #memory: string; // as this client has read or written it last

  constructor(core: Core, place: SessionPlace, record: SessionRecord, memory: Memory) {
    this.#core = core;
    this.#place = place;
    this.#record = record;
    this.#memory = JSON.stringify(memory);
  }

  exchange(refresh: string, request: () => Promise<TokenPair>): Promise<TokenPair> {
    return this.#place.alone(async () => {
      const saved = await this.#read();
      if (!saved) throw new InvalidRefreshToken(GONE);
      if (saved.contents.refresh !== refresh) return [saved.contents.access, saved.contents.refresh];
      const tokens = await request();
      await this.#write(saved, contentsOf(this.#core, this.#core.session.connection.url, ...tokens));
      return tokens;
    });
  }

  async update(): Promise<void> {
    await this.#place.alone(async () => {
      const saved = await this.#read();
      if (!saved || !this.#core.ring) return;
      const { url, access, refresh } = saved.contents;
      await this.#write(saved, contentsOf(this.#core, url, access, refresh));
    });
  }

  async delete(): Promise<void> {
    await this.#place.alone(async () => {
      if ((await this.#place.read())?.id === this.#record.id) await this.#place.delete();
    });
  }

  /** What is saved now; undefined if it is gone, or is by now that of another login. */
  async #read(): Promise<Saved | undefined> {
    const record = await this.#place.read();
    return record?.id === this.#record.id ? { record, contents: await opened(this.#place, record) } : undefined;
  }

  /** Write what is here, and the newer of what another tab has written meanwhile. */
  async #write(saved: Saved, mine: Contents): Promise<void> {
    const isOwn = JSON.stringify(saved.contents.memory) === this.#memory;
    const theirs = saved.contents.memory.account.version > mine.memory.account.version;
    const { keyring, descriptor } = theirs ? saved.contents : mine;
    const account = theirs ? saved.record.account : await heldKey(this.#core, this.#place);
    const memory = isOwn ? mine.memory : merged(saved.contents.memory, mine.memory);
    const contents = { ...mine, keyring, descriptor, memory };
    await this.#place.write(await sealedRecord(this.#place, { ...saved.record, account }, contents), this.#record.id);
    if (isOwn) this.#memory = JSON.stringify(mine.memory);
  }
}

interface Saved {
  readonly record: SessionRecord;
  readonly contents: Contents;
}

const heldKey = (core: Core, place: SessionPlace): Promise<Key> => keep(place, core.keyring().reveal().key);

function contentsOf(core: Core, url: string, access: string, refresh: string): Contents {
  const { email, ring, sealed, descriptor } = unlocked(core);
  const memory = core.device.memory(email, new Set(ring.vaults.map(({ uid }) => uid)));
  return { url, email, access, refresh, keyring: sealed, descriptor: spellDescriptor(descriptor), memory };
}

async function sealedRecord(
  place: SessionPlace,
  { id, sealing, account }: Omit<SessionRecord, "sealed">,
  contents: Contents,
): Promise<SessionRecord> {
  const plain = text(JSON.stringify(contents));
  const key = await kept(place, sealing).key();
  return { id, sealing, account, sealed: await sealBox(key, primitives().random(KEY), plain, associated(id)) };
}

async function opened(place: SessionPlace, { id, sealing, sealed }: SessionRecord): Promise<Contents> {
  try {
    // What this key has sealed, this client has written.
    return readJson(await openBox(await kept(place, sealing).key(), sealed, associated(id))) as Contents;
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
  }
  throw new Invalid({ session: DAMAGED });
}

/** Save the session, and keep it in step from now on. */
export async function save(core: Core, place: SessionPlace): Promise<void> {
  if (core.token) throw new Locked("A token is no session: keep the token itself, as a secret.");
  core.keyring();
  const [access, refresh] = await core.session.tokens();
  const mine = contentsOf(core, core.session.connection.url, access, refresh);
  const fresh = {
    id: toUrl(primitives().random(16)),
    sealing: await keep(place, new Secret(primitives().random(KEY))),
    account: await heldKey(core, place),
  };
  const record = await place.alone(async () => {
    const before = await place.read();
    let { memory } = mine;
    if (before) {
      // What an earlier session of this account has seen there is not forgotten.
      const contents = await opened(place, before);
      if (!equal(readHead(contents.keyring).account, core.keyring().account)) throw new Invalid({ session: OTHERS });
      memory = merged(contents.memory, memory);
    }
    const made = await sealedRecord(place, fresh, { ...mine, memory });
    await place.write(made);
    return made;
  });
  core.session.saved = new SavedSession(core, place, record, mine.memory);
}

/** A session that was saved, verified; `email` is the account that it must be of. */
export async function open(
  place: SessionPlace,
  email?: string,
): Promise<{ url: string; use: (core: Core) => Promise<void> }> {
  const record = await place.read();
  if (!record) throw new Locked("There is no saved session here; log in.");
  const contents = await opened(place, record);
  if (email !== undefined && normalEmail(email) !== contents.email) throw new Invalid({ session: OTHERS });
  return { url: contents.url, use: (core) => use(core, place, record, contents) };
}

/** Go on with a saved session. The first request shows whether the server still has it. */
async function use(core: Core, place: SessionPlace, record: SessionRecord, contents: Contents): Promise<void> {
  core.lock();
  const { email, keyring: sealed, memory, access, refresh } = contents;
  try {
    const ring = await Keyring.reopen(sealed, kept(place, record.account));
    const descriptor = readDescriptor(contents.descriptor);
    core.device.remember(email, memory);
    await core.device.recordAccount(email, ring, descriptor);
    Object.assign(core, { email, ring, sealed, descriptor });
  } catch (fault) {
    throw fault instanceof Refusal ? new Invalid({ session: DAMAGED }) : fault;
  }
  core.session.useTokens(access, refresh);
  core.session.saved = new SavedSession(core, place, record, memory);
}
