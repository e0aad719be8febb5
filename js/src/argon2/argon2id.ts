// Argon2id in a worker of its own, which ends with the answer: its memory goes with it.
import { Unsupported } from "../errors.js";
import type { Bytes } from "../format/encoding.js";
import type { Question } from "./worker.js";

const FAILED =
  "Argon2id could not run. A page needs 'wasm-unsafe-eval' in script-src and its own origin in worker-src of its CSP, " +
  "and the device enough free memory.";

/** Argon2id, version 1.3, one lane, 32 bytes, in a worker. `memory` is in KiB. */
export async function argon2id(password: Bytes, salt: Bytes, memory: number, passes: number): Promise<Bytes> {
  const question: Question = { password, salt, memory, passes };
  const made = await (typeof Worker === "undefined" ? inNode(question) : inBrowser(question));
  if (!made) throw new Unsupported(FAILED);
  return new Uint8Array(made);
}

/** In a browser, a worker, Deno or Bun. Bundlers know this form, and copy the worker's file. */
function inBrowser(question: Question): Promise<Uint8Array | null> {
  const worker = new Worker(new URL("./argon2-worker.js", import.meta.url), { type: "module" });
  return new Promise<Uint8Array | null>((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<Uint8Array | null>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(null);
    };
    worker.postMessage(question);
  }).finally(() => worker.terminate());
}

/** In Node.js, whose workers are others. Not imported, so that no bundler looks for it. */
function inNode(question: Question): Promise<Uint8Array | null> {
  const { Worker: Thread } = process.getBuiltinModule("node:worker_threads");
  const worker = new Thread(new URL("./argon2-worker.js", import.meta.url));
  return new Promise<Uint8Array | null>((resolve) => {
    worker.once("message", resolve);
    worker.once("error", () => resolve(null));
    worker.postMessage(question);
  }).finally(() => worker.terminate());
}
