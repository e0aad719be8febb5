// What a program of Node.js imports from "@strongroom/client/node": what no browser has.
export { sessionFile } from "./operations/sessionFile.js";
export type { SessionPlace } from "./operations/savedSessions.js";
export { stateFile } from "./operations/stateFile.js";
export type { StatePlace } from "./operations/tokenState.js";
export { replicaFile } from "./replica/file.js";
