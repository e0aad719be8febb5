/** An API call as a value: what is sent, how its response is decoded, what its errors mean. */

import type { RefusalClass } from "../errors.js";

/** Bytes of a response without ciphertext. */
export const SMALL = 1 << 20;
/** Bytes of a response with documents or a blob. */
export const LARGE = 2 ** 31;

/** An API call: a request, and how its response is read. */
export interface Call<T> {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** Reads the body; the decoders refuse what no server can answer. */
  decode: (body: Uint8Array) => T;
  query?: [string, string][];
  /** JSON, spelled; or a file, which names its type. */
  body?: string | Blob;
  accept?: string;
  /** The classes of statuses, for an error without a known code. */
  refusals?: Record<number, RefusalClass>;
  /** Classes that it may get, and that few other requests get. */
  kinds?: RefusalClass[];
  /** Whether a retry is safe; true unless said otherwise. */
  idempotent?: boolean;
  /** Whether a token or an API key is sent; true unless said otherwise. */
  authenticated?: boolean;
  /** What must not appear in an error. */
  secrets?: string[];
  /** The errors of a retry whose first attempt succeeded without a response. */
  alreadyDone?: RefusalClass[];
  /** The most bytes that a response may have. */
  maxBytes?: number;
  /** Seconds that the server may wait before it answers. */
  wait?: number;
  /** Of the keyring whose keys the body is sealed with; a server with a newer one refuses it. */
  keyringVersion?: number | undefined;
}

/** The bytes of a call's body. */
export const sizeOf = ({ body = "" }: Call<unknown>): number => new Blob([body]).size;

/** A second factor as it is sent: a one-time code, a recovery code, or the assertion of a passkey. */
export class Factor {
  readonly #sent: Record<string, unknown>;

  constructor(sent: Record<string, unknown>) {
    this.#sent = sent;
  }

  /** What is sent. */
  get sent(): Record<string, unknown> {
    return this.#sent;
  }
}

/** A body with the second factor beside the password, if there is one. */
export const withFactor = (body: Record<string, unknown>, factor?: Factor): string =>
  JSON.stringify(factor ? { ...body, secondFactor: factor.sent } : body);

/** What must not appear in an error of a request with this password and second factor. */
export const proofSecrets = (password: string, factor?: Factor): string[] =>
  [password, ...Object.values(factor?.sent ?? {})].filter((value) => typeof value === "string");

/** A text as one part of a path. */
export const pathPart = encodeURIComponent;
