// How conflicts are resolved.
//
// A resolver is a function from a Conflict to a Resolution. `keepMine`, `keepTheirs` and `keepBoth` are three; one of
// your own may look at base, mine and theirs, and give one of theirs back, or `merged(value)`.
import { Invalid } from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import type { Conflict } from "./conflicts.js";

/** The resolution of a conflict. `value` is for `merged` only. */
export class Resolution {
  readonly kind: "mine" | "theirs" | "both" | "merged";
  readonly #value: unknown;

  constructor(kind: Resolution["kind"], value?: unknown) {
    this.kind = kind;
    this.#value = value;
  }

  /** What replaces both. */
  get value(): unknown {
    return this.#value;
  }
}

/** Decides a conflict. */
export type Resolver = (conflict: Conflict) => Resolution | Promise<Resolution>;

/** This device's change replaces the server's. */
export const keepMine: Resolver = () => new Resolution("mine");
/** This device's change is dropped. */
export const keepTheirs: Resolver = () => new Resolution("theirs");
/** The server's change stays, and this device's becomes a new document. */
export const keepBoth: Resolver = () => new Resolution("both");
/** This value replaces both. */
export const merged = (value: unknown): Resolution => new Resolution("merged", toValue(toContent(value)));

/** A function; anything else is the caller's mistake. */
export function checkedResolver(how: Resolver): Resolver {
  if (typeof how !== "function")
    throw new Invalid({ resolver: `must be a function, such as keepMine, not ${typeof how}` });
  return how;
}
