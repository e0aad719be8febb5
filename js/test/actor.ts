// A program in another language uses the client through this: it calls methods of objects, and is told what they give.
import * as strongroom from "../src/index.js";
import * as passkeys from "../src/passkeys.js";
import { fromBase64, toBase64 } from "../src/format/encoding.js";
import { hashCheaply } from "./cheapHashing.js";

/** A call of a method, a read of a member, or a walk over all that an object gives. */
interface Question {
  /** The number of the object; 0 is what the package exports. */
  readonly on: number;
  readonly do: "call" | "new" | "get" | "all";
  readonly name: string;
  readonly args: readonly unknown[];
}

const objects: unknown[] = [{ ...strongroom, ...passkeys, hashCheaply }];

/** A value as JSON has it; of an object of a class, its number, and what it shows. */
function told(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (value instanceof Uint8Array) return { bytes: toBase64(value) };
  if (Array.isArray(value)) return value.map(told);
  if (typeof value !== "object") return typeof value === "function" ? null : value;
  if (Object.getPrototypeOf(value) === Object.prototype && !Object.values(value).some((one) => typeof one === "function"))
    return { plain: Object.entries(value).map(([name, one]) => [name, told(one)]) };
  return { object: objects.push(value) - 1, kind: value.constructor.name };
}

/** What a program has sent: bytes, objects and functions are named, the rest is as it is. */
function given(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(given);
  if (typeof value !== "object" || value === null) return value;
  const named = value as Record<string, unknown>;
  if ("$object" in named) return objects[named["$object"] as number];
  if ("$bytes" in named) return fromBase64(named["$bytes"]);
  if ("$answers" in named) return answers(named["$answers"] as unknown[]);
  return Object.fromEntries(Object.entries(named).map(([name, one]) => [name, given(one)]));
}

/** A function that gives one of these at each call. */
function answers(values: readonly unknown[]): () => unknown {
  const left = [...values];
  return () => left.shift();
}

async function outcome({ on, do: what, name, args }: Question): Promise<unknown> {
  const whole = objects[on] as Record<string, unknown>;
  if (what === "all") {
    const found: unknown[] = [];
    for await (const one of whole as unknown as AsyncIterable<unknown>) found.push(told(one));
    return found;
  }
  const path = name.split(".");
  const last = path.pop() ?? "";
  const owner = path.reduce<Record<string, unknown>>((at, step) => at[step] as Record<string, unknown>, whole);
  const found = owner[last];
  if (what === "get") return told(found);
  if (typeof found !== "function") throw new Error(`there is no method ${name}`);
  const values = args.map(given);
  if (what === "new") return told(Reflect.construct(found, values));
  return told(await (Reflect.apply(found, owner, values) as unknown));
}

/** Do what is asked for: `{"gives": …}`, or `{"error": …}`. */
export async function act(question: Question): Promise<object> {
  try {
    return { gives: await outcome(question) };
  } catch (fault) {
    if (fault instanceof strongroom.Refusal) return { error: fault.toJSON() };
    return { fault: fault instanceof Error ? String(fault.stack) : String(fault) };
  }
}
