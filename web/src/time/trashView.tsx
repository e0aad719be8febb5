// Trash.
import { EmptyState } from "../components/emptyState.js";
import { texts } from "../texts/en.js";

/** The view "trash". */
export function TrashView(_: { parts: readonly string[] }) {
  return <EmptyState icon="trash" title={texts.shell.trash} />;
}
