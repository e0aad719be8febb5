/** Requests about the server itself. */

import type { Call } from "../call.js";
import * as decoders from "../decoders.js";

/** Get the epoch of the server's database. */
export const health = () =>
  ({ method: "GET", path: "/health", decode: decoders.health, authenticated: false }) satisfies Call<unknown>;
