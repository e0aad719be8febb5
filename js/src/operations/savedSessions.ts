// Sessions that outlive a page or a program: save, resume, and keep what is saved in step with what the server gives.
//
// A refresh token stays valid until its successor is used. So a new one is saved before it is used: a page that is closed
// at any moment leaves a token that is valid. Tabs that share a session take turns: each reads what is saved before it
// refreshes, and takes the tokens that another has put there.
//
// Where a place needs the server, what is saved opens with two things alone: the key in the record, and the share that
// the server keeps with the session, gives to a refresh and deletes when the session ends. Only the tokens open without it.
import { Invalid, InvalidRefreshToken, Locked, Refusal } from "../errors.js";
import { openBox, sealBox } from "../format/box.js";
import { readJson } from "../format/strictJson.js";
import { normalEmail, readDescriptor, spellDescriptor, type SpelledDescriptor } from "../format/descriptor.js";
import { type Bytes, fromBase64, items, KEY, NONE, text, toBase64, toUrl } from "../format/encoding.js";
import { Keyring } from "../format/keyring.js";
import { derive } from "../format/keys.js";
import { type Key, primitives } from "../format/primitives.js";
import { Secret } from "../format/secret.js";
import { connect, type ConnectionOptions } from "../net/http.js";
import { putKeyShare, refresh as refreshCall } from "../net/requests/accounts.js";
import type { Renewed } from "../net/decoders.js";
import { type SavedTokens, Session } from "../net/session.js";
import type { Core } from "./core.js";
import type { Memory } from "./device.js";
import { memoryOf, merged, remember } from "./deviceMemory.js";
import { endTokens } from "./ending.js";
import { unlocked } from "./keyrings.js";

const GONE =
  "The saved session is gone: another tab or program has logged out or in again, or it was deleted; log in again.";
const DAMAGED = "is damaged, or was changed; log in and save the session again";
const OTHERS = "holds the session of another account; log that one out, or use another place";
const NONE_HERE = "There is no saved session here; log in.";
const NO_SHARE = "The server has no share of the saved session's key: it was locked, or not used for too long; log in.";

/** What a place keeps of a session. The key cannot be extracted where the place can keep such. */
export interface SessionRecord {
  readonly id: string;
  /** Seals the tokens, and the contents together with the server's share. */
  readonly sealing: Key;
  /** The tokens: a box. */
  readonly tokens: Bytes;
  /** The account key, the keyring and what was seen: a box. */
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
  /** Whether the place can keep a CryptoKey; otherwise the key is kept as its bytes, in base64. */
  readonly keepsKeys: boolean;
  /** Whether what is saved opens only with a share that the server keeps. */
  readonly needsServer: boolean;
}

interface Tokens {
  readonly url: string;
  /** The session's id on the server; empty where the server keeps no share. */
  readonly session: string;
  /** The account's id. */
  readonly account: string;
  readonly access: string;
  readonly refresh: string;
}

interface Contents {
  readonly email: string;
  /** The account key. */
  readonly key: string;
  readonly keyring: string;
  readonly descriptor: SpelledDescriptor;
  readonly memory: Memory;
}

interface Saved {
  readonly record: SessionRecord;
  readonly tokens: Tokens;
  readonly contents: Contents;
}

/** The key of a new record, as the place keeps it. */
const newKey = async ({ keepsKeys }: SessionPlace): Promise<Key> => {
  const secret = new Secret(primitives().random(KEY));
  return keepsKeys ? secret.key() : { bytes: toBase64(secret.reveal()) };
};

/** The key of a record, as one that others are derived from. */
const keyOf = async ({ keepsKeys }: SessionPlace, key: Key): Promise<Key> =>
  keepsKeys ? key : new Secret(fromBase64("bytes" in key ? key.bytes : null)).key();

/** The key of the contents: it follows from the record's and from the server's share. */
const contentsKey = async (place: SessionPlace, { sealing }: Pick<SessionRecord, "sealing">, share: Bytes) =>
  primitives().key("HKDF", await derive(await keyOf(place, sealing), "session-contents", share));

const seal = async (key: Key, purpose: string, id: string, contents: object): Promise<Bytes> =>
  sealBox(key, primitives().random(KEY), text(JSON.stringify(contents)), items(purpose, id));

/** What a key has sealed; this client has written it. */
async function opened(key: Promise<Key>, purpose: string, id: string, sealed: Bytes): Promise<unknown> {
  try {
    return readJson(await openBox(await key, sealed, items(purpose, id)));
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
  }
  throw new Invalid({ session: DAMAGED });
}

const sealTokens = async (
  place: SessionPlace,
  { id, sealing }: Pick<SessionRecord, "id" | "sealing">,
  tokens: Tokens,
) => seal(await keyOf(place, sealing), "session-tokens", id, tokens);

