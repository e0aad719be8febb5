// The service worker, by which the app starts offline, and the offer to load a newer release of it.
import { texts } from "../texts/en.js";
import { dismiss, tell } from "./notices.js";

const CHECK_MINUTES = 60;

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(address: string): string },
  ): { createScriptURL(address: string): URL };
}

/** The address of the service worker as a policy of Trusted Types asks for it. It vouches for no other address. */
function address(): string | URL {
  const place = new URL("service-worker.js", document.baseURI).href;
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  return (
    trustedTypes?.createPolicy("strongroom-service-worker", { createScriptURL: () => place }).createScriptURL("") ??
    place
  );
}

const { serviceWorker } = navigator;
const reload = { label: texts.release.reload, run: () => location.reload() };

/** Register the service worker. Where there is none, as in some private windows, the app needs the server to start. */
export async function followReleases(): Promise<void> {
  if (!serviceWorker) return;
  // A tab that goes on with the files of the older release would miss parts of it sooner or later.
  serviceWorker.addEventListener("controllerchange", () => {
    dismiss(offered);
    tell(texts.release.otherTab, { stays: true, action: reload });
    if (isAgreed) location.reload();
  });
  const registration = await serviceWorker.register(address(), { updateViaCache: "none" }).catch(() => undefined);
  if (!registration) return;
  const look = (): void => {
    if (registration.waiting && serviceWorker.controller) offer(registration);
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

let offered = 0; // the id of the notice
let isAgreed = false;

/** Offer to load the release that waits. Nothing is loaded before the person agrees: something may be half written. */
function offer(registration: ServiceWorkerRegistration): void {
  const load = (): void => {
    isAgreed = true;
    if (registration.waiting) registration.waiting.postMessage("activate");
    else location.reload(); // another tab was quicker
  };
  offered = tell(texts.release.newer, { stays: true, action: { label: texts.release.load, run: load } });
}

/** Whether a fault is that a part of the app could not be loaded, as browsers say it of `import()`. */
export const isMissingPart = (fault: unknown): boolean =>
  fault instanceof TypeError && /\bmodule\b/i.test(fault.message);

/** Say that a part of the app could not be loaded, with a button to reload. Nothing that was typed is lost by itself. */
export function tellMissingPart(): void {
  tell(texts.release.partMissing, { kind: "fault", stays: true, action: reload });
}
