// Reads `/metrics` and `/ready` again and again. The token is in this object alone, and goes with it.
import { type Checks, parse, type Reading } from "./metrics.js";

const SECONDS = 5;
const MOST = 120; // readings that are shown: ten minutes

/** Why there is no reading: the token is wrong, too often; no metrics are served here; nobody responds. */
export type Failure = "wrongToken" | "tooOften" | "notServed" | "unreachable";

/** What the page shows. */
export interface Shown {
  readonly readings: readonly Reading[];
  /** Why the last attempt failed. */
  readonly failure: Failure | undefined;
}

const server = (path: string): URL => new URL(`../../${path}`, document.baseURI);

/** Read once. */
async function read(token: string, signal: AbortSignal): Promise<Reading | Failure> {
  try {
    const options: RequestInit = { signal, cache: "no-store", credentials: "omit", redirect: "error" };
    const metrics = await fetch(server("metrics"), { ...options, headers: { authorization: `Bearer ${token}` } });
    if (!metrics.ok)
      return (
        ({ 401: "wrongToken", 429: "tooOften", 404: "notServed" } as Record<number, Failure>)[metrics.status] ??
        "unreachable"
      );
    const ready = await fetch(server("ready"), options);
    const { checks } = (await ready.json()) as { checks: Record<string, string> };
    const found: Checks = Object.fromEntries(Object.entries(checks).map(([name, state]) => [name, state === "ok"]));
    return { at: Date.now(), samples: parse(await metrics.text()), checks: found };
  } catch {
    return "unreachable";
  }
}

/** Read every few seconds, and tell what is to be shown; the function that ends it. A wrong token ends it by itself. */
export function follow(token: string, show: (shown: Shown) => void): () => void {
  let readings: readonly Reading[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ended = new AbortController(); // and with it what is under way
  const next = async (): Promise<void> => {
    const found = await read(token, ended.signal);
    if (ended.signal.aborted) return;
    const failure = typeof found === "string" ? found : undefined;
    if (typeof found !== "string") readings = [...readings, found].slice(-MOST);
    show({ readings, failure });
    if (failure === undefined || failure === "unreachable") timer = setTimeout(() => void next(), SECONDS * 1000);
  };
  void next();
  return () => {
    ended.abort();
    clearTimeout(timer);
  };
}
