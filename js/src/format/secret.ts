import { Locked } from "../errors.js";
import type { Bytes } from "./encoding.js";
import { type Key, primitives } from "./primitives.js";

/** Bytes that no inspection, JSON or text of this object shows. */
export class Secret {
  readonly #bytes: Bytes | undefined;
  #key: Promise<Key> | undefined;

  /** From its bytes, or from a key that cannot be extracted. */
  constructor(raw: Bytes | Key) {
    if (raw instanceof Uint8Array) this.#bytes = raw as Bytes;
    else this.#key = Promise.resolve(raw);
  }

  /** Whether it is a key that cannot be extracted. */
  get isHeld(): boolean {
    return !this.#bytes;
  }

  /** The bytes, for sealing them or for a primitive that takes nothing else. */
  reveal(): Bytes {
    if (!this.#bytes) throw new Locked("The ways into an account change only with its password.");
    return this.#bytes;
  }

  /** The bytes as a key that others are derived from. */
  key(): Promise<Key> {
    this.#key ??= primitives().key("HKDF", this.reveal());
    return this.#key;
  }
}
