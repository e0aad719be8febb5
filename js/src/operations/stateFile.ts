// The file of a machine with what it has seen with its token. A file that others can read or replace is refused.
import { resolve } from "node:path";
import * as ownFile from "./ownFile.js";
import type { StatePlace } from "./tokenState.js";

const ADVICE = ". Delete it, or run chmod 600";

/** The state file of a machine, by its path: for `Client.withToken`. */
export async function stateFile(given: string): Promise<StatePlace> {
  const path = resolve(given);
  await ownFile.checkFolder(path);
  return {
    name: path,
    read: () => ownFile.read(path, ADVICE),
    write: (text) => ownFile.replace(path, text),
    alone: (task) => ownFile.alone(path, task),
  };
}
