// Passkeys that open a keyring: which credential a slot is for.
import { Invalid } from "../errors.js";
import { type Bytes, equal, fromText, items, splitItems } from "./encoding.js";

const SLOT = "slot-passkey";

/** A credential, by the rp id that it was made for and its id. Holds no secret. */
export interface PasskeyId {
  readonly rpId: string;
  readonly credential: Bytes;
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

/** The credential that a slot is for, by the slot's associated data; null where that is none. */
export function passkeyOfSlot(associated: Bytes, account: Bytes): PasskeyId | null {
  const [, , rpId, credential] = splitItems(associated) ?? [];
  if (!rpId || !credential) return null;
  const name = fromText(rpId) ?? "";
  const found = { rpId: name, credential };
  return isPasskey(name, credential) === null && equal(passkeySlot(account, found), associated) ? found : null;
}

/** The associated data of a credential's slot. */
export const passkeySlot = (account: Bytes, { rpId, credential }: PasskeyId): Bytes =>
  items(SLOT, account, rpId, credential);
