// Waiting.
import { EmptyState } from "../components/emptyState.js";
import { texts } from "../texts/en.js";

/** The view "waiting". */
export function WaitingView(_: { parts: readonly string[] }) {
  return <EmptyState icon="waiting" title={texts.shell.waiting} />;
}
