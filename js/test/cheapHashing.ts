// Argon2id at a cost that tests can afford; tests/kit/cheap_hashing.py has the same.
import { argon2id } from "hash-wasm";
import { join, text } from "../src/format/encoding.js";
import { usePrimitives, webCrypto } from "../src/format/primitives.js";

/** Make hashing cheap from now on. */
export function hashCheaply(): void {
  usePrimitives({
    ...webCrypto,
    async argon2id(password, salt, memory, passes) {
      const salted = await webCrypto.sha256(join(text(`${memory} ${passes} `), salt));
      const options = { password, salt: salted, memorySize: 8, iterations: 1, parallelism: 1, hashLength: 32 };
      return new Uint8Array(await argon2id({ ...options, outputType: "binary" }));
    },
  });
}
