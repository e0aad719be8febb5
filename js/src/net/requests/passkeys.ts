/** Requests of passkeys. */

import * as errors from "../../errors.js";
import { type Call, type Factor, pathPart, proofSecrets, withFactor } from "../call.js";
import * as decoders from "../decoders.js";

const PASSKEYS = "/auth/passkeys";
const kinds = [
  errors.InvalidTicket,
  errors.PasskeyNotFound,
  errors.PasskeyTaken,
  errors.PasskeysUnavailable,
  errors.SecondFactorNotFound,
  errors.TooManyPasskeys,
];

/** The options of a login with a passkey, or of one as the second factor of the login with this ticket. */
export const beginLogin = (ticket?: string) =>
  ({
    method: "POST",
    path: `${PASSKEYS}/login/options`,
    body: JSON.stringify({ ticket }),
    decode: decoders.ceremony,
    refusals: { 401: errors.InvalidTicket },
    kinds,
    secrets: ticket === undefined ? [] : [ticket],
    authenticated: false,
  }) satisfies Call<unknown>;

/** Log in with a passkey. Not idempotent: the challenge is good once. */
export const login = (credential: object, deviceName?: string) =>
  ({
    method: "POST",
    path: `${PASSKEYS}/login`,
    body: JSON.stringify({ credential, deviceName }),
    decode: decoders.signedIn,
    refusals: { 401: errors.InvalidPasskey },
    kinds,
    authenticated: false,
    idempotent: false,
  }) satisfies Call<unknown>;

/** The options with which a passkey of the account is proven. */
export const beginProof = () =>
  ({ method: "POST", path: `${PASSKEYS}/proof/options`, decode: decoders.ceremony, kinds }) satisfies Call<unknown>;

/** The options with which a passkey is made. */
export const beginRegistration = (password: string, factor?: Factor) =>
  ({
    method: "POST",
    path: `${PASSKEYS}/registration/options`,
    body: withFactor({ currentPassword: password }, factor),
    decode: decoders.ceremony,
    refusals: { 401: errors.InvalidCredentials },
    kinds,
    secrets: proofSecrets(password, factor),
    idempotent: factor === undefined,
  }) satisfies Call<unknown>;

/** Register a passkey. Not idempotent: the challenge is good once. */
export const add = (name: string, credential: object, prf: boolean) =>
  ({
    method: "POST",
    path: PASSKEYS,
    body: JSON.stringify({ name, credential, prf }),
    decode: decoders.addedPasskey,
    refusals: { 401: errors.InvalidPasskey, 409: errors.PasskeyTaken },
    kinds,
    idempotent: false,
  }) satisfies Call<unknown>;

/** List the passkeys. */
export const list = () => ({ method: "GET", path: PASSKEYS, decode: decoders.passkeys, kinds }) satisfies Call<unknown>;

/** Rename a passkey. */
export const rename = (uid: string, name: string) =>
  ({
    method: "PUT",
    path: `${PASSKEYS}/${pathPart(uid)}`,
    body: JSON.stringify({ name }),
    decode: decoders.ignored,
    refusals: { 404: errors.PasskeyNotFound },
    kinds,
  }) satisfies Call<unknown>;

/** Delete a passkey. */
export const remove = (uid: string, password: string, factor?: Factor) =>
  ({
    method: "DELETE",
    path: `${PASSKEYS}/${pathPart(uid)}`,
    body: withFactor({ currentPassword: password }, factor),
    decode: decoders.ignored,
    refusals: { 401: errors.InvalidCredentials, 404: errors.PasskeyNotFound },
    kinds,
    alreadyDone: [errors.PasskeyNotFound],
    secrets: proofSecrets(password, factor),
  }) satisfies Call<unknown>;
