// Sessions that outlive a page or a program: loaded when they are used for the first time.
import type { ConnectionOptions, Connection } from "./net/http.js";
import type { SavedTokens, TokenPair } from "./net/session.js";
import type { Core } from "./operations/core.js";
import { endTokens } from "./operations/ending.js";
import * as savedSessions from "./operations/savedSessions.js";
import type { SessionPlace } from "./operations/savedSessions.js";
import { sessionDatabase } from "./operations/sessionDatabase.js";

/** Where a session is: a name is that of a place in IndexedDB. */
type Place = string | SessionPlace | undefined;
const placeOf = (place: Place = "strongroom"): SessionPlace =>
  typeof place === "string" ? sessionDatabase(place) : place;

/** A saved session: the address of its server, and what continues it. */
export const open = (place: Place) => savedSessions.open(placeOf(place));
/** Save the session, and keep it in step from now on. */
export const save = (core: Core, place: Place) => savedSessions.save(core, placeOf(place));
/** Delete a saved session at once; what ends it on the server. */
export const forget = (place: Place, options?: ConnectionOptions) => savedSessions.forget(placeOf(place), options);

/** Delete what is saved, and end the session of these tokens as soon as the server can be reached; whether it has. */
export async function end(
  connection: Connection,
  tokens: TokenPair | undefined,
  saved: SavedTokens | undefined,
  signal?: AbortSignal,
): Promise<boolean> {
  const [isEnded] = await Promise.all([!tokens || endTokens(connection, tokens, signal), saved?.delete()]);
  return isEnded;
}
