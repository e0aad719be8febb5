// SHA-256 of what arrives in pieces: WebCrypto hashes only what is there as a whole.

/** The first 32 bits of the fraction of a root of each of the first primes: of the cube root, or of the square root. */
const fractions = (count: number, root: (prime: number) => number): Uint32Array => {
  const found: number[] = [];
  for (let number = 2; found.length < count; number += 1)
    if (!found.some((prime) => number % prime === 0)) found.push(number);
  return Uint32Array.from(found, (prime) => (root(prime) % 1) * 2 ** 32);
};
const K = /* @__PURE__ */ fractions(64, Math.cbrt);
const FIRST = /* @__PURE__ */ fractions(8, Math.sqrt);
const BLOCK = 64;

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** A SHA-256 that is fed in pieces. */
export class Sha256 {
  readonly #state = FIRST.slice();
  readonly #block = new Uint8Array(BLOCK);
  readonly #words = new Uint32Array(64);
  #length = 0;

  /** Add bytes. */
  update(raw: Uint8Array): this {
    for (let at = 0; at < raw.length; ) {
      const place = this.#length % BLOCK;
      const part = raw.subarray(at, at + BLOCK - place);
      this.#block.set(part, place);
      this.#length += part.length;
      at += part.length;
      if (this.#length % BLOCK === 0) this.#mix();
    }
    return this;
  }

  /** The hash of all bytes so far, in hexadecimal; more may follow. */
  get hex(): string {
    const last = new Sha256();
    last.#state.set(this.#state);
    last.#block.set(this.#block);
    last.#length = this.#length;
    last.update(Uint8Array.of(128)).update(new Uint8Array((2 * BLOCK - 8 - (last.#length % BLOCK)) % BLOCK));
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, BigInt(this.#length) * 8n);
    last.update(new Uint8Array(bits.buffer));
    return Array.from(last.#state, (word) => word.toString(16).padStart(8, "0")).join("");
  }

  #mix(): void {
    const words = this.#words;
    const view = new DataView(this.#block.buffer);
    for (let at = 0; at < 64; at += 1) {
      if (at < 16) {
        words[at] = view.getUint32(at * 4);
        continue;
      }
      const [two, fifteen] = [words[at - 2] ?? 0, words[at - 15] ?? 0];
      const small = turned(fifteen, 7) ^ turned(fifteen, 18) ^ (fifteen >>> 3);
      const large = turned(two, 17) ^ turned(two, 19) ^ (two >>> 10);
      words[at] = (words[at - 16] ?? 0) + small + (words[at - 7] ?? 0) + large;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state;
    for (let at = 0; at < 64; at += 1) {
      const large = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const one = (h + large + ((e & f) ^ (~e & g)) + (K[at] ?? 0) + (words[at] ?? 0)) | 0;
      const small = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const other = (small + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + other) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => {
      this.#state[at] = (this.#state[at] ?? 0) + word;
    });
  }
}
