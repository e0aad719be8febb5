// What a second thread of a test imports: a copy of the modules of its own.
export { replicaFile } from "../src/node.js";
