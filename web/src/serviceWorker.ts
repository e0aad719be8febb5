// Stores the app's own files, so that it starts offline, and serves nothing else: no response of the API passes here.
export {};

const worker = self as unknown as ServiceWorkerGlobalScope;
/** The SHA-256 of each file, in base64, by its name; the build puts it here. */
declare const FILES: Record<string, string>;

const PREFIX = "strongroom-app ";
const { scope } = worker.registration;
const address = (name: string): string => new URL(name.replace(/(^|\/)index\.html$/, "$1"), scope).href;
const files = new Map(Object.entries(FILES).map(([name, sum]) => [address(name), sum]));
/** Each release has a cache of its own, named by the hash of its page, which names all other files by theirs. */
const CACHE = PREFIX + FILES["index.html"];

/** Fetch every file, each only if it is the one of this release; then store them all. */
async function store(): Promise<void> {
  const fetched = await Promise.all([...files].map(async ([url, sum]) => {
    const isHashed = /-[A-Za-z0-9]{8,}\.\w+$/.test(url);
    const response = await fetch(url, { cache: isHashed ? "default" : "no-cache", credentials: "omit", integrity: `sha256-${sum}`, redirect: "error" });
    if (!response.ok) throw new Error(`${url} cannot be had: ${response.status}`);
    return [url, response] as const;
  }));
  const cache = await caches.open(CACHE);
  for (const [url, response] of fetched) await cache.put(url, response);
}

async function removeOthers(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
}

worker.addEventListener("install", (event) => event.waitUntil(store()));
worker.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
worker.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const wanted = url.replace(/[?#].*$/, "");
  if (method !== "GET" || !files.has(wanted)) return;
  event.respondWith(caches.open(CACHE).then((cache) => cache.match(wanted)).then((stored) => stored ?? fetch(event.request)));
});
// A new release waits until the person has agreed to load it: the page asks.
worker.addEventListener("message", ({ data }) => {
  if (data === "activate") void worker.skipWaiting();
});
