// What an app imports from "@strongroom/client".
export { Client, type ClientOptions } from "./client.js";
export * from "./errors.js";
export { type CodeOptions, Passkeys, SecondFactor } from "./factors.js";
export type { ApiKey, Enrolment, Event, ListedSession, SecondFactors, User } from "./net/decoders.js";
export type { ConnectionOptions } from "./net/http.js";
export type { RetryOptions } from "./net/session.js";
export { type Many, WriteResult } from "./operations/batches.js";
export { Blob } from "./operations/blobs.js";
export { Document } from "./operations/documents.js";
export type { Authenticator, Code } from "./operations/factors.js";
export type { Version } from "./operations/history.js";
export type { ListedPasskey, NewPasskey } from "./operations/passkeys.js";
export type { Progress } from "./operations/rotation.js";
export type { Permission, TokenOptions } from "./operations/tokens.js";
export type { Usage } from "./operations/usageAndLog.js";
export type { SchemaResult, StandardSchema, Value, ValueType } from "./operations/valueTypes.js";
export { type Primitives, usePrimitives } from "./format/primitives.js";
export { Changes, Collection, Trash, Vault, VaultBlob, Writes } from "./vaults.js";
