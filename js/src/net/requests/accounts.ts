/** Requests of an account: sessions, password, log, API keys. */

import * as errors from "../../errors.js";
import { type Call, type Factor, LARGE, pathPart, proofSecrets, withFactor } from "../call.js";
import * as decoders from "../decoders.js";

/** Get the key-derivation parameters of an account. */
export const prelogin = (email: string) =>
  ({
    method: "POST",
    path: "/auth/email/prelogin",
    body: JSON.stringify({ email }),
    decode: decoders.derivation,
    authenticated: false,
  }) satisfies Call<unknown>;

/** Register an account; one that is to be imported has no keyring yet. */
export const register = (
  email: string,
  password: string,
  kdf: object,
  keyring: string | null,
  deviceName?: string,
  invitation?: string,
) =>
  ({
    method: "POST",
    path: "/auth/email/register",
    body: JSON.stringify({ email, password, kdf, keyring, deviceName, invitation }),
    decode: decoders.signedIn,
    refusals: { 409: errors.EmailAlreadyExists },
    alreadyDone: [errors.EmailAlreadyExists, errors.InvalidInvitation],
    secrets: invitation ? [password, invitation] : [password],
    authenticated: false,
  }) satisfies Call<unknown>;

/** Log in. */
export const login = (email: string, password: string, deviceName?: string) =>
  ({
    method: "POST",
    path: "/auth/email/login",
    body: JSON.stringify({ email, password, deviceName }),
    decode: decoders.signedIn,
    refusals: { 401: errors.InvalidCredentials },
    secrets: [password],
    authenticated: false,
  }) satisfies Call<unknown>;

/** Refresh the tokens of a session. */
export const refresh = (refreshToken: string) =>
  ({
    method: "POST",
    path: "/auth/refresh",
    body: JSON.stringify({ refreshToken }),
    decode: decoders.tokens,
    refusals: { 401: errors.InvalidRefreshToken },
    authenticated: false,
  }) satisfies Call<unknown>;

/** Keep a share of a key with this session. */
export const putKeyShare = (keyShare: string) =>
  ({
    method: "PUT",
    path: "/auth/key-share",
    body: JSON.stringify({ keyShare }),
    decode: decoders.keyShare,
    secrets: [keyShare],
  }) satisfies Call<unknown>;

/** Log out: end this session, or all. */
export const logout = (everywhere: boolean) =>
  ({
    method: "POST",
    path: "/auth/logout",
    ...(everywhere && { body: '{"everywhere":true}' }),
    decode: decoders.ignored,
    alreadyDone: [errors.Unauthorized],
  }) satisfies Call<unknown>;

/** List the open sessions. */
export const sessions = () =>
  ({ method: "GET", path: "/auth/sessions", decode: decoders.sessions }) satisfies Call<unknown>;

/** End a session. */
export const endSession = (id: string) =>
  ({
    method: "DELETE",
    path: `/auth/sessions/${pathPart(id)}`,
    decode: decoders.ignored,
    refusals: { 404: errors.SessionNotFound },
    alreadyDone: [errors.SessionNotFound],
  }) satisfies Call<unknown>;

/** Get the account, its usage and its limits. */
export const me = () => ({ method: "GET", path: "/auth/me", decode: decoders.me }) satisfies Call<unknown>;

/** Get a page of the account's log, before an entry. */
export const log = (before: string | undefined) =>
  ({
    method: "GET",
    path: "/auth/events",
    query: before === undefined ? [] : [["before", before]],
    decode: decoders.events,
  }) satisfies Call<unknown>;

/** Another password, with the keyring that is sealed for it. */
export const changePassword = (
  current: string,
  password: string,
  kdf: object,
  keyring: string,
  keyringVersion: number,
  newVersion: number,
  factor?: Factor,
) =>
  ({
    method: "PUT",
    path: "/auth/password",
    body: withFactor(
      { currentPassword: current, newPassword: password, kdf, keyring, keyringVersion, keyringNewVersion: newVersion },
      factor,
    ),
    decode: decoders.ignored,
    refusals: { 401: errors.InvalidCredentials },
    alreadyDone: [errors.InvalidCredentials, errors.InvalidSecondFactor],
    secrets: [password, ...proofSecrets(current, factor)],
  }) satisfies Call<unknown>;

/** Delete the account. */
export const deleteAccount = (password: string, factor?: Factor) =>
  ({
    method: "DELETE",
    path: "/auth/me",
    body: withFactor({ password }, factor),
    decode: decoders.ignored,
    alreadyDone: [errors.Unauthorized],
    secrets: proofSecrets(password, factor),
  }) satisfies Call<unknown>;

/** Create an API key. Not idempotent: sent twice, it creates two. */
export const makeKey = (name: string, scopes: object) =>
  ({
    method: "POST",
    path: "/auth/api-keys",
    body: JSON.stringify({ name, ...scopes }),
    decode: decoders.newKey,
    refusals: { 404: errors.VaultNotFound },
    kinds: [errors.TooManyApiKeys],
    idempotent: false,
  }) satisfies Call<unknown>;

/** List the API keys. */
export const listKeys = () =>
  ({ method: "GET", path: "/auth/api-keys", decode: decoders.keys, maxBytes: LARGE }) satisfies Call<unknown>;

/** Revoke an API key. */
export const revokeKey = (uid: string) =>
  ({
    method: "DELETE",
    path: `/auth/api-keys/${pathPart(uid)}`,
    decode: decoders.ignored,
    refusals: { 404: errors.ApiKeyNotFound },
    alreadyDone: [errors.ApiKeyNotFound],
  }) satisfies Call<unknown>;

/** Open the stream of the account's export. */
export const exportAccount = () =>
  ({
    method: "GET",
    path: "/auth/export",
    decode: decoders.ignored,
    accept: "application/x-ndjson",
  }) satisfies Call<unknown>;

/** Import the file of an account, after a line with the password as the proof. */
export const importAccount = (body: Blob, password: string) =>
  ({
    method: "POST",
    path: "/auth/import",
    body,
    decode: decoders.imported,
    refusals: { 409: errors.ImportUnfinished },
    kinds: [errors.AccountNotEmpty],
    secrets: [password],
    wait: 60,
  }) satisfies Call<unknown>;

/** Give up an unfinished import: what came in is deleted. */
export const abandonImport = () =>
  ({
    method: "DELETE",
    path: "/auth/import",
    decode: decoders.ignored,
    refusals: { 404: errors.ImportNotFound },
    alreadyDone: [errors.ImportNotFound],
    wait: 60,
  }) satisfies Call<unknown>;
