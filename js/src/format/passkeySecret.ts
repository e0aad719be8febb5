// The passkey: a secret that an authenticator gives for a constant input (the PRF extension of WebAuthn).
//
// The input is the same for every account and credential, so one ceremony logs in and unlocks. What follows from the
// output is bound to the account, the rp id and the credential.
import { Invalid } from "../errors.js";
import { type Bytes, KEY, text } from "./encoding.js";
import { derive } from "./keys.js";
import { type PasskeyId, passkeyId } from "./passkey.js";
import { primitives } from "./primitives.js";
import { Secret } from "./secret.js";

/** `prf.eval.first`, in every ceremony. */
export const PRF_INPUT = text("strongroom/2/passkey-prf");

/** What an authenticator gave for the constant input, and the credential that gave it. */
export interface PasskeySecret extends PasskeyId {
  readonly output: Secret;
}

/** From a ceremony with user verification; an output of another length is the caller's mistake. */
export function passkeySecret(rpId: string, credential: Bytes, output: Bytes): PasskeySecret {
  if (output.length !== KEY) throw new Invalid({ output: `must have ${KEY} bytes` });
  return { ...passkeyId(rpId, credential), output: new Secret(output) };
}

/** The secret whose key pair opens a slot of this account's keyring. */
export async function passkeyWrap({ rpId, credential, output }: PasskeySecret, account: Bytes): Promise<Secret> {
  const digest = await primitives().sha256(credential); // some libraries take 1,024 bytes of info at the most
  return new Secret(await derive(await output.key(), "passkey-wrap", account, rpId, digest));
}
