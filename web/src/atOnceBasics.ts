// In the place of the client's laterBasics.ts: as atOnce.ts.
import * as argon2id from "../../js/src/argon2/argon2id.js";
import type * as later from "../../js/src/laterBasics.js";
import * as errors from "../../js/src/net/connectionErrors.js";

export const argon2: typeof later.argon2 = async () => argon2id;
export const connectionErrors: typeof later.connectionErrors = async () => errors;
