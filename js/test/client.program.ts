// Drives the client for a program in another language: JSON lines on stdin and stdout.
//
// {"id": 1, "do": "call", "on": 2, "name": "create", "args": […]}  →  {"id": 1, "result": …} or {"id": 1, "error": …}
//
// Values: a list is a list, {"o": {…}} an object, {"b": "…"} bytes in base64, {"blob": "…"} a file, {"h": 2} a thing that
// stays here, {"f": 3} a function of the other side, {"i": 3} its iterator, {"r": "mine"} how a conflict is resolved,
// {"n": "NaN"} a number that JSON cannot hold, {"s": 1} something that no value can be, {"u": 1} undefined.
import { createInterface } from "node:readline";
import { inspect } from "node:util";
import { Client, coreOf } from "../src/client.js";
import { Refusal } from "../src/errors.js";
import { RecoveryCodes } from "../src/net/decoders.js";
import { VERSION } from "../src/net/http.js";
import { replicaFile, stateFile } from "../src/node.js";
import { openReplica, type Replica, Resolution, unlockReplica } from "../src/replica.js";
import { Writes } from "../src/vaults.js";
import { hashCheaply } from "./cheapHashing.js";
import { carried, dieAt, hurry } from "./carried.js";
import * as inside from "./insideClient.js";
import * as insideReplica from "./insideReplica.js";

type Line = {
  id: number;
  do: string;
  on?: number;
  name?: string;
  args?: unknown[];
  answer?: number;
  value?: unknown;
  error?: string;
};

const things: unknown[] = [];
const waiting = new Map<number, (line: Line) => void>();
let asked = 0;

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

/** Ask the other side to call its function. */
function ask(kind: "f" | "i", number: number, args: unknown[]): Promise<unknown> {
  const token = ++asked;
  say({ ask: token, [kind]: number, args: args.map(shown) });
  return new Promise((done, failed) => {
    waiting.set(token, (line) => {
      if (line.error !== undefined) failed(new Error(line.error));
      else done(given(line.value));
    });
  });
}

/** A value of the other side. */
function given(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(given);
  if (typeof value !== "object" || value === null) return value;
  const [[kind, inner] = []] = Object.entries(value);
  if (kind === "o") return Object.fromEntries(Object.entries(inner as object).map(([name, one]) => [name, given(one)]));
  if (kind === "blob") return new Blob([Buffer.from(String(inner), "base64")]);
  if (kind === "b") return Uint8Array.from(Buffer.from(String(inner), "base64"));
  if (kind === "h") return things[Number(inner)];
  if (kind === "n") return Number(inner);
  if (kind === "u") return undefined;
  if (kind === "s") return Symbol("strange");
  if (kind === "r") return new Resolution(inner as "mine", given((value as { value?: unknown }).value));
  if (kind === "f") return (...args: unknown[]) => ask("f", Number(inner), args);
  return {
    // an iterator
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = (await ask("i", Number(inner), [])) as unknown[];
        if (!next.length) return;
        yield next[0];
      }
    },
  };
}

/** A value for the other side. */
function shown(value: unknown): unknown {
  if (value === undefined) return { u: 1 };
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : { n: String(value) };
  if (Array.isArray(value) || value instanceof RecoveryCodes) return [...value].map(shown);
  if (value instanceof Uint8Array) return { b: Buffer.from(value).toString("base64") };
  if (value instanceof Error) return { e: fault(value) };
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    return { o: Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, shown(one)])) };
  }
  const number = things.push(value) - 1;
  const { methods, getters } = members(value as object);
  const fields = [
    ...Object.entries(value as object).filter(([, one]) => typeof one !== "function"),
    ...eager(value as object),
  ];
  const kind = (value as object).constructor.name.replace(/^_|\d+$/g, ""); // a bundler may have changed it
  return {
    h: number,
    kind,
    fields: Object.fromEntries(fields.map(([name, one]) => [name, shown(one)])),
    methods,
    getters,
  };
}

