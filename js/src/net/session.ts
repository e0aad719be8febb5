/** The session of a client: authentication of requests, retries, refresh of expired tokens. */

import { InvalidRefreshToken, Later, Locked, type Refusal, RequestTimeout, Unauthorized } from "../errors.js";
import { type Call, sizeOf } from "./call.js";
import type { Renewed, SignedIn } from "./decoders.js";
import { refusal, wrongServer } from "./errorsFromStatus.js";
import * as http from "./http.js";
import { Locks } from "./locks.js";
import { refresh as refreshCall } from "./requests/accounts.js";

const MAX_REFRESHES = 2; // for one request: on a slow connection the new token may expire too
const FIRST_BACKOFF = 0.1; // seconds before the first retry; doubles with each
const MAX_BACKOFF = 5;

/** How a session retries. */
export interface RetryOptions {
  /** How often a request without a response is sent again; 4 unless said otherwise. */
  retries?: number;
  /** The longest `Retry-After` that is obeyed, in seconds; 30 unless said otherwise. */
  patience?: number;
}

/** An access and a refresh token. */
export type TokenPair = [access: string, refresh: string];

/** Tokens that are saved on this device, perhaps for several tabs or programs. */
export interface SavedTokens {
  /** New tokens: those that another tab has saved, else those of the request. */
  exchange(refresh: string, request: () => Promise<Renewed>): Promise<Omit<Renewed, "keyShare">>;
  /** Save what has changed besides the tokens. */
  update(): Promise<void>;
  /** Delete what is saved. */
  delete(): Promise<void>;
  /** Save it again: the server has deleted the share of its key. */
  renew(): Promise<void>;
}

/** Carries a refusal to the caller; `inDoubt`: an earlier attempt of the same request may have succeeded. */
class Refused extends Error {
  readonly error: Refusal;
  readonly inDoubt: boolean;

  constructor(error: Refusal, inDoubt: boolean) {
    super();
    this.error = error;
    this.inDoubt = inDoubt;
  }
}

/** The tokens of a login, or an API key; and the policy for retries. */
export class Session {
  readonly connection: http.Connection;
  /** The locks of this client. */
  readonly locks = new Locks();
  /** Called when the first request needs a session. */
  logIn: (() => Promise<unknown>) | undefined;
  /** Where the tokens of this session are saved. */
  saved: SavedTokens | undefined;
  readonly #retries: number;
  readonly #patience: number;
  #access: string | undefined;
  #refresh: string | undefined;
  #key: string | undefined;

  constructor(connection: http.Connection, { retries = 4, patience = 30 }: RetryOptions = {}) {
    this.connection = connection;
    this.#retries = retries;
    this.#patience = patience;
  }

  /** Use the tokens of a new session. */
  begin(opened: SignedIn): void {
    this.useTokens(opened.accessToken, opened.refreshToken);
  }

  /** Use the tokens of a session that is not saved, or not yet. */
  useTokens(access: string, refresh: string): void {
    this.#access = access;
    this.#refresh = refresh;
    this.#key = this.saved = undefined;
  }

  /** The access and the refresh token of the session. */
  async tokens(): Promise<TokenPair> {
    await this.#bearer();
    const { pair } = this;
    if (!pair) throw new Locked();
    return pair;
  }

  /** The same, if there are any. */
  get pair(): TokenPair | undefined {
    return this.#refresh ? [this.#access ?? "", this.#refresh] : undefined; // both are there, or neither
  }

  /** Use an API key. */
  useKey(apiKey: string): void {
    this.end();
    this.#key = apiKey;
  }

  /** Forget all tokens and keys. */
  end(): void {
    this.#access = this.#refresh = this.#key = this.logIn = this.saved = undefined;
  }

