// What an app imports from "@strongroom/client/passkeys": the browser as an authenticator.
import { CeremonyFailed } from "./errors.js";
import { type Bytes, fromUrl, toUrl } from "./format/encoding.js";
import type { Authenticator } from "./operations/factors.js";

export type { Authenticator };

type Json = Record<string, unknown>;
/** The members of WebAuthn's options that are bytes, and base64url in JSON. */
const BYTES = new Set(["challenge", "id", "first"]);

/** Options in JSON as the browser takes them. */
function toBuffers(value: unknown, name = "", parent = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => toBuffers(one, "", name));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toBuffers(one, key, name)]));
  return typeof value === "string" && BYTES.has(name) && parent !== "rp" ? fromUrl(value) : value;
}

const spelled = (raw: ArrayBuffer | null): string | undefined => (raw ? toUrl(new Uint8Array(raw)) : undefined);

/** A credential in JSON, with the output of the PRF, which `toJSON` of some browsers leaves out. */
function toJson(made: Credential | null): Json {
  if (!(made instanceof PublicKeyCredential)) throw new CeremonyFailed();
  const { response } = made;
  const { prf } = made.getClientExtensionResults() as {
    prf?: { enabled?: boolean; results?: { first?: BufferSource } };
  };
  const first = prf?.results?.first;
  return {
    id: made.id,
    response:
      response instanceof AuthenticatorAttestationResponse
        ? { clientDataJSON: spelled(response.clientDataJSON), attestationObject: spelled(response.attestationObject) }
        : response instanceof AuthenticatorAssertionResponse
          ? {
              clientDataJSON: spelled(response.clientDataJSON),
              authenticatorData: spelled(response.authenticatorData),
              signature: spelled(response.signature),
              userHandle: spelled(response.userHandle),
            }
          : {},
    clientExtensionResults: {
      prf: { enabled: prf?.enabled, ...(first && { results: { first: toUrl(bytesOf(first)) } }) },
    },
  };
}

const bytesOf = (source: BufferSource): Bytes =>
  source instanceof ArrayBuffer
    ? new Uint8Array(source)
    : new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();

/** Run a ceremony; that it was not allowed, or that nobody answered, is one error. */
async function run(origin: string, ceremony: () => Promise<Credential | null>): Promise<Json> {
  if (typeof PublicKeyCredential === "undefined" || !globalThis.navigator?.credentials)
    throw new CeremonyFailed("There are no passkeys here: they need a browser, and a page from HTTPS or localhost.");
  try {
    return toJson(await ceremony());
  } catch (fault) {
    if (!(fault instanceof DOMException)) throw fault;
    if (fault.name === "SecurityError")
      throw new CeremonyFailed(
        `This page may not use the passkeys of ${new URL(origin).hostname}: it is of another host.`,
      );
    throw new CeremonyFailed();
  }
}

/** The browser's own passkeys, by `navigator.credentials`. */
export const browserAuthenticator: Authenticator = {
  create: (origin, options) =>
    run(origin, () =>
      navigator.credentials.create({ publicKey: toBuffers(options) as PublicKeyCredentialCreationOptions }),
    ),
  get: (origin, options) =>
    run(origin, () =>
      navigator.credentials.get({ publicKey: toBuffers(options) as PublicKeyCredentialRequestOptions }),
    ),
};
