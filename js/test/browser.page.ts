// The client in a page, with hashing that tests can afford.
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
export { coreOf } from "../src/client.js";
export * from "../src/index.js";
export { browserAuthenticator } from "../src/passkeys.js";
export { sessionDatabase } from "../src/operations/sessionDatabase.js";
