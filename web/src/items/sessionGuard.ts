// Whether the account is open as it was: what ends after a lock must leave nothing decrypted behind.
import { session } from "../state/session.js";

/** Asked later, whether the account was open now and has not been locked since, even if it was unlocked again. */
export function sessionGuard(): () => boolean {
  const now = session.getSnapshot();
  return () => now.kind === "open" && session.getSnapshot() === now;
}
