/**
 * HTTP over `fetch`: no redirects, no cookies, no cache.
 *
 * The size and the duration of a response are limited, and it must not be compressed where the runtime lets a client
 * ask for that: a hostile server can exhaust neither memory nor time.
 */

import { Invalid, Tampered, Unreachable, WrongServer } from "../errors.js";
import { connectionErrors } from "../lazyBasicImports.js";
import { type Call, SMALL } from "./call.js";

/** The version of this package. */
export const VERSION = "0.1.0";
const MIN_BYTES_PER_SECOND = 16_384; // once the timeout has passed
const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);
const LIKE = "like https://vault.example.com";
const REDIRECT =
  "The server redirects to another address, and nothing was sent there. Check the URL: is it https, and are host and path right? Use only an address that you trust.";

/** How a client reaches its server. */
export interface ConnectionOptions {
  /** Allow plain HTTP to another machine; whoever is in between can then read which documents change when. */
  insecure?: boolean;
  /** Seconds to wait for a response; 30 unless said otherwise. */
  timeout?: number;
  /** The function that sends requests; the runtime's own unless said otherwise. */
  fetch?: typeof fetch;
}

/** The address of a server, checked, and how to reach it. */
export interface Connection {
  url: string;
  /** The name of the server's host, as it stands in the URL. */
  host: string;
  timeout: number;
  fetch: typeof fetch;
}

/** A whole response. `retryAfter` is in seconds. */
export interface Answer {
  status: number;
  body: Uint8Array;
  retryAfter: number | undefined;
  /** Whether its media type is that of JSON. */
  isJson: boolean;
}

/** There is no response. `sent` is false if the request certainly has not arrived; `retry`: it may help. */
export class NoResponse extends Error {
  readonly error: Unreachable;
  readonly sent: boolean;
  readonly retry: boolean;

  constructor(error: Unreachable, sent: boolean, retry = true) {
    super();
    this.error = error;
    this.sent = sent;
    this.retry = retry;
  }
}

