// The service worker, by which the app starts offline, and the offer to load a newer release of it.
import { texts } from "../texts/en.js";
import { tell } from "./notices.js";

const CHECK_MINUTES = 60;

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): { createScriptURL(address: string): URL };
}

/** The address of the service worker as a policy of Trusted Types asks for it. It vouches for no other address. */
function address(): string | URL {
  const place = new URL("service-worker.js", document.baseURI).href;
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  return trustedTypes?.createPolicy("strongroom-service-worker", { createScriptURL: () => place }).createScriptURL("") ?? place;
}

/** Register the service worker. Where there is none, as in some private windows, the app needs the server to start. */
export async function followReleases(): Promise<void> {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return;
  const registration = await serviceWorker.register(address(), { updateViaCache: "none" }).catch(() => undefined);
  if (!registration) return;
  const look = (): void => {
    const { waiting } = registration;
    if (waiting && serviceWorker.controller) offer(waiting);
  };
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", look));
  look();
  let checked = Date.now();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || Date.now() - checked < CHECK_MINUTES * 60_000) return;
    checked = Date.now();
    void registration.update().catch(() => undefined);
  });
}

let offered: ServiceWorker | undefined;

/** Offer to load the release that waits. Nothing is loaded before the person agrees: something may be half written. */
function offer(waiting: ServiceWorker): void {
  if (offered === waiting) return;
  offered = waiting;
  const reload = (): void => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
    waiting.postMessage("activate");
    if (waiting.state === "activated") location.reload(); // another tab was quicker
  };
  tell(texts.release.newer, { stays: true, action: { label: texts.release.reload, run: reload } });
}
