/**
 * Maps error responses to errors: the class that the server raised is raised here.
 *
 * Nothing in an error is trusted. Its code counts only among the server's classes, never among the client's; its
 * message is the client's own; of its details only numbers and short texts remain, and none that contains a secret.
 */

import {
  AccountDisabled,
  BatchConflict,
  codeOf,
  Conflict,
  type Details,
  DocumentConflict,
  DocumentNotFound,
  EmailAlreadyExists,
  ImportUnfinished,
  InsufficientScope,
  InternalError,
  Invalid,
  InvalidCredentials,
  InvalidInvitation,
  InvalidPasskey,
  InvalidRefreshToken,
  InvalidSecondFactor,
  KeyringConflict,
  KeyringNotFound,
  Later,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  QuotaExceeded,
  RateLimited,
  Refusal,
  type RefusalClass,
  RequestTimeout,
  SecondFactorRequired,
  SignupsClosed,
  StorageFull,
  Tampered,
  UidTaken,
  Unauthorized,
  Unavailable,
  Unreachable,
  UnsupportedMediaType,
  VaultAlreadyExists,
  VaultConflict,
  VaultNotFound,
  WrongServer,
} from "../errors.js";
import type { Call } from "./call.js";
import { isObject, parse } from "./decoders.js";
import type { Answer } from "./http.js";

/**
 * The classes that any request may get, by their codes.
 *
 * Those of a few requests are not here: such a request names them, so that an app without it does without them.
 */
const CODES = new Map<string, RefusalClass>(
  [
    Invalid,
    Unauthorized,
    InvalidCredentials,
    InvalidRefreshToken,
    SecondFactorRequired,
    InvalidSecondFactor,
    InvalidPasskey,
    InsufficientScope,
    AccountDisabled,
    SignupsClosed,
    InvalidInvitation,
    NotFound,
    VaultNotFound,
    DocumentNotFound,
    KeyringNotFound,
    MethodNotAllowed,
    EmailAlreadyExists,
    VaultAlreadyExists,
    UidTaken,
    ImportUnfinished,
    BatchConflict,
    DocumentConflict,
    VaultConflict,
    KeyringConflict,
    RequestTimeout,
    PayloadTooLarge,
    UnsupportedMediaType,
    RateLimited,
    StorageFull,
    QuotaExceeded,
    Unavailable,
    InternalError,
  ].map((kind) => [codeOf(kind), kind]),
);
/** The class of a status, if the code in the body is unknown. */
const BY_STATUS: Record<number, RefusalClass> = {
  400: Invalid,
  401: Unauthorized,
  403: InsufficientScope,
  404: NotFound,
  405: MethodNotAllowed,
  408: RequestTimeout,
  415: UnsupportedMediaType,
  429: RateLimited,
  507: StorageFull,
};
const said = new WeakSet<Refusal>();
const MAX_TEXT = 200;

/** Whether words in the message of an error are the server's: an app that shows them says so. */
export const isSaidByServer = (fault: Refusal): boolean => said.has(fault);
const MAX_DEPTH = 4;

/** The error for an error response. `size` is that of the request, in bytes. */
export const refusal = (
  answer: Answer,
  { refusals: expected = {}, kinds }: Call<unknown>,
  secrets: string[],
  url: string,
  size: number,
): Refusal => {
  const { status } = answer;
  const found = faultOf(answer.body);
  if (status === 413) return tooLarge(found, size);
  if (!found && !(answer.isJson && !answer.body.length)) {
    const other = fromAnotherProgram(answer, url);
    if (other) return other;
  }
  const code = String(found?.code);
  let kind = CODES.get(code) ?? kinds?.find((one) => codeOf(one) === code);
  if (!kind || !isPlausible(kind, status)) kind = expected[status] ?? BY_STATUS[status];
  if (!kind) {
    if (status < 500) return new Tampered("The server gave an answer that no request of this kind can get.");
    kind = status >= 502 && status <= 504 ? Unavailable : InternalError;
  }
  const { retryAfter } = answer;
  const told =
    kind === RateLimited && retryAfter !== undefined
      ? `Too many attempts; the server asks to wait ${retryAfter.toLocaleString("en-US")} seconds.`
      : undefined;
  const details = sanitised(found?.details, secrets);
  return build(kind, isObject(details) ? details : undefined, retryAfter, told);
};