/** The address of a server, if it is https or on this machine. */
export const connect = (url: string, options: ConnectionOptions = {}): Connection => {
  const { timeout = 30 } = options;
  if (typeof url !== "string") throw new Invalid({ url: `must be a text ${LIKE}, not ${typeof url}` });
  if (!/^https?:\/\//i.test(url)) throw new Invalid({ url: `must begin with https://, ${LIKE}` });
  if (/[?#]/.test(url)) throw new Invalid({ url: `must not have a part after ? or #; it must be ${LIKE}` });
  if (/^\w+:\/\/[^/]*@/.test(url)) {
    throw new Invalid({ url: "must not hold a user name or a password; log in with login(email, password)" });
  }
  if (/[\s\\\u0000-\u0020\u007f-\u009f]/.test(url) || !URL.canParse(url) || new URL(url).port === "0") {
    throw new Invalid({ url: `names no host; it must be ${LIKE}` });
  }
  const { protocol, hostname } = new URL(url);
  if (protocol === "http:" && !LOCAL.has(hostname) && !options.insecure) {
    throw new Invalid({ url: "must begin with https://, or the connection can be read on its way; see insecure" });
  }
  if (typeof timeout !== "number" || !(timeout > 0 && timeout < Infinity)) {
    throw new Invalid({ timeout: "must be a number of seconds above 0" });
  }
  return {
    url: url.replace(/\/+$/, ""),
    host: hostname,
    timeout,
    fetch: options.fetch ?? ((...args) => fetch(...args)),
  };
};

/** A response of which only the head was read. It ends when the signal of its deadline does. */
export interface Opened {
  response: Response;
  deadline: Deadline;
  /** Whether a compressed response breaks what was asked for. */
  plain: boolean;
}

/** Aborts a request when the next part of its response does not come in time. */
export class Deadline {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal = this.#controller.signal;

  /** Wait at most this long from now on. */
  within(seconds: number): void {
    this.clear();
    this.#timer = setTimeout(() => this.#controller.abort(), Math.min(seconds * 1000, 2 ** 31 - 1));
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** Send a request, and read the head of its response. */
export const open = async (
  connection: Connection,
  call: Call<unknown>,
  bearer: string | undefined,
): Promise<Opened> => {
  const query = call.query?.length ? `?${new URLSearchParams(call.query)}` : "";
  const deadline = new Deadline();
  const headers: Record<string, string> = { accept: call.accept ?? "application/json", "accept-encoding": "identity" };
  if (bearer !== undefined) headers.authorization = `Bearer ${bearer}`;
  if (call.keyringVersion !== undefined) headers["keyring-version"] = `${call.keyringVersion}`;
  if (typeof call.body === "string") headers["content-type"] = "application/json";
  const request = new Request(`${connection.url}${call.path}${query}`, {
    method: call.method,
    headers,
    body: call.body ?? null,
    redirect: "manual",
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
    signal: deadline.signal,
  });
  const plain = request.headers.has("accept-encoding"); // a browser decides about compression itself
  if (plain) request.headers.set("user-agent", `strongroom-client-js/${VERSION}`);
  const seconds = connection.timeout + (call.wait ?? 0);
  const { body } = call;
  deadline.within(seconds + (typeof body === "string" ? body.length : (body?.size ?? 0)) / MIN_BYTES_PER_SECOND);
  try {
    const response = await connection.fetch(request);
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      throw new WrongServer(REDIRECT, { status: response.status });
    }
    if (plain && (response.headers.get("content-encoding") ?? "identity") !== "identity") {
      throw new Tampered("The server's answer is compressed, although it was asked not to be.");
    }
    return { response, deadline, plain };
  } catch (error) {
    deadline.clear();
    throw await noResponse(error, connection, deadline, seconds);
  }
};

/** Send a request and read its response. */
export const send = async (connection: Connection, call: Call<unknown>, bearer?: string): Promise<Answer> => {
  const { response, deadline } = await open(connection, call, bearer);
  return read(connection, call, response, deadline);
};

/** Read the rest of a response, within its limits. */
export const read = async (
  connection: Connection,
  call: Call<unknown>,
  response: Response,
  deadline: Deadline,
): Promise<Answer> => {
  const seconds = connection.timeout + (call.wait ?? 0);
  const end = Date.now() + seconds * 1000;
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  try {
    while (reader) {
      deadline.within(seconds);
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > (call.maxBytes ?? SMALL)) {
        throw new Tampered("The server's answer is longer than any answer to this request can be.");
      }
      if (Date.now() > end + (length / MIN_BYTES_PER_SECOND) * 1000) {
        const told = "The server sent its response too slowly; pass a longer timeout if the network is slow.";
        throw new NoResponse(new Unreachable(told, "timeout"), true);
      }
      parts.push(value);
    }
  } catch (error) {
    reader?.cancel().catch(() => undefined);
    throw await noResponse(error, connection, deadline, seconds);
  } finally {
    deadline.clear();
  }
  const after = response.headers.get("retry-after") ?? "";
  const type = response.headers.get("content-type") ?? "";
  return {
    status: response.status,
    body: joined(parts, length),
    retryAfter: /^\d{1,6}$/.test(after) ? Number(after) : undefined,
    isJson: type.split(";")[0]?.trim().toLowerCase() === "application/json",
  };
};

const joined = (parts: Uint8Array[], length: number): Uint8Array => {
  const [only] = parts;
  if (parts.length === 1 && only) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};

/** What an error of `fetch` means. A browser does not say why there is no response; other runtimes give codes. */
const noResponse = async (
  error: unknown,
  { host }: Connection,
  deadline: Deadline,
  seconds: number,
): Promise<unknown> => {
  if (error instanceof WrongServer || error instanceof Tampered || error instanceof NoResponse) return error;
  if (deadline.signal.aborted) {
    const told = `The server ${host} did not answer within ${seconds} seconds; pass a longer timeout if it is slow.`;
    return new NoResponse(new Unreachable(told, "timeout", { host }), true);
  }
  const codes = causes(error);
  if (!codes.length) return new NoResponse(new Unreachable(undefined, "no_response", { host }), true);
  const { error: refused, sent, retry } = (await connectionErrors()).explained(codes, host);
  return new NoResponse(refused, sent, retry);
};

/** The codes of an error and of what led to it. */
const causes = (error: unknown, depth = 0): string[] => {
  if (!(error instanceof Error) || depth > 5) return [];
  const code = "code" in error && typeof error.code === "string" ? [error.code] : [];
  const more = error instanceof AggregateError ? error.errors.flatMap((one) => causes(one, depth + 1)) : [];
  return [...code, ...more, ...causes(error.cause, depth + 1)];
};
