// In the place of the client's lazyBasicImports.ts: as eagerImports.ts.
import * as argon2id from "../../js/src/argon2/argon2id.js";
import type * as lazy from "../../js/src/lazyBasicImports.js";
import * as errors from "../../js/src/net/connectionErrors.js";

export const argon2: typeof lazy.argon2 = async () => argon2id;
export const connectionErrors: typeof lazy.connectionErrors = async () => errors;
