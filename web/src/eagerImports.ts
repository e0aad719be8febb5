// In the place of the client's lazyImports.ts: what somebody needs until they have an account, see the list and sync comes
// with the first load, in one file, which compresses better than many small ones.
import type * as lazy from "../../js/src/lazyImports.js";
import * as accountPasswords from "../../js/src/passwords.js";
import * as replicaEngine from "../../js/src/replica/engine.js";
import * as database from "../../js/src/replica/indexedDb.js";
import * as sessions from "../../js/src/saved.js";

export const rare: typeof lazy.rare = () => import("../../js/src/rare.js");
export const passwords: typeof lazy.passwords = async () => accountPasswords;
export const saved: typeof lazy.saved = async () => sessions;
export const merging: typeof lazy.merging = () => import("../../js/src/format/keyringMerge.js");
export const indexedDb: typeof lazy.indexedDb = async () => database;
export const engine: typeof lazy.engine = async () => replicaEngine;
