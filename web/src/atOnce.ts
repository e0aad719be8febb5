// In the place of the client's later.ts: what somebody needs until they have an account, see the list and sync comes with
// the first load, in one file, which compresses better than many small ones.
import type * as later from "../../js/src/later.js";
import * as accountPasswords from "../../js/src/passwords.js";
import * as replicaEngine from "../../js/src/replica/engine.js";
import * as database from "../../js/src/replica/indexedDb.js";
import * as sessions from "../../js/src/saved.js";

export const rare: typeof later.rare = () => import("../../js/src/rare.js");
export const passwords: typeof later.passwords = async () => accountPasswords;
export const saved: typeof later.saved = async () => sessions;
export const indexedDb: typeof later.indexedDb = async () => database;
export const engine: typeof later.engine = async () => replicaEngine;
