// The passkey: a secret that an authenticator gives for a constant input (the PRF extension of WebAuthn).
//
// The input is the same for every account and credential, so one ceremony logs in and unlocks. What follows from the
// output is bound to the account, the rp id and the credential.
import { Invalid } from "../errors.js";
import { type Bytes, equal, fromText, items, KEY, splitItems, text } from "./encoding.js";
import { derive } from "./keys.js";
import { primitives } from "./primitives.js";
import { Secret } from "./secret.js";

/** `prf.eval.first`, in every ceremony. */
export const PRF_INPUT = text("strongroom/2/passkey-prf");
const SLOT = "slot-passkey";

/** A credential, by the rp id that it was made for and its id. Holds no secret. */
export interface PasskeyId {
  readonly rpId: string;
  readonly credential: Bytes;
}

/** What an authenticator gave for the constant input, and the credential that gave it. */
export interface PasskeySecret extends PasskeyId {
  readonly output: Secret;
}

const isPasskey = (rpId: string, credential: Uint8Array): Record<string, string> | null => {
  if (!/^[a-z0-9.-]{1,253}$/.test(rpId)) return { rp_id: "must be a host name of 1 to 253 characters in lower case" };
  return credential.length >= 1 && credential.length <= 1023 ? null : { credential: "must have 1 to 1023 bytes" };
};

/** A credential that a slot can be for; anything else is the caller's mistake. */
export function passkeyId(rpId: string, credential: Bytes): PasskeyId {
  const fault = isPasskey(rpId, credential);
  if (fault) throw new Invalid(fault);
  return { rpId, credential };
}

/** From a ceremony with user verification; an output of another length is the caller's mistake. */
export function passkeySecret(rpId: string, credential: Bytes, output: Bytes): PasskeySecret {
  if (output.length !== KEY) throw new Invalid({ output: `must have ${KEY} bytes` });
  return { ...passkeyId(rpId, credential), output: new Secret(output) };
}

/** The credential that a slot is for, by the slot's associated data; null where that is none. */
export function passkeyOfSlot(associated: Bytes, account: Bytes): PasskeyId | null {
  const [label, owner, rpId, credential, ...more] = splitItems(associated) ?? [];
  if (!label || !owner || !rpId || !credential || more.length) return null;
  const name = fromText(rpId) ?? "";
  const found = { rpId: name, credential };
  return isPasskey(name, credential) === null && equal(passkeySlot(account, found), associated) ? found : null;
}

/** The associated data of a credential's slot. */
export const passkeySlot = (account: Bytes, { rpId, credential }: PasskeyId): Bytes =>
  items(SLOT, account, rpId, credential);

/** The secret whose key pair opens a slot of this account's keyring. */
export async function passkeyWrap({ rpId, credential, output }: PasskeySecret, account: Bytes): Promise<Secret> {
  const digest = await primitives().sha256(credential); // some libraries take 1,024 bytes of info at the most
  return new Secret(await derive(await output.key(), "passkey-wrap", account, rpId, digest));
}
