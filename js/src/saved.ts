// Sessions that outlive a page or a program: loaded when they are used for the first time.
export * as savedSessions from "./operations/savedSessions.js";
export { sessionDatabase } from "./operations/sessionDatabase.js";
