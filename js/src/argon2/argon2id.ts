// Argon2id in a worker of its own, which ends with the answer: its memory goes with it.
import { Unsupported } from "../errors.js";
import type { Bytes } from "../format/encoding.js";
import type { Question } from "./worker.js";

const FAILED =
  "Argon2id could not run. A page needs 'wasm-unsafe-eval' in script-src and its own origin in worker-src of its CSP, " +
  "and strongroom in trusted-types where it has that; and the device needs enough free memory.";

/** Argon2id, version 1.3, 32 bytes, in a worker. `memory` is in KiB; there is one lane, unless another count is given. */
export async function argon2id(
  password: Bytes,
  salt: Bytes,
  memory: number,
  passes: number,
  lanes = 1,
): Promise<Bytes> {
  const question: Question = { password, salt, memory, passes, lanes };
  const made = await (typeof Worker === "undefined" ? inNode(question) : inBrowser(question));
  if (!made) throw new Unsupported(FAILED);
  return new Uint8Array(made);
}

/** Where the worker's file is. Bundlers know this form, and copy the file, which needs no other. */
const place = (): URL => new URL("./argon2-worker.js", import.meta.url);

/** A maker of addresses of scripts, where the browser has Trusted Types: a page's policy may ask for it. */
interface Trusted {
  createScriptURL(address: string): URL;
}
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): Trusted;
}
let trusted: Trusted | undefined;

/** The address of the worker's file as a policy of Trusted Types asks for it. It vouches for no other address. */
function address(): URL {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  try {
    trusted ??= trustedTypes?.createPolicy("strongroom", { createScriptURL: () => place().href });
  } catch {
    // The page allows no policy of this name. Perhaps it does not ask for one either.
  }
  return trusted?.createScriptURL("") ?? place();
}

/** In a browser, a worker, Deno or Bun. */
function inBrowser(question: Question): Promise<Uint8Array | null> {
  let worker: Worker;
  try {
    worker = new Worker(address(), { type: "module" });
  } catch {
    return Promise.resolve(null); // the page's policy does not allow it
  }
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
  const worker = new Thread(place());
  return new Promise<Uint8Array | null>((resolve) => {
    worker.once("message", resolve);
    worker.once("error", () => resolve(null));
    worker.postMessage(question);
  }).finally(() => worker.terminate());
}