  /** Whether there is a token or an API key. */
  get isOpen(): boolean {
    return (this.#access ?? this.#key) !== undefined;
  }

  /** Send a call and decode its response. */
  async send<T>(call: Call<T>): Promise<T> {
    const [found] = await this.#attempt(call);
    if (found instanceof Refused) throw found.error;
    return found.value;
  }

  /** The same; undefined if it was refused because an earlier attempt, whose response was lost, has done it already. */
  async sendOrDone<T>(call: Call<T>): Promise<T | undefined> {
    const [found, inDoubt] = await this.#attempt(call);
    if (!(found instanceof Refused)) return found.value;
    if (inDoubt && call.alreadyDone?.some((kind) => found.error instanceof kind)) return undefined;
    throw found.error;
  }

  /** The response or the refusal, and whether an earlier attempt without a response may have been applied. */
  async sendInDoubt<T>(call: Call<T>): Promise<[T | Refusal, boolean]> {
    const [found, inDoubt] = await this.#attempt(call);
    return [found instanceof Refused ? found.error : found.value, inDoubt];
  }

  /** What is opened with a bearer; with a fresh one, where it is refused as expired. An answer in its place is thrown. */
  async open<T extends object>(call: Call<unknown>, attempt: (bearer: string) => Promise<T | http.Answer>): Promise<T> {
    for (let last = false; ; last = true) {
      const bearer = await this.#bearer();
      let found: T | http.Answer;
      try {
        found = await attempt(bearer);
      } catch (error) {
        throw error instanceof http.NoResponse ? error.error : error;
      }
      if (!("status" in found)) return found;
      const refused = this.#refusal(call, found);
      if (last || !(refused instanceof Unauthorized) || this.#key !== undefined) throw refused;
      await this.#refreshTokens(bearer);
    }
  }

  async #attempt<T>(call: Call<T>): Promise<[{ value: T } | Refused, boolean]> {
    let inDoubt = false;
    for (let refreshes = 0; ; refreshes++) {
      const bearer = call.authenticated === false ? undefined : await this.#bearer();
      const found = await this.#sendWithRetries(call, bearer);
      if (!(found instanceof Refused)) return [{ value: call.decode(found.body) }, false];
      inDoubt ||= found.inDoubt;
      const expired = found.error instanceof Unauthorized && bearer !== undefined && this.#key === undefined;
      if (!expired || refreshes === MAX_REFRESHES) return [found, inDoubt];
      await this.#refreshTokens(bearer);
    }
  }

  async #bearer(): Promise<string> {
    if (!this.isOpen && this.logIn) {
      await this.locks.run("login", async () => {
        if (!this.isOpen) await this.logIn?.();
      });
    }
    const bearer = this.#key ?? this.#access;
    if (bearer === undefined) throw new Locked();
    return bearer;
  }

  /** Refresh the tokens, unless another task has done so while this one waited for the lock. */
  #refreshTokens(bearer: string): Promise<void> {
    return this.locks.run("refresh", async () => {
      if (this.#access !== bearer) return;
      const refresh = this.#refresh;
      if (!refresh) throw new Unauthorized();
      const request = (): Promise<Renewed> => this.send(refreshCall(refresh));
      try {
        const { accessToken, refreshToken } = await (this.saved ? this.saved.exchange(refresh, request) : request());
        if (this.#access !== bearer) return; // somebody has logged out or in meanwhile
        this.#access = accessToken;
        this.#refresh = refreshToken;
      } catch (error) {
        if (error instanceof InvalidRefreshToken && this.#access === bearer) {
          this.#access = this.#refresh = undefined;
        }
        throw error;
      }
    });
  }

  /** Send a request with retries, as far as that is safe; its response, or why there is none. */
  async #sendWithRetries(call: Call<unknown>, bearer: string | undefined): Promise<http.Answer | Refused> {
    const idempotent = call.idempotent !== false;
    let inDoubt = false;
    for (let attempt = 0; ; attempt++) {
      let refused: Refusal;
      let again: boolean;
      let wait = 0;
      try {
        const answer = await http.send(this.connection, call, bearer);
        if (answer.status >= 200 && answer.status < 300 && (answer.isJson || !answer.body.length)) {
          return answer;
        }
        refused = this.#refusal(call, answer);
        again = refused instanceof RequestTimeout || (refused instanceof Later && idempotent);
        if (refused instanceof Later && answer.retryAfter !== undefined) wait = refused.retryAfter;
        inDoubt ||= again && answer.status >= 500;
      } catch (error) {
        if (!(error instanceof http.NoResponse)) throw error;
        inDoubt ||= error.sent;
        refused = error.error;
        again = error.retry && (idempotent || !error.sent);
      }
      if (!again || attempt === this.#retries || wait > this.#patience) return new Refused(refused, inDoubt);
      await sleep(Math.max(wait, backoff(attempt)));
    }
  }

  #refusal(call: Call<unknown>, answer: http.Answer): Refusal {
    const { url } = this.connection;
    if (answer.status < 300) return wrongServer(answer, url);
    const secrets = [this.#access, this.#refresh, this.#key, ...(call.secrets ?? [])].filter(
      (one) => one !== undefined,
    );
    return refusal(answer, call, secrets.filter(Boolean), url, sizeOf(call));
  }
}

/** Wait for so many seconds. */
export const sleep = (seconds: number): Promise<void> => new Promise((done) => setTimeout(done, seconds * 1000));

/** Exponential backoff with jitter: clients that were cut off together must not return together. */
const backoff = (attempt: number): number =>
  (0.5 + Math.random() / 2) * Math.min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** attempt);
