// The end of a session whose keys are forgotten already: the server is told as soon as it can be reached.
import { Later, Unreachable } from "../errors.js";
import type { Connection } from "../net/http.js";
import { logout } from "../net/requests/accounts.js";
import { Session, sleep, type TokenPair } from "../net/session.js";

const PAUSE = 5; // seconds between two attempts

/** End the session of these tokens on the server, as soon as it can be reached; false if it refuses or `signal` ends that. */
export async function endTokens(connection: Connection, tokens: TokenPair, signal?: AbortSignal): Promise<boolean> {
  // A request that the page has begun is sent although the page is closed.
  const fetchOn: typeof fetch = (input, init) => connection.fetch(input, { ...init, keepalive: true });
  const session = new Session({ ...connection, fetch: fetchOn }, { retries: 0 });
  session.useTokens(tokens[0], tokens[1]);
  while (!signal?.aborted) {
    try {
      await session.sendOrDone(logout(false));
      return true;
    } catch (refusal) {
      if (!(refusal instanceof Unreachable || refusal instanceof Later)) return !session.isOpen; // it has ended before
    }
    await sleep(PAUSE);
  }
  return false;
}
