// The client: register or log in, then open vaults. Everything is sealed here and opened here.
import { Invalid, Locked } from "./errors.js";
import { type CodeOptions, Passkeys, SecondFactor } from "./factors.js";
import { checkedText } from "./format/encoding.js";
import type { ApiKey, Event, ListedSession, User } from "./net/decoders.js";
import { connect, type ConnectionOptions } from "./net/http.js";
import { type RetryOptions, Session } from "./net/session.js";
import type { ImportOptions } from "./operations/accountMove.js";
import { Core } from "./operations/core.js";
import { Scope } from "./operations/documents.js";
import type { Authenticator } from "./operations/factors.js";
import * as login from "./operations/login.js";
import type { Progress, Rotation, Unseen } from "./operations/rotation.js";
import type { SessionPlace } from "./operations/savedSessions.js";
import type { StatePlace } from "./operations/tokenState.js";
import type { Usage } from "./operations/usageAndLog.js";
import { openVault } from "./operations/vaults.js";
import type { Value, ValueType } from "./operations/valueTypes.js";
import { checkedType, Collection, Vault } from "./vaults.js";
import { passwords, rare, saved } from "./lazyImports.js";

const move = () => import("./operations/accountMove.js");

/** How a client reaches its server, and how it behaves. */
export interface ClientOptions extends ConnectionOptions, RetryOptions {
  /** What the list of sessions calls this device. The server can read it. With "" none is sent. */
  deviceName?: string;
}

let reveal: (client: Client) => Core;

/** A client of one server. Several tasks may use one client at the same time. */
export class Client {
  readonly #core: Core;

  static {
    reveal = (client) => client.#core;
  }

  constructor(url: string, options: ClientOptions = {}) {
    this.#core = new Core(new Session(connect(url, options), options), options.deviceName);
  }

