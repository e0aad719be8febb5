// What an app imports from "@strongroom/client/argon2": for its own `Primitives`, or to load it ahead of a login.
export { argon2id } from "./argon2/argon2id.js";
