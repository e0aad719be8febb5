// For tests of what a network and an operating system do to a client: requests that the test carries, and the end of the
// process at a chosen write to a file.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** A `fetch` whose requests a function carries: it gives status, body and Retry-After, or the code of an error. */
export function carried(carry: (...told: unknown[]) => Promise<unknown>): typeof fetch {
  return async (given) => {
    const request = given as Request;
    const { url, method, headers } = request;
    const body = await request.text();
    const target = url.slice(new URL(url).origin.length);
    const found = await carry(
      method,
      target,
      headers.get("authorization")?.slice(7) ?? null,
      headers.get("keyring-version"),
      body,
    );
    if (typeof found === "string")
      throw new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: found }) });
    const [status, answer, after] = found as [number, Uint8Array<ArrayBuffer>, string];
    const named = { "content-type": "application/json", ...(after && { "retry-after": after }) };
    return new Response(answer.length ? answer : null, { status, headers: named });
  };
}

let isHurried = false;

/** From now on, waits of less than five minutes take a thousandth of that: those before another attempt. */
export function hurry(): void {
  if (isHurried) return;
  isHurried = true;
  const wait = globalThis.setTimeout;
  const quick = (task: () => void, time = 0): unknown => wait(task, time < 300_000 ? time / 1000 : time);
  globalThis.setTimeout = quick as typeof setTimeout;
}

let left = -1;
let isAfter = false;
const write = fs.writeSync;

/** End this process, as by kill -9, at a write to a file from now on: in the middle of it, or just after. -1: never. */
export function dieAt(count: number, after: boolean): void {
  left = count;
  isAfter = after;
  fs.writeSync = dying as typeof fs.writeSync;
  syncBuiltinESMExports();
}

function dying(file: number, data: Uint8Array, offset = 0): number {
  if (left-- !== 0) return write(file, data, offset);
  write(file, data, offset, isAfter ? data.length - offset : (data.length - offset) >> 1);
  process.kill(process.pid, "SIGKILL");
  for (;;) fs.readFileSync("/dev/null");
}
