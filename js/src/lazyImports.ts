// Parts that are loaded when they are used for the first time: each in one piece. A program that needs some of them at
// once puts a module with the same names in the place of this one, as the web app does (web/src/eagerImports.ts).

/** What few programs need, or need once. */
export const rare = () => import("./rare.js");
/** Passwords, recovery keys and second factors of an account. */
export const passwords = () => import("./passwords.js");
/** Sessions that outlive a page or a program. */
export const saved = () => import("./saved.js");
/** The merge of two keyrings after a restore. */
export const merging = () => import("./format/keyringMerge.js");
/** The place of a replica in a browser. */
export const indexedDb = () => import("./replica/indexedDb.js");
/** What a replica needs after it was opened and shown: syncs, and what comes of them. */
export const engine = () => import("./replica/engine.js");