const tokensOf = async (place: SessionPlace, { id, sealing, tokens }: SessionRecord): Promise<Tokens> =>
  (await opened(keyOf(place, sealing), "session-tokens", id, tokens)) as Tokens;

const contentsOf = async (key: Key, { id, sealed }: SessionRecord): Promise<Contents> =>
  (await opened(Promise.resolve(key), "session-contents", id, sealed)) as Contents;

/** What is to be saved of a client. `held` is its account key, where that is one that cannot be extracted. */
function contentsNow(core: Core, held: string): Contents {
  const { email, ring, sealed, descriptor } = unlocked(core);
  const memory = memoryOf(core.device, email, new Set(ring.vaults.map(({ uid }) => uid)));
  const { key: account } = ring.reveal();
  const key = account.isHeld ? held : toBase64(account.reveal());
  return { email, key, keyring: sealed, descriptor: spellDescriptor(descriptor), memory };
}

/** The session of a client that is saved. */
class SavedSession implements SavedTokens {
  readonly #core: Core;
  readonly #place: SessionPlace;
  readonly #id: string;
  readonly #share: Bytes;
  readonly #key: Key; // of the contents
  readonly #held: string; // the account key, where the client was given one that cannot be extracted
  #memory: string; // as this client has read or written it last

  constructor(core: Core, place: SessionPlace, id: string, share: Bytes, key: Key, held: string, memory: Memory) {
    this.#core = core;
    this.#place = place;
    this.#id = id;
    this.#share = share;
    this.#key = key;
    this.#held = held;
    this.#memory = JSON.stringify(memory);
  }