/** What is nearly always asked for, and costs nothing; what throws is left to be asked for. */
function* eager(thing: object): Generator<[string, unknown]> {
  for (const name of ["value", "raw", "document"]) {
    if (!(name in thing)) continue;
    try {
      yield [name, (thing as Record<string, unknown>)[name]];
    } catch {
      // Asked for, it throws again.
    }
  }
}

/** The names of what a thing can be asked for. */
function members(thing: object): { methods: string[]; getters: string[] } {
  const methods: string[] = [];
  const getters: string[] = [];
  for (let at: object = Object.getPrototypeOf(thing); at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      (get ? getters : methods).push(name);
  }
  return { methods, getters };
}

/** An error, and everything that a console or a report would show of it. */
function fault(error: unknown): object {
  if (!(error instanceof Refusal)) return { name: "", message: inspect(error) };
  const { name, message, details, ...more } = error;
  const said = [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), error.stack].join("\n");
  return { name, message, details: shown(details ?? null), more: shown(more), said };
}

async function perform({ do: what, on = 0, name = "", args = [] }: Line): Promise<unknown> {
  const values = args.map(given);
  const thing = things[on] as Record<string, unknown>;
  if (what === "carried") return makeCarried(name, values);
  if (what === "dieAt") return dieAt(Number(values[0]), Boolean(values[1]));
  if (what === "replica") return insideReplica.perform(thing as unknown as Replica, name, values);
  if (what === "new") return new Client(...(values as ConstructorParameters<typeof Client>));
  if (what === "static")
    return (Client as unknown as Record<string, (...more: unknown[]) => unknown>)[name]?.(...values);
  if (what === "with-state") {
    const [url, token, state] = values.map(String) as [string, string, string];
    return Client.withToken(url, token, { state: await stateFile(state) });
  }
  if (what === "get") return thing[name];
  if (what === "call") {
    const result = (thing[name] as (...more: unknown[]) => unknown).apply(thing, values);
    if (result instanceof Writes) return shown(result); // awaited, it would do everything
    const value: unknown = await result;
    return value instanceof Blob ? new Uint8Array(await value.arrayBuffer()) : value;
  }
  if (what === "openReplica") return openReplica(thing as unknown as Client, replicaFile(String(values[0])));
  if (what === "unlock") {
    const [path, password, options = {}] = values;
    return unlockReplica(thing as unknown as Client, replicaFile(String(path)), password as string, options as object);
  }
  if (what === "walk") return collected(thing as unknown as AsyncIterable<unknown>);
  if (what === "begin") return (thing as unknown as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  if (what === "some") return some(thing as unknown as AsyncIterator<unknown>, Number(values[0]));
  if (what === "forget") {
    things[on] = undefined;
    return undefined;
  }
  if (what === "version") return VERSION;
  return inside.perform(coreOf(thing as unknown as Client), name, values);
}

/** A client whose requests the other side carries; with a token, one of it. */
function makeCarried(token: string, [url, carry]: unknown[]): Client | Promise<Client> {
  hurry();
  const options = { fetch: carried(carry as (...told: unknown[]) => Promise<unknown>), timeout: 3600 }; // in no hurry
  return token ? Client.withToken(String(url), token, options) : new Client(String(url), options);
}

/** Whether something is the handle of a thing already. */
const isShown = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "h" in value && "methods" in value;

async function collected(many: AsyncIterable<unknown>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const one of many) found.push(one);
  return found;
}

/** The next results, as many as there are up to a number, and the error that ended them. */
async function some(steps: AsyncIterator<unknown>, most: number): Promise<object> {
  const found: unknown[] = [];
  try {
    while (found.length < most) {
      const { done, value } = await steps.next();
      if (done) return { found, done };
      found.push(value);
    }
  } catch (error) {
    return { found, done: true, error };
  }
  return { found, done: false };
}

hashCheaply();
for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text) as Line;
  if (line.answer !== undefined) {
    waiting.get(line.answer)?.(line);
    waiting.delete(line.answer);
    continue;
  }
  // Not awaited: a function of the other side may be asked meanwhile.
  Promise.resolve()
    .then(() => perform(line))
    .then(
      (result) => say({ id: line.id, result: isShown(result) ? result : shown(result) }),
      (error: unknown) => say({ id: line.id, error: fault(error) }),
    );
}
