// What few programs need, or need once: it is loaded, in one piece, when it is used for the first time.
export * as adoption from "./operations/adoption.js";
export * as batches from "./operations/batches.js";
export * as blobs from "./operations/blobs.js";
export * as ceremonies from "./operations/ceremonies.js";
export * as collections from "./operations/collections.js";
export * as credentials from "./operations/credentials.js";
export * as deletions from "./operations/deletions.js";
export * as descent from "./operations/descent.js";
export * as history from "./operations/history.js";
export * as passkeys from "./operations/passkeys.js";
export * as rotation from "./operations/rotation.js";
export * as secondFactors from "./operations/secondFactors.js";
export * as sessionsAndKeys from "./operations/sessionsAndKeys.js";
export * as tokens from "./operations/tokens.js";
export * as trash from "./operations/trash.js";
export * as usageAndLog from "./operations/usageAndLog.js";
export * as vaultChanges from "./operations/vaultChanges.js";
