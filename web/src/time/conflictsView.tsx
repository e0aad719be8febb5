// Conflicts.
import { EmptyState } from "../components/emptyState.js";
import { texts } from "../texts/en.js";

/** The view "conflicts". */
export function ConflictsView(_: { parts: readonly string[] }) {
  return <EmptyState icon="conflict" title={texts.shell.conflicts} />;
}
