/** Requests of the keyring. */

import * as errors from "../../errors.js";
import { type Call, type Factor, proofSecrets, withFactor } from "../call.js";
import * as decoders from "../decoders.js";

/** Get the keyring. */
export const get = () => ({ method: "GET", path: "/auth/keyring", decode: decoders.keyring }) satisfies Call<unknown>;

/** Another keyring in the place of the one of this version. Where its slots change, the password is the proof. */
export const put = (keyring: string, version: number, newVersion: number, password?: string, factor?: Factor) =>
  ({
    method: "PUT",
    path: "/auth/keyring",
    body: withFactor({ keyring, version, newVersion, currentPassword: password }, factor),
    decode: decoders.keyring,
    refusals: password === undefined ? {} : { 401: errors.InvalidCredentials },
    alreadyDone: factor ? [errors.InvalidSecondFactor] : [],
    secrets: password === undefined ? [] : proofSecrets(password, factor),
  }) satisfies Call<unknown>;
