// Copies to the clipboard, and clears it again.
import { onLock } from "../state/session.js";
import { tell } from "../state/notices.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { sessionGuard } from "./sessionGuard.js";

const SECONDS = 30;
let timer: ReturnType<typeof setTimeout> | undefined;
let isOurs = false;

/** Clear the clipboard if what was copied last came from here. A page that is not looked at may not: then it waits. */
async function clear(): Promise<void> {
  clearTimeout(timer);
  timer = undefined;
  if (!isOurs) return;
  try {
    await navigator.clipboard.writeText("");
    isOurs = false;
  } catch {
    addEventListener("focus", () => void clear(), { once: true });
  }
}

/** Something else was copied in this page: it is not ours to clear. */
addEventListener("copy", () => (isOurs = false));
addEventListener("cut", () => (isOurs = false));
onLock(() => void clear());

/** Copy a text. A secret is cleared from the clipboard after 30 seconds, and when the app is locked. Whether it could. */
export async function copyText(text: string, label: string, isSecret: boolean): Promise<boolean> {
  const isOpen = sessionGuard();
  if (!isOpen()) return false;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (isOpen()) tell(moreTexts.items.copyFailed, { kind: "fault" });
    return false;
  }
  clearTimeout(timer);
  isOurs = isSecret;
  if (!isOpen()) {
    await clear();
    return false;
  }
  timer = isSecret ? setTimeout(() => void clear(), SECONDS * 1000) : undefined;
  tell(isSecret ? moreTexts.items.copiedSecret(label, SECONDS) : moreTexts.items.copied(label));
  return true;
}
