// Ceremonies with passkeys: what an authenticator is asked, and what of its response is sent.
//
// The options of a server are not passed on as they are: the rp id must be this server's host, user verification is
// always required, and the input of the PRF is the format's. Of a response only what a server needs is sent: never the
// output of the PRF, which opens the account.
import { CeremonyFailed, Refusal, WrongServer } from "../errors.js";
import { fromUrl, toUrl } from "../format/encoding.js";
import { type PasskeySecret, passkeySecret, PRF_INPUT } from "../format/passkeySecret.js";
import { Factor } from "../net/call.js";
import { integer, list, object, type Read, text } from "../net/decoders.js";
import { beginLogin, beginProof } from "../net/requests/passkeys.js";
import type { Session } from "../net/session.js";
import type { Authenticator } from "./factors.js";

const UNREADABLE = "The authenticator gave a response that cannot be read.";
const signed: Read<number> = (value) => (Number(value) < 0 ? -integer(-Number(value)) : integer(value));
const publicKey: Read<"public-key"> = () => "public-key";
const credentials = list(object({ type: publicKey, id: text }));
const creationOptions = object({
  rp: object({ id: text, name: text }),
  user: object({ id: text, name: text, displayName: text }),
  challenge: text,
  pubKeyCredParams: list(object({ type: publicKey, alg: signed })),
  timeout: integer,
  excludeCredentials: credentials,
});
const requestOptions = object({ challenge: text, timeout: integer, rpId: text, allowCredentials: credentials });
const maybe =
  <T>(read: Read<T>): Read<T | undefined> =>
  (value) =>
    value == null ? undefined : read(value);
const extensions = maybe(
  object({ prf: maybe(object({ enabled: (value) => value === true, results: maybe(object({ first: text })) })) }),
);
const registered = object({
  id: text,
  response: object({ clientDataJSON: text, attestationObject: text }),
  clientExtensionResults: extensions,
});
const used = object({
  id: text,
  response: object({ clientDataJSON: text, authenticatorData: text, signature: text, userHandle: maybe(text) }),
  clientExtensionResults: extensions,
});

/** A passkey that was made: what is sent of it, and whether its authenticator has the PRF. */
export interface Made {
  readonly credentialId: string;
  readonly sent: object;
  readonly prf: boolean;
  readonly rpId: string;
}

/** A passkey that was used: what is sent of it, and what opens the account, if it was asked for and given. */
export interface Asserted {
  readonly credentialId: string;
  readonly sent: object;
  readonly secret: PasskeySecret | undefined;
}

function requireHost({ connection: { host } }: Session, rpId: string): void {
  if (rpId && rpId === host) return;
  const shown = /^[a-z0-9.-]{1,253}$/.test(rpId) ? rpId : "another host";
  throw new WrongServer(
    `The server's passkeys are for ${shown}, and this client reaches it as ${host}. Use the address that its operator ` +
      "has set as PUBLIC_URL. If you have never heard of that name, do not trust the server.",
  );
}

/** What of an authenticator's response can be read; an error would show the response, so there is another one. */
function readResponse<T>(read: () => T): T {
  try {
    return read();
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
  }
  throw new CeremonyFailed(UNREADABLE);
}

const sent = (id: string, response: object): object => ({ id, rawId: id, type: "public-key", response });
const originOf = ({ connection: { url } }: Session): string => new URL(url).origin;

/** Make a passkey. */
export async function create(session: Session, authenticator: Authenticator, given: unknown): Promise<Made> {
  const options = creationOptions(given);
  const { id: rpId } = options.rp;
  requireHost(session, rpId);
  const answer = await authenticator.create(originOf(session), {
    ...options,
    attestation: "none",
    authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
    extensions: { prf: {} },
  });
  return readResponse(() => {
    const { id, response, clientExtensionResults } = registered(answer);
    fromUrl(id);
    return { credentialId: id, sent: sent(id, response), prf: clientExtensionResults?.prf?.enabled === true, rpId };
  });
}

/** Use a passkey; with `unlock`, to open the account as well. `only` is the one that is meant, by its id. */
export async function get(
  session: Session,
  authenticator: Authenticator,
  given: unknown,
  unlock: boolean,
  only?: string,
): Promise<Asserted> {
  const options = requestOptions(given);
  const { rpId } = options;
  requireHost(session, rpId);
  const answer = await authenticator.get(originOf(session), {
    ...options,
    userVerification: "required",
    ...(only !== undefined && { allowCredentials: [{ type: "public-key", id: only }] }),
    ...(unlock && { extensions: { prf: { eval: { first: toUrl(PRF_INPUT) } } } }),
  });
  const asserted = readResponse(() => {
    const { id, response, clientExtensionResults } = used(answer);
    const first = unlock ? clientExtensionResults?.prf?.results?.first : undefined;
    const secret = first === undefined ? undefined : passkeySecret(rpId, fromUrl(id), fromUrl(first));
    return { credentialId: id, sent: sent(id, response), secret };
  });
  if (only !== undefined && asserted.credentialId !== only)
    throw new CeremonyFailed("The authenticator used another passkey.");
  return asserted;
}

/** Use a passkey as a second factor: of the session, or of the login with this ticket. */
export async function prove(session: Session, authenticator: Authenticator, ticket?: string): Promise<Factor> {
  const { publicKey: options } = await session.send(ticket === undefined ? beginProof() : beginLogin(ticket));
  return new Factor({ passkey: (await get(session, authenticator, options, false)).sent });
}
