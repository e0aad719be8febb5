/** Requests of second factors: one-time codes and recovery codes. */

import * as errors from "../../errors.js";
import { type Call, type Factor, proofSecrets, withFactor } from "../call.js";
import * as decoders from "../decoders.js";

const TOTP = "/auth/second-factor/totp";

/** Finish a login with a second factor. Not idempotent: the ticket is good once. */
export const finishLogin = (ticket: string, factor: Factor) =>
  ({
    method: "POST",
    path: "/auth/email/login/second",
    body: withFactor({ ticket }, factor),
    decode: decoders.signedIn,
    refusals: { 401: errors.InvalidSecondFactor },
    kinds: [errors.InvalidTicket],
    secrets: proofSecrets(ticket, factor),
    authenticated: false,
    idempotent: false,
  }) satisfies Call<unknown>;

/** The second factors of the account. */
export const status = () =>
  ({ method: "GET", path: "/auth/second-factor", decode: decoders.secondFactors }) satisfies Call<unknown>;

/** Begin the enrolment of one-time codes. */
export const enrol = (password: string, factor?: Factor) =>
  ({
    method: "POST",
    path: TOTP,
    body: withFactor({ currentPassword: password }, factor),
    decode: decoders.enrolment,
    refusals: { 401: errors.InvalidCredentials },
    secrets: proofSecrets(password, factor),
    idempotent: factor === undefined,
  }) satisfies Call<unknown>;

/** Confirm the enrolment of one-time codes. Not idempotent: the recovery codes are shown once. */
export const confirm = (code: string) =>
  ({
    method: "POST",
    path: `${TOTP}/confirm`,
    body: JSON.stringify({ code }),
    decode: decoders.recoveryCodes,
    refusals: { 401: errors.InvalidSecondFactor, 404: errors.SecondFactorNotFound },
    secrets: [code],
    idempotent: false,
  }) satisfies Call<unknown>;

/** Delete the one-time codes. */
export const disable = (password: string, factor?: Factor) =>
  ({
    method: "DELETE",
    path: TOTP,
    body: withFactor({ currentPassword: password }, factor),
    decode: decoders.ignored,
    refusals: { 401: errors.InvalidCredentials, 404: errors.SecondFactorNotFound },
    alreadyDone: [errors.SecondFactorNotFound],
    secrets: proofSecrets(password, factor),
  }) satisfies Call<unknown>;

/** Replace the recovery codes. Not idempotent: they are shown once. */
export const newRecoveryCodes = (password: string, factor?: Factor) =>
  ({
    method: "POST",
    path: "/auth/second-factor/recovery-codes",
    body: withFactor({ currentPassword: password }, factor),
    decode: decoders.recoveryCodes,
    refusals: { 401: errors.InvalidCredentials, 404: errors.SecondFactorNotFound },
    secrets: proofSecrets(password, factor),
    idempotent: false,
  }) satisfies Call<unknown>;
