// Moving an account to another server: its export into a file, and the import of such a file (docs/export.md).
import {
  AccountNotEmpty,
  EmailAlreadyExists,
  HistoryLeftOut,
  ImportUnfinished,
  InvalidCredentials,
  InvalidInvitation,
  KeyringNotFound,
  Locked,
  type Refusal,
  RolledBack,
  SignupsClosed,
  Tampered,
  Unavailable,
} from "../errors.js";
import * as account from "../format/account.js";
import { type PasswordKeys, passwordKeys, spelledAuth } from "../format/derive.js";
import { type Descriptor, normalEmail, readDescriptor, spellDescriptor } from "../format/descriptor.js";
import { type Bytes, equal, must } from "../format/encoding.js";
import { type Keyring, readHead } from "../format/keyring.js";
import { openWithPassword } from "../format/keyringSlots.js";
import { verifyDocument } from "../format/seal.js";
import type { SignedIn, User } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import { get as getKeyring, put as putKeyring } from "../net/requests/keyrings.js";
import { sleep } from "../net/session.js";
import { openStream, type Stream } from "../net/streams.js";
import { Comparison, USED_SINCE } from "./accountComparison.js";
import { AccountFile, rowOf } from "./accountFile.js";
import { type KeyringLine, type Line, linesOf, MEDIA_TYPE } from "./accountLines.js";
import type { Core } from "./core.js";
import { openRow, Scope, WITHHELD } from "./documents.js";
import { FactorSource, openSession } from "./factors.js";
import * as keyrings from "./keyrings.js";
import { orLock } from "./login.js";
import { checkBlob, OLDER_KEYRING, TWO_KEYRINGS } from "./rollback.js";

const GRACE = 60; // seconds for which an export may be slower than this:
const MIN_BYTES_PER_SECOND = 16_384;
const ATTEMPTS = 4; // while the server still has the request of a page that was closed
const PIECE = 1 << 20; // bytes of an export that are handed to the browser at a time
const LOST = "The connection was lost before the export was complete, or it was too slow; export the account again.";
const DOES_NOT_OPEN =
  "This email and this password do not open the account in the file, or its keyring was altered. They are those of the " +
  "old server at the time of the export. Nothing was sent.";
const TAKEN = "The new server has another account with this email; import the file with that account deleted.";
const SAME_SALT =
  "This server has the account, with the key derivation that is in the file. If it is the server that the file was " +
  "exported from, there is nothing to import: call importAccount with the address of the new server, or log in here. If " +
  "it is another server, do not trust it: with that key derivation it would learn what logs in at the old one. Neither " +
  "the password nor the file was sent.";
const OTHER_IMPORT =
  "The account on the new server has an unfinished import of another file. Import that file, or call importAccount with " +
  "restart: what came in of the other file is then deleted there.";

/** How an account is imported. */
export interface ImportOptions {
  /** For a server that is closed for sign-ups. */
  readonly invitation?: string | undefined;
  /** Accept that the new server keeps less history or trash than the file has. */
  readonly allowLessHistory?: boolean;
  /** Delete what an unfinished import of another file has left in the account. */
  readonly restart?: boolean;
  /** Told how many bytes are done, of how many: each byte of the file is verified, sent and compared, and counts three times. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** The file of the account, verified line by line, and with nothing older than what this device has seen. */
export async function exportAccount(core: Core): Promise<Blob> {
  if (core.token) throw new Locked("A token opens what it was made for; log in to export the account.");
  const { ring, sealed } = keyrings.unlocked(core);
  const [check, file] = [new SeenCheck(core), new AccountFile()];
  const [whole, pieces]: [Blob[], Bytes[]] = [[], []];
  let length = 0;
  await readExport(core, async (raw) => {
    const line = await file.read(raw);
    if (line.kind === "keyring") file.useKeyring(line, await currentKeyring(core, line, ring, sealed));
    await check.compare(line, file);
    length += raw.length;
    pieces.push(raw);
    if (length > PIECE) {
      whole.push(new Blob(pieces.splice(0))); // the browser keeps it where there is room: in memory, or on disk
      length = 0;
    }
    return line;
  });
  file.requireWhole();
  check.requireComplete();
  return new Blob([...whole, ...pieces], { type: MEDIA_TYPE });
}

/** Read the server's export line by line; `progress` is told the number of bytes that have arrived. */
async function readExport(
  core: Core,
  take: (raw: Bytes) => Promise<Line>,
  progress?: (done: number) => void,
): Promise<void> {
  const stream = await openExport(core);
  let last: Line | undefined;
  try {
    for await (const raw of linesOf(arriving(stream, progress))) last = await take(raw);
  } finally {
    stream.close();
  }
  if (last?.kind !== "trailer") throw new Unavailable(LOST);
}

/** Open the export. An account can run one at a time, and that of a page that was closed may still run. */
async function openExport(core: Core): Promise<Stream> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await openStream(core.session, requests.exportAccount());
    } catch (refusal) {
      if (!(refusal instanceof Unavailable) || attempt === ATTEMPTS) throw refusal;
      await sleep(0.2 * 2 ** attempt);
    }
  }
}