  /**
   * A client that opens what a token (`srv_…`) was made for, and nothing else.
   *
   * `state` holds what was seen, so that the next run notices what is older: `stateFile` of "@strongroom/client/node".
   * `lock` writes it, and `saveState`.
   */
  static async withToken(
    url: string,
    token: string,
    options: ClientOptions & { state?: StatePlace } = {},
  ): Promise<Client> {
    const client = new Client(url, options);
    await (await rare()).tokens.useToken(client.#core, token, options.state);
    return client;
  }

  /**
   * Move the account in a file of `exportAccount` to the server at `url`; a client that has logged in there.
   *
   * Email and password are those of the old server at the time of the export, and are those of the new one. The file is
   * verified with the account's keys first. Then the account is registered on the new server, the file is sent, and
   * everything that the server then has is compared with the file. After an interruption, call it again. A server that
   * keeps less history or trash than the file has raises HistoryLeftOut, unless `allowLessHistory`.
   */
  static async importAccount(
    url: string,
    file: Blob,
    email: string,
    password: string,
    options: ClientOptions & ImportOptions = {},
  ): Promise<Client> {
    const client = new Client(url, options);
    await (await move()).importAccount(client.#core, file, email, password, options);
    return client;
  }

  /**
   * A client that continues a session which `saveSession` has saved, without the password.
   *
   * In a browser the server is asked for its share of the key: without the server that is an Unreachable, and what is
   * saved stays; where the session has ended, an InvalidRefreshToken; where there is none, or its share is deleted, a
   * Locked. A file without a share sends no request: the first one raises InvalidRefreshToken. With `email`, the session
   * of another account is refused.
   */
  static async resume(
    place?: string | SessionPlace,
    options: ClientOptions & { email?: string } = {},
  ): Promise<Client> {
    const { url, use } = await (await saved()).open(place);
    const client = new Client(url, options);
    await use(client.#core, options.email);
    return client;
  }

  /**
   * Save the session, so that `resume` continues it without the password.
   *
   * A browser keeps it in IndexedDB under this name, for all tabs of the origin. What is there opens only with a share
   * that the server keeps while the session is open, and deletes an hour after it was used last. `sessionFile` of
   * "@strongroom/client/node" keeps it in a file. `logout` deletes it.
   */
  async saveSession(place?: string | SessionPlace): Promise<void> {
    await (await saved()).save(this.#core, place);
  }

  /**
   * Delete a session that was saved from this device, at once. It stays open on the server.
   *
   * What is returned ends it there, as soon as the server can be reached; false if that is refused or given up.
   */
  static async forget(
    place?: string | SessionPlace,
    options?: ConnectionOptions,
  ): Promise<(signal?: AbortSignal) => Promise<boolean>> {
    return (await saved()).forget(place, options);
  }

  /** Forget every key and token. The session stays open on the server, and saved if it was saved. */
  async lock(): Promise<void> {
    try {
      await this.#core.session.saved?.update();
      await this.saveState();
    } finally {
      this.#core.lock();
    }
  }

  /** Write what was seen into the state that `withToken` was given, if there is one. */
  async saveState(): Promise<void> {
    await this.#core.state?.save(this.#core);
  }

  /** Forget every key and token at once. The session stays open on the server: `logout` ends it. */
  close(): void {
    this.#core.lock();
  }

  /** The email of the account, once somebody has logged in. */
  get email(): string | undefined {
    return this.#core.email;
  }

  /** Whether a recovery key opens the account. */
  get hasRecoveryKey(): boolean {
    return this.#core.keyring().reveal().body.recovery !== null;
  }

  /**
   * How many newer keyrings this client has taken over although they do not name the one that it had seen.
   *
   * A keyring names the hundred before it. A device that was away for longer cannot tell whether the newest one follows
   * on the one that it had seen.
   */
  get keyringGaps(): number {
    return this.#core.gaps.size;
  }

  /** Register an account, and log in. A server that is closed for sign-ups asks for an invitation. */
  async register(email: string, password: string, { invitation }: { invitation?: string } = {}): Promise<User> {
    return login.register(this.#core, email, password, invitation);
  }

  /**
   * Log in. An earlier login of this client ends.
   *
   * `code` is the second factor, if the account has one. Without it, such an account raises SecondFactorRequired.
   */
  async login(email: string, password: string, { code }: CodeOptions = {}): Promise<User> {
    return login.login(this.#core, email, password, code);
  }

  /** End this session, or all of the account, and forget every key. */
  async logout({ everywhere = false }: { everywhere?: boolean } = {}): Promise<void> {
    return login.logout(this.#core, everywhere);
  }

  /**
   * Forget every key at once, and what is saved; end this session on the server as soon as that can be reached.
   *
   * False if the server refuses, or if `signal` ends that before.
   */
  async leave(signal?: AbortSignal): Promise<boolean> {
    const { session } = this.#core;
    const left = [session.pair, session.saved] as const;
    this.#core.lock();
    return (await saved()).end(session.connection, ...left, signal);
  }

  /**
   * Take over an account that the operator of the server made and gave you the password of, and log in.
   *
   * `password` is sent as typed: never give one that only you know. `newPassword` is never sent. Where an interruption
   * leaves in doubt whether it is set, try `login` with it first.
   */
  async adoptAccount(email: string, password: string, newPassword: string): Promise<User> {
    return (await rare()).adoption.adopt(this.#core, email, password, newPassword);
  }

  /**
   * Set another password. Every other session of the account ends; no document is encrypted anew.
   *
   * Whoever has had the account's keys still has them: `rotateKeys` ends that. `old` is the password that the server
   * knows; after a restore from a backup, that may be one of before. `restored` says that the server was restored, and
   * accepts the work in the derivation of keys of that time; otherwise less than was seen is refused.
   */
  async changePassword(
    old: string,
    next: string,
    { restored = false, code }: CodeOptions & { restored?: boolean } = {},
  ): Promise<void> {
    const { accounts, FactorSource } = await passwords();
    await accounts.changePassword(this.#core, old, next, new FactorSource(code), restored);
  }

  /** A key to print and keep; it opens the account if the password is lost. An earlier one opens nothing more. */
  async makeRecoveryKey(password: string, { code }: CodeOptions = {}): Promise<string> {
    const { accounts, FactorSource } = await passwords();
    return accounts.setRecovery(this.#core, password, new FactorSource(code));
  }

  /** Remove the recovery key: from now on it does not open the account. */
  async removeRecoveryKey(password: string, { code }: CodeOptions = {}): Promise<void> {
    const { accounts, FactorSource } = await passwords();
    await accounts.removeRecovery(this.#core, password, new FactorSource(code));
  }

  /**
   * Log in with the recovery key, and set another password.
   *
   * The recovery key replaces the password, not the second factor. Two are needed, for the login and for the password,
   * and each code counts once: give a function as `code`.
   */
  async recover(email: string, recoveryKey: string, newPassword: string, { code }: CodeOptions = {}): Promise<User> {
    const { accounts, FactorSource } = await passwords();
    return accounts.recover(this.#core, email, recoveryKey, newPassword, new FactorSource(code));
  }

  /**
   * Make new keys for the account and every vault, and encrypt everything again under them.
   *
   * Whoever has had the keys of before (a lost device, an old password with an old keyring, an agent with a token)
   * cannot read what is written from now on. API keys, and tokens with them, are revoked. After an interruption, call it
   * again or call `finishRotation`. Give a new password too: without one, whoever has had the account's keys and works
   * with the server can show a device that logs in for the first time the keys of before, and read what it writes.
   *
   * If there is a recovery key, the result has a new one, to be printed; the one of before then opens nothing more.
   *
   * Passkeys open the account no more: the result has them, and `passkeys.enableUnlock` lets each again that is at hand.
   * It also has the other sessions that were open: devices that have not seen the rotation.
   *
   * What this device has not read before the keys change is not encrypted again: anyone who had the old keys, and
   * works with the server, may have made it. The result has it as `unseen`; `finishRotation` takes what its caller
   * accepts. When nothing is left, nobody believes anything under the old keys any more.
   */
  async rotateKeys(
    password: string,
    options: CodeOptions & { newPassword?: string; progress?: Progress } = {},
  ): Promise<Rotation> {
    const { newPassword, progress, code } = options;
    const [{ rotation }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    return rotation.rotateKeys(this.#core, password, newPassword, progress, new FactorSource(code));
  }

  /**
   * Encrypt again what an interrupted rotation has left; it does nothing where nothing is left.
   *
   * It takes what this device has read before, and what is given as `accept`: what an earlier `Rotation` has as
   * `unseen`, or a part of that. Ask a person first.
   */
  async finishRotation(options: { accept?: Iterable<Unseen>; progress?: Progress } = {}): Promise<Rotation> {
    return (await rare()).rotation.finish(this.#core, options.accept ?? [], options.progress);
  }

  /**
   * The whole account, encrypted as it is stored, as a file that `importAccount` moves to another server.
   *
   * It has the keyring, all vaults, documents and blobs, their history and the trash, and is verified with the account's
   * keys. A browser offers it as a download, or writes its `stream()`. Keep it as safe as a backup.
   */
  async exportAccount(): Promise<Blob> {
    return (await move()).exportAccount(this.#core);
  }

  /** Delete the account and everything in it, at once and for good. */
  async deleteAccount(password: string, { code }: CodeOptions = {}): Promise<void> {
    const { accounts, FactorSource } = await passwords();
    await accounts.deleteAccount(this.#core, password, new FactorSource(code));
  }

  /** One-time codes as the second factor of the account. */
  get secondFactor(): SecondFactor {
    return new SecondFactor(this.#core);
  }

  /** The passkeys of the account. */
  get passkeys(): Passkeys {
    return new Passkeys(this.#core);
  }

  /**
   * Log in with a passkey that opens the account, in one ceremony and without the password.
   *
   * Which account it is, the passkey says; with `email`, another account is refused.
   */
  async loginWithPasskey(authenticator: Authenticator, { email }: { email?: string } = {}): Promise<User> {
    return (await rare()).passkeys.login(this.#core, authenticator, email);
  }

  /** The open sessions, the one used last first. */
  async sessions(): Promise<ListedSession[]> {
    return (await rare()).sessionsAndKeys.sessions(this.#core);
  }

  /** End one session. */
  async endSession(sessionId: string): Promise<void> {
    return (await rare()).sessionsAndKeys.endSession(this.#core, sessionId);
  }

  /** The account's log, newest first: logins, failed logins, changes of passwords, keys and sessions. */
  async *log(): AsyncGenerator<Event, void, undefined> {
    yield* (await rare()).usageAndLog.log(this.#core);
  }

  /** What the account uses, and its limits. */
  async usage(): Promise<Usage> {
    return (await rare()).usageAndLog.usage(this.#core);
  }

  /** The API keys, those inside tokens included. */
  async apiKeys(): Promise<ApiKey[]> {
    return (await rare()).sessionsAndKeys.apiKeys(this.#core);
  }

  /** Revoke an API key, and with it a token that holds it. */
  async revokeApiKey(uid: string): Promise<void> {
    return (await rare()).sessionsAndKeys.revokeKey(this.#core, uid);
  }

  /**
   * The vault of this name. A new one shows the server its name only if `sealed` is false.
   *
   * With a token that opens a vault, the name may be left out.
   */
  async vault(
    name?: string,
    { create = false, sealed = true }: { create?: boolean; sealed?: boolean } = {},
  ): Promise<Vault> {
    const core = this.#core;
    if (core.token) return new Vault(core, await (await rare()).tokens.openVault(core, name, create, sealed));
    if (name === undefined) throw new Invalid({ name: "is required" });
    return new Vault(core, await openVault(core, checkedText(name, "name"), create, sealed));
  }

  /** All vaults. */
  async vaults(): Promise<Vault[]> {
    return (await (await rare()).vaultChanges.listVaults(this.#core)).map((opened) => new Vault(this.#core, opened));
  }

  /** The collection that this client's token opens. `type` reads its values. */
  collection(): Collection<Value>;
  collection<T>(type: ValueType<T>): Collection<T>;
  collection<T>(type?: ValueType<T>): Collection<T> {
    const keys = this.#core.token?.keys;
    if (!keys || !("wires" in keys)) {
      throw new Locked("Only a token that was made for one collection opens one; open its vault first.");
    }
    return new Collection(this.#core, new Scope(keys, undefined, true, checkedType(type)));
  }
}

/** What is inside a client: for the other parts of this package, and for its tests. */
export const coreOf = (client: Client): Core => reveal(client);