/** The error for a response that no strongroom server gives. */
export const wrongServer = ({ status, body }: Answer, url: string): Refusal => {
  const first = body.find((byte) => byte > 32);
  const what = first === 60 ? "a web page" : "something else";
  return new WrongServer(
    `${url} answered ${status} with ${what}, not as a strongroom server does. Check the URL, its path included, and whether a proxy or a login page of the network is in between.`,
    { status },
  );
};

/** The error for a response that strongroom has not written: every error of a server has a code. */
const fromAnotherProgram = (answer: Answer, url: string): Refusal | undefined => {
  const { status } = answer;
  // Statuses of proxies whose server is away or slow; those above 504 are of content delivery networks.
  if ((status >= 502 && status <= 504) || (status >= 520 && status <= 530)) {
    const told = `A proxy before the server answered ${status}: the server behind ${url} is away or too slow at the moment.`;
    const made = new Unreachable(told, "behind_proxy", { status });
    made.retryAfter = answer.retryAfter ?? 1;
    return made;
  }
  return status >= 400 && status < 500 && status !== 408 && status !== 429 ? wrongServer(answer, url) : undefined;
};

const tooLarge = (found: Details | undefined, size: number): Refusal => {
  const limit = isObject(found?.details) ? found.details.limit : undefined;
  if (Number.isSafeInteger(limit)) {
    const told = `The request has ${grouped(size)} bytes, and this server takes at most ${grouped(Number(limit))}; store it in smaller parts.`;
    return new PayloadTooLarge(told, { size, limit });
  }
  const who = found ? "the server" : "a proxy before the server";
  return new PayloadTooLarge(
    `The request has ${grouped(size)} bytes, which is more than ${who} takes; store it in smaller parts.`,
    { size },
  );
};

const grouped = (number: number): string => number.toLocaleString("en-US");

const faultOf = (body: Uint8Array): Details | undefined => {
  try {
    const found = parse(body);
    return isObject(found) && isObject(found.error) ? found.error : undefined;
  } catch {
    return undefined;
  }
};

/** Whether a class can have this status: a missing vault is no server error, and a server error is no conflict. */
const isPlausible = ({ prototype }: RefusalClass, status: number): boolean => {
  const is = (...kinds: RefusalClass[]): boolean =>
    kinds.some((one) => prototype === one.prototype || prototype instanceof one);
  if (is(Conflict)) return status === 409 || status === 412;
  if (is(NotFound)) return status === 404;
  if (is(Unavailable, InternalError, StorageFull, QuotaExceeded)) return status >= 500;
  return status >= 400 && status < 500;
};

/** An instance of this class, whatever arguments its constructor takes. */
const build = (kind: RefusalClass, details?: Details, retryAfter?: number, message?: string): Refusal => {
  const made: Refusal = Reflect.construct(Refusal, [message, details], kind);
  if (made instanceof Invalid) {
    const fields = isObject(details?.fields) ? details.fields : {};
    const invalid = new Invalid(
      Object.fromEntries(Object.entries(fields).map(([name, why]) => [name, String(why ?? "")])),
    );
    said.add(invalid);
    return invalid;
  }
  if (made instanceof Later) made.retryAfter = retryAfter ?? 1;
  return made;
};

/** Details without secrets, long texts and deep nesting. */
const sanitised = (value: unknown, secrets: string[], depth = 0): unknown => {
  if (value === null || typeof value === "boolean" || Number.isSafeInteger(value)) return value;
  if (typeof value === "string") return isShowable(value, secrets) ? value : "";
  if (depth >= MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.map((one) => sanitised(one, secrets, depth + 1));
  if (!isObject(value)) return null;
  const entries = Object.entries(value).filter(([key]) => isShowable(key, secrets));
  return Object.fromEntries(entries.map(([key, one]) => [key, sanitised(one, secrets, depth + 1)]));
};

const isShowable = (text: string, secrets: string[]): boolean =>
  text.length <= MAX_TEXT && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) && !secrets.some((secret) => text.includes(secret));