/** What arrives, as long as it is quick enough. */
async function* arriving(
  stream: Stream,
  progress?: (done: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const began = Date.now();
  let received = 0;
  for (let piece = await stream.read(); piece; piece = await stream.read()) {
    received += piece.length;
    if ((Date.now() - began) / 1000 > GRACE + received / MIN_BYTES_PER_SECOND) throw new Unavailable(LOST);
    yield piece;
    progress?.(received);
  }
}

/** The keyring of an export, if it is not older than the one that this client had when it asked. */
async function currentKeyring(core: Core, line: KeyringLine, seen: Keyring, sealed: string): Promise<Keyring> {
  const { version, keyring, updatedAt } = line;
  if (version < seen.version) throw new RolledBack(OLDER_KEYRING);
  if (version === seen.version) {
    must(keyring === sealed, TWO_KEYRINGS);
    return seen;
  }
  if (version > core.keyring().version)
    await keyrings.locked(core, () => keyrings.reloadNow(core, { keyring, version, updatedAt }));
  return core.keyring().reopened(keyring);
}

/** Compares an export with what this device has seen. */
class SeenCheck {
  readonly #core: Core;
  readonly #mark: number;
  readonly #expected = new Map<string, Set<string>>(); // documents that were seen live, by vault

  constructor(core: Core) {
    this.#core = core;
    this.#mark = core.device.mark();
  }

  /** Refuse a row that is older than what was seen. */
  async compare(line: Line, file: AccountFile): Promise<void> {
    const { device } = this.#core;
    const isSeen = ({ order }: { order: number }): boolean => order <= this.#mark;
    if (line.kind === "vault") {
      const known = device.vault(line.uid);
      if (known && isSeen(known)) {
        if (line.version < known.version) throw new RolledBack();
        checkBlob(known.version, known.data, line.version, line.data);
      }
      const live = [...device.rows(line.uid)].filter(([, one]) => !one.deleted && isSeen(one));
      this.#expected.set(line.uid, new Set(live.map(([uid]) => uid)));
    } else if (line.kind === "document") {
      const scope = file.scope(line.vaultUid);
      if (scope && device.known(line.vaultUid, line.uid)) await openRow(this.#core, scope, rowOf(line), this.#mark);
      this.#expected.get(line.vaultUid)?.delete(line.uid);
    }
  }

  /** Refuse an export without a document that was seen. */
  requireComplete(): void {
    if ([...this.#expected.values()].some((uids) => uids.size)) throw new RolledBack(WITHHELD);
  }
}

/** The account on the new server: the keys of the password there, and the keyring that is sealed for them. */
interface NewAccount extends account.Prepared {
  readonly user: User;
}

/**
 * Verify a file, register its account here, import it, and compare all that the server then has with the file.
 *
 * What an interruption has left is continued. The account gets a new descriptor, and so a new auth key: what the old
 * server knows does not log in here, and the other way round.
 */
export async function importAccount(
  core: Core,
  source: Blob,
  email: string,
  password: string,
  options: ImportOptions = {},
): Promise<User> {
  const { invitation, allowLessHistory = false, restart = false, progress } = options;
  const own = normalEmail(email);
  core.lock();
  const { size } = source;
  const tell =
    (before: number) =>
    (done: number): void =>
      progress?.(before * size + Math.min(done, size), 3 * size);
  const file = new AccountFile();
  const lines = linesOf(piecesOf(source, tell(0)));
  const descriptor = await openFile(file, lines, own, password);
  for await (const raw of lines) await file.read(raw);
  file.requireWhole();
  return orLock(core, async () => {
    const made = await enter(core, own, password, invitation, file.ring, descriptor);
    await upload(core, source, made.password, restart);
    tell(1)(size);
    const leftOut = await compare(core, source, file, made, tell(2));
    const stored = await keyrings.getDescriptor(core, own);
    const isKept = JSON.stringify(spellDescriptor(stored)) === JSON.stringify(spellDescriptor(made.descriptor));
    must(isKept, "The server did not keep the key-derivation descriptor that it was given.");
    if (leftOut && !allowLessHistory) throw new HistoryLeftOut(undefined, { leftOut });
    core.device.forgetAccount(own);
    await keyrings.use(core, own, made.ring, made.sealed, made.descriptor);
    return made.user;
  });
}

/** The pieces of a file, as they are read. */
async function* piecesOf(source: Blob, progress?: (done: number) => void): AsyncGenerator<Uint8Array, void, undefined> {
  let done = 0;
  for (let at = 0; at < source.size; at += PIECE) {
    const piece = new Uint8Array(await source.slice(at, at + PIECE).arrayBuffer());
    yield piece;
    done += piece.length;
    progress?.(done);
  }
}

/** Open the keyring of a file with the password; its descriptor. */
async function openFile(
  file: AccountFile,
  lines: AsyncIterator<Bytes, void>,
  email: string,
  password: string,
): Promise<Descriptor> {
  const line = await file.readHead(lines);
  const descriptor = readDescriptor(file.header.kdf);
  const keys = await passwordKeys(email, password, descriptor);
  const ring = await openWithPassword(line.keyring, keys, descriptor).catch((refusal: unknown) => {
    throw refusal instanceof Tampered ? new InvalidCredentials(DOES_NOT_OPEN) : refusal;
  });
  file.useKeyring(line, ring);
  return descriptor;
}

/** Register the account, or log in where that was done before; and store the keyring for the password there. */
async function enter(
  core: Core,
  email: string,
  password: string,
  invitation: string | undefined,
  ring: Keyring,
  old: Descriptor,
): Promise<NewAccount> {
  const made = await account.changePassword(ring, email, password, old);
  const auth = spelledAuth(made.password.auth);
  const call = requests.register(email, auth, spellDescriptor(made.descriptor), null, core.deviceName, invitation);
  let refused: Refusal | undefined;
  const opened = await core.session.sendOrDone(call).catch((refusal: unknown): SignedIn | undefined => {
    // An earlier attempt may have registered.
    if (
      !(
        refusal instanceof EmailAlreadyExists ||
        refusal instanceof InvalidInvitation ||
        refusal instanceof SignupsClosed
      )
    )
      throw refusal;
    refused = refusal;
    return undefined;
  });
  if (opened) {
    const user = core.begin(email, opened);
    await storeKeyring(core, made);
    return { ...made, user };
  }
  const descriptor = await keyrings.getDescriptor(core, email);
  must(!equal(descriptor.salt, old.salt), SAME_SALT);
  const keys = await passwordKeys(email, password, descriptor);
  const user = await openSession(core, email, spelledAuth(keys.auth), new FactorSource()).catch((refusal: unknown) => {
    if (!(refusal instanceof InvalidCredentials)) throw refusal;
    throw refused && !(refused instanceof EmailAlreadyExists) ? refused : new EmailAlreadyExists(TAKEN);
  });
  return { ...(await storedKeyring(core, ring, keys, descriptor)), user };
}

/** Store the account's first keyring on this server. */
async function storeKeyring(core: Core, { ring: { version }, sealed, password }: account.Prepared): Promise<void> {
  const stored = await core.session.send(putKeyring(sealed, 0, version, spelledAuth(password.auth)));
  keyrings.requireStored(stored, sealed, version);
}

/** The keyring that an earlier attempt has stored; a new one for the same password where it came not so far. */
async function storedKeyring(
  core: Core,
  ring: Keyring,
  password: PasswordKeys,
  descriptor: Descriptor,
): Promise<account.Prepared> {
  const stored = await core.session.send(getKeyring()).catch((refusal: unknown) => {
    if (!(refusal instanceof KeyringNotFound)) throw refusal;
    return undefined;
  });
  if (!stored) {
    const made = await account.rewrap(ring, password, descriptor);
    await storeKeyring(core, made);
    return made;
  }
  const { keyring: sealed } = stored;
  if (!equal(readHead(sealed).account, ring.account)) throw new EmailAlreadyExists(TAKEN);
  const opened = await openWithPassword(sealed, password, descriptor);
  if (!equal(opened.previous, ring.digest) || opened.version !== ring.version + 1)
    throw new AccountNotEmpty(USED_SINCE);
  return { password, descriptor, ring: opened, sealed };
}

/** Send the file. The server skips what it has of it already. */
async function upload(core: Core, source: Blob, { auth }: PasswordKeys, restart: boolean): Promise<void> {
  const proof = JSON.stringify({ kind: "password", currentPassword: spelledAuth(auth) });
  const body = new Blob([`${proof}\n`, source], { type: MEDIA_TYPE });
  for (let attempt = 1; ; attempt += 1) {
    try {
      await core.session.send(requests.importAccount(body, spelledAuth(auth)));
      return;
    } catch (refusal) {
      if (!(refusal instanceof ImportUnfinished)) throw refusal;
      if (attempt === ATTEMPTS) throw new ImportUnfinished(OTHER_IMPORT);
      if (restart) await core.session.sendOrDone(requests.abandonImport());
      else await sleep(0.1 * 2 ** attempt); // the upload of a page that was closed may be under way still
    }
  }
}

/** Compare what the server has with the file, row by row, and remember it; how much of the history is missing. */
async function compare(
  core: Core,
  source: Blob,
  file: AccountFile,
  { ring, sealed }: NewAccount,
  progress: (done: number) => void,
): Promise<number> {
  const scopes = new Map(
    await Promise.all(
      file.ring.vaults.map(async ({ uid }) => [uid, new Scope(await file.ring.vaultKeys(uid))] as const),
    ),
  );
  const comparison = new Comparison(file, linesOf(piecesOf(source)), ring, sealed);
  await readExport(
    core,
    async (raw) => {
      const line = await comparison.take(raw);
      const scope = line.kind === "document" ? scopes.get(line.vaultUid) : undefined;
      if (line.kind !== "document" || !scope) return line;
      const row = rowOf(line);
      const { deleted } = await verifyDocument(await scope.key(row.collection), row);
      core.device.record(row, core.device.mark(), deleted);
      return line;
    },
    progress,
  );
  const leftOut = await comparison.finish();
  progress(source.size);
  return leftOut;
}
