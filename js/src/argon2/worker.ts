// Runs in a worker: Argon2id in WebAssembly, so that no page stands still while a password is tried.
import { argon2id } from "hash-wasm";

/** What the worker is asked for. */
export interface Question {
  readonly password: Uint8Array;
  readonly salt: Uint8Array;
  readonly memory: number;
  readonly passes: number;
  readonly lanes: number;
}

interface Port {
  postMessage(message: Uint8Array | null): void;
}

async function answer({ password, salt, memory, passes, lanes }: Question, port: Port): Promise<void> {
  try {
    const options = { password, salt, memorySize: memory, iterations: passes, parallelism: lanes, hashLength: 32 };
    port.postMessage(await argon2id({ ...options, outputType: "binary" }));
  } catch {
    port.postMessage(null); // not the error: it could show what it was given
  }
}

if (typeof self === "undefined") {
  const { parentPort } = process.getBuiltinModule("node:worker_threads");
  parentPort?.once("message", (question: Question) => void answer(question, parentPort));
} else {
  self.onmessage = ({ data }: MessageEvent<Question>) => void answer(data, self);
}
