// The client in a page as an app has it: Argon2id at its cost, in a worker.
export { coreOf } from "../src/client.js";
export * from "../src/index.js";
