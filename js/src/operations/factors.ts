// The proof of a second factor, where the server asks for one.
//
// A request is first sent without one, so that nobody is asked for a code that is not needed. The server cannot ask for
// ever: a person is asked for one factor a few times at the most.
import { Invalid, InvalidSecondFactor, type Refusal, SecondFactorRequired, Tampered } from "../errors.js";
import { checkedText } from "../format/encoding.js";
import { Factor } from "../net/call.js";
import type { SignedIn, User } from "../net/decoders.js";
import { login } from "../net/requests/accounts.js";
import { finishLogin as finishCall } from "../net/requests/secondFactors.js";
import type { Session } from "../net/session.js";
import type { Core } from "./core.js";
import { rare } from "../lazyImports.js";

/** What makes and uses passkeys: the browser (`browserAuthenticator`), or one of your own. */
export interface Authenticator {
  /** Make a passkey: `navigator.credentials.create` with these options, which are those of WebAuthn in JSON. */
  create(origin: string, options: Record<string, unknown>): Promise<unknown>;
  /** Use a passkey: `navigator.credentials.get` with these options, which are those of WebAuthn in JSON. */
  get(origin: string, options: Record<string, unknown>): Promise<unknown>;
}

/** A second factor: a code, what uses a passkey, or a function that is asked for one of them, and told why. */
export type Code = Given | ((refusal: Refusal) => Given | Promise<Given>);
type Given = string | Authenticator;

const MOST_ASKED = 3; // times that a person is asked for one factor
const REQUIRED =
  "This account has a second factor: give `code`, which is a one-time code, a recovery code, a function that asks for " +
  "one, or an authenticator with a passkey.";
const ANOTHER =
  "The server asks for another second factor, and each code counts once: give a function as `code` that asks for each, " +
  "or an authenticator with a passkey.";
const NO_TICKET = "The server asks for a second factor, and gives no ticket to send it with.";

/** Where the second factors of one operation come from. A code that was given as a text is used once. */
export class FactorSource {
  /** A factor that was made for this operation, which is sent before the server asks. */
  readonly made: Factor | undefined;
  readonly #given: Code | undefined;
  #used = false;

  constructor(given?: Code | Factor) {
    if (given instanceof Factor) this.made = given;
    else this.#given = given;
  }

  /** The factor that the server asks for, at a login with this ticket; throws the refusal if there is none. */
  async answer(session: Session, refusal: Refusal, ticket?: string): Promise<Factor> {
    const given = this.#given;
    if (given === undefined || this.#used) {
      if (refusal instanceof SecondFactorRequired) refusal.message = given === undefined ? REQUIRED : ANOTHER;
      throw withoutTicket(refusal);
    }
    this.#used = typeof given === "string";
    const found = typeof given === "function" ? await given(withoutTicket(refusal)) : given;
    if (typeof found === "object" && found !== null) return (await rare()).ceremonies.prove(session, found, ticket);
    return readCode(found);
  }
}

/** A one-time code if it has six digits, with or without a space; otherwise a recovery code. */
export function readCode(code: unknown): Factor {
  const typed = checkedText(code, "code").trim();
  if (/^[0-9]{3} ?[0-9]{3}$/.test(typed)) return new Factor({ code: typed.replace(" ", "") });
  if (!typed || typed.length > 100)
    throw new Invalid({ code: "must be a one-time code of six digits, or a recovery code" });
  return new Factor({ recoveryCode: typed });
}

function withoutTicket(refusal: Refusal): Refusal {
  delete refusal.details?.ticket;
  return refusal;
}

/** Send a request; where the server asks for a second factor, again with one. */
export const prove = <T>(session: Session, source: FactorSource, send: (factor?: Factor) => Promise<T>): Promise<T> =>
  proven(session, source, send, source.made);

async function proven<T>(
  session: Session,
  source: FactorSource,
  send: (factor?: Factor) => Promise<T>,
  first?: Factor,
  ticket?: string,
): Promise<T> {
  let factor = first;
  for (let asked = ticket === undefined ? 0 : 1; ; asked += 1) {
    try {
      return await send(factor);
    } catch (refusal) {
      if (!(refusal instanceof SecondFactorRequired || refusal instanceof InvalidSecondFactor)) throw refusal;
      if (asked === MOST_ASKED) throw withoutTicket(refusal);
      factor = await source.answer(session, refusal, ticket);
    }
  }
}

/** Finish a login whose password was right, with a second factor. */
export async function finishLogin(
  session: Session,
  required: SecondFactorRequired,
  source: FactorSource,
): Promise<SignedIn> {
  const ticket = required.details?.ticket;
  if (typeof ticket !== "string" || !ticket) throw new Tampered(NO_TICKET);
  const first = await source.answer(session, required, ticket);
  const send = (factor = first): Promise<SignedIn> => session.send(finishCall(ticket, factor));
  return proven(session, source, send, first, ticket);
}

/** Log in with the auth key of a password, and the second factor if the account has one. */
export async function openSession(core: Core, email: string, password: string, source: FactorSource): Promise<User> {
  let opened: SignedIn;
  try {
    opened = await core.session.send(login(email, password, core.deviceName));
  } catch (refusal) {
    if (!(refusal instanceof SecondFactorRequired)) throw refusal;
    opened = await finishLogin(core.session, refusal, source);
  }
  return core.begin(email, opened);
}
