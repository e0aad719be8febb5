// Stores the app's own files, so that it starts offline, and serves nothing else: no response of the API passes here.
export {};

const worker = self as unknown as ServiceWorkerGlobalScope;
// The build puts these here.
/** The SHA-256 of each file, in base64, by its name. */
declare const FILES: Record<string, string>;
/** The SHA-256 of all of them. */
declare const RELEASE: string;
/** What the policy of a page must have; to which servers it may connect is the operator's choice. */
declare const POLICY: readonly string[];

const PREFIX = "strongroom-app ";
const { scope } = worker.registration;
const address = (name: string): string => new URL(name.replace(/(^|\/)index\.html$/, "$1"), scope).href;
const files = new Map(Object.entries(FILES).map(([name, sum]) => [address(name), sum]));
/** Each release has a cache of its own. */
const CACHE = PREFIX + RELEASE;

/** Whether a page comes with the policy of the app: a stored page keeps the headers that it came with. */
function isGuarded({ headers }: Response): boolean {
  return (headers.get("content-security-policy") ?? "").split(",").some((policy) => {
    const given = new Map<string, string>();
    for (const part of policy.split(";")) {
      const directive = part.trim().replace(/\s+/g, " ");
      const [name = ""] = directive.toLowerCase().split(" ", 1);
      if (!given.has(name)) given.set(name, directive); // of two, browsers take the first
    }
    return POLICY.every((directive) => given.get(directive.split(" ", 1)[0] ?? "") === directive);
  });
}

/** Fetch a file, only if it is the one of this release. A page always comes from the server, with its headers of today. */
async function fetched(url: string, sum: string): Promise<Response> {
  const isHashed = /-[A-Za-z0-9]{8,}\.\w+$/.test(url);
  const isPage = url.endsWith("/");
  const cache = isPage ? "reload" : isHashed ? "default" : "no-cache";
  const response = await fetch(url, { cache, credentials: "omit", integrity: `sha256-${sum}`, redirect: "error" });
  if (!response.ok) throw new Error(`${url} cannot be had: ${response.status}`);
  if (isPage && !isGuarded(response)) throw new Error(`${url} comes without the policy of the app`);
  return response;
}

/** Fetch every file; then store them all. */
async function store(): Promise<void> {
  const all = await Promise.all([...files].map(async ([url, sum]) => [url, await fetched(url, sum)] as const));
  const cache = await caches.open(CACHE);
  for (const [url, response] of all) await cache.put(url, response);
}

/** Store a page anew, if the server still has this release: the operator may have changed its headers alone. */
async function renew(url: string): Promise<void> {
  const response = await fetched(url, files.get(url) ?? "").catch(() => undefined);
  if (response && (await caches.has(CACHE))) await (await caches.open(CACHE)).put(url, response);
}

async function removeOthers(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
}

worker.addEventListener("install", (event) => event.waitUntil(store()));
worker.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
worker.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const wanted = url.replace(/[?#].*$/, "");
  if (method !== "GET" || !files.has(wanted)) return;
  if (mode === "navigate") event.waitUntil(renew(wanted));
  event.respondWith(
    caches
      .open(CACHE)
      .then((cache) => cache.match(wanted))
      .then((stored) => stored ?? fetch(event.request)),
  );
});
// A new release waits until the person has agreed to load it: the page asks.
worker.addEventListener("message", ({ data }) => {
  if (data === "activate") void worker.skipWaiting();
});