  exchange(refresh: string, request: () => Promise<Renewed>): Promise<Omit<Renewed, "keyShare">> {
    return this.#place.alone(async () => {
      const saved = await this.read();
      if (!saved) throw new InvalidRefreshToken(GONE);
      const { access: accessToken, refresh: refreshToken } = saved.tokens;
      if (refreshToken !== refresh) return { accessToken, refreshToken };
      const found = await request();
      await this.#write(saved, { ...saved.tokens, access: found.accessToken, refresh: found.refreshToken });
      // The share has expired while this device was asleep or offline; without it, the next start asks for the password.
      if (this.#place.needsServer && !found.keyShare) await this.#shareAgain(found).catch(() => undefined);
      return found;
    });
  }

  async update(): Promise<void> {
    await this.#place.alone(async () => {
      const saved = await this.read();
      if (saved && this.#core.ring) await this.#write(saved, saved.tokens);
    });
  }

  async delete(): Promise<void> {
    await this.#place.alone(async () => {
      if ((await this.#place.read())?.id === this.#id) await this.#place.delete();
    });
  }

  renew(): Promise<void> {
    return save(this.#core, this.#place);
  }

  /** The account key, where the client has one that cannot be extracted. */
  held(): string {
    return this.#held;
  }

  /** What is saved now; undefined if it is gone, or is by now that of another login. */
  async read(): Promise<Saved | undefined> {
    const record = await this.#place.read();
    if (record?.id !== this.#id) return undefined;
    return { record, tokens: await tokensOf(this.#place, record), contents: await contentsOf(this.#key, record) };
  }

  async #shareAgain({ accessToken, refreshToken }: Renewed): Promise<void> {
    const session = new Session(this.#core.session.connection);
    session.useTokens(accessToken, refreshToken);
    await session.send(putKeyShare(toBase64(this.#share)));
  }

  /** Write what is here, and the newer of what another tab has written meanwhile. */
  async #write({ record, contents: before }: Saved, tokens: Tokens): Promise<void> {
    const mine = contentsNow(this.#core, this.#held);
    const isOwn = JSON.stringify(before.memory) === this.#memory;
    const theirs = before.memory.account.version > mine.memory.account.version;
    const { key, keyring, descriptor } = theirs ? before : mine;
    const memory = isOwn ? mine.memory : merged(before.memory, mine.memory);
    const contents = { ...mine, key, keyring, descriptor, memory };
    const next = {
      ...record,
      tokens: await sealTokens(this.#place, record, tokens),
      sealed: await seal(this.#key, "session-contents", record.id, contents),
    };
    await this.#place.write(next, this.#id);
    if (isOwn) this.#memory = JSON.stringify(mine.memory);
  }
}

/** Save the session, and keep it in step from now on. */
export async function save(core: Core, place: SessionPlace): Promise<void> {
  if (core.token) throw new Locked("A token is no session: keep the token itself, as a secret.");
  const account = toUrl(core.keyring().account);
  const { url } = core.session.connection;
  const { saved } = core.session;
  const [known, held] = saved instanceof SavedSession ? [await saved.read(), saved.held()] : [undefined, ""];
  const share = place.needsServer ? primitives().random(KEY) : NONE;
  const session = place.needsServer ? (await core.session.send(putKeyShare(toBase64(share)))).sessionId : "";
  const [access, refresh] = await core.session.tokens();
  const fresh = { id: toUrl(primitives().random(16)), sealing: await newKey(place) };
  const key = await contentsKey(place, fresh, share);
  const mine = contentsNow(core, held);
  await place.alone(async () => {
    const before = await place.read();
    let { memory } = mine;
    if (before) {
      const theirs = await tokensOf(place, before);
      if (theirs.account !== account) throw new Invalid({ session: OTHERS });
      if (place.needsServer && theirs.session !== session && theirs.url === url)
        void endTokens(core.session.connection, [theirs.access, theirs.refresh]);
      // What an earlier session of this account has seen there is not forgotten, where it can be opened.
      const seen = place.needsServer
        ? known
        : { contents: await contentsOf(await contentsKey(place, before, NONE), before) };
      if (seen) memory = merged(seen.contents.memory, memory);
    }
    const tokens = { url, session, account, access, refresh };
    await place.write({
      ...fresh,
      tokens: await sealTokens(place, fresh, tokens),
      sealed: await seal(key, "session-contents", fresh.id, { ...mine, memory }),
    });
  });
  core.session.saved = new SavedSession(core, place, fresh.id, share, key, held, mine.memory);
}

/** Delete a saved session from its place, at once; what ends it on the server. */
export async function forget(
  place: SessionPlace,
  options?: ConnectionOptions,
): Promise<(signal?: AbortSignal) => Promise<boolean>> {
  const record = await place.read().catch(() => undefined);
  await place.delete(); // waits for nobody: another tab may wait for the server, and writes only over what is there
  return async (signal) => {
    const tokens = record && (await tokensOf(place, record).catch(() => undefined));
    if (!tokens) return false;
    return endTokens(connect(tokens.url, options), [tokens.access, tokens.refresh], signal);
  };
}

/** A saved session: the address of its server, and what continues it. */
export async function open(
  place: SessionPlace,
): Promise<{ url: string; use: (core: Core, email?: string) => Promise<void> }> {
  const record = await place.read();
  if (!record) throw new Locked(NONE_HERE);
  const { url } = await tokensOf(place, record);
  return { url, use: (core, email) => use(core, place, email) };
}

/** Continue a saved session, if it is of this account. */
async function use(core: Core, place: SessionPlace, email?: string): Promise<void> {
  core.lock();
  const found = place.needsServer ? place.alone(() => refreshed(core, place)) : asItIs(place);
  const [record, tokens, share] = await found;
  const key = await contentsKey(place, record, share);
  const contents = await contentsOf(key, record);
  if (email !== undefined && normalEmail(email) !== contents.email) throw new Invalid({ session: OTHERS });
  const { keyring: sealed, memory } = contents;
  try {
    const bytes = fromBase64(contents.key);
    const account = new Secret(place.keepsKeys ? await primitives().key("HKDF", bytes) : bytes);
    const ring = await Keyring.reopen(sealed, account);
    const descriptor = readDescriptor(contents.descriptor);
    remember(core.device, contents.email, memory);
    await core.device.recordAccount(contents.email, ring, descriptor);
    Object.assign(core, { email: contents.email, ring, sealed, descriptor });
  } catch (fault) {
    throw fault instanceof Refusal ? new Invalid({ session: DAMAGED }) : fault;
  }
  core.session.useTokens(tokens.access, tokens.refresh);
  core.session.saved = new SavedSession(core, place, record.id, share, key, contents.key, memory);
}

async function asItIs(place: SessionPlace): Promise<[SessionRecord, Tokens, Bytes]> {
  const record = await place.read();
  if (!record) throw new Locked(NONE_HERE);
  return [record, await tokensOf(place, record), NONE];
}

/** The record with tokens that are refreshed, and the server's share. One that the server does not open is deleted. */
async function refreshed(core: Core, place: SessionPlace): Promise<[SessionRecord, Tokens, Bytes]> {
  const [before, { access: _, refresh, ...rest }] = await asItIs(place);
  let found: Renewed;
  try {
    found = await core.session.send(refreshCall(refresh));
  } catch (fault) {
    if (fault instanceof InvalidRefreshToken) await place.delete();
    throw fault;
  }
  const tokens = { ...rest, access: found.accessToken, refresh: found.refreshToken };
  if (found.keyShare === null || found.keyShare === undefined) {
    await place.delete();
    void endTokens(core.session.connection, [tokens.access, tokens.refresh]);
    throw new Locked(NO_SHARE);
  }
  const record = { ...before, tokens: await sealTokens(place, before, tokens) };
  await place.write(record, before.id);
  return [record, tokens, fromBase64(found.keyShare)];
}
