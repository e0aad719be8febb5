// As lazyImports.ts, for what the format and the network load: apart from it, since the parts there are built on these.

/** Argon2id. */
export const argon2 = () => import("./argon2/argon2id.js");
/** Reasons for which there is no response, where a runtime tells them. */
export const connectionErrors = () => import("./net/connectionErrors.js");
