// An export of the items that are selected. It is loaded when somebody asks for it.
import { type Exported, ExportForm, inFolder } from "../account/exportForm.js";
import { Dialog } from "../components/dialog.js";
import { vaults } from "../state/session.js";
import { moreTexts } from "../texts/lazyTexts.js";
import type { Entry } from "./entries.js";

/** The dialogue. What is selected and is no item is left out. */
export function ExportDialog({ chosen, onClose }: { chosen: readonly Entry[]; onClose: () => void }) {
  const items = chosen.filter(({ item }) => item);
  const gather = async (): Promise<readonly Exported[]> => {
    const names = new Map(vaults.getSnapshot().map(({ uid, name }) => [uid, name]));
    const isOne = new Set(items.map(({ document }) => document.vault)).size === 1;
    return items.flatMap(({ item, document: { uid, vault } }) =>
      item ? [[uid, isOne ? item : inFolder(item, names.get(vault) ?? "")] as const] : [],
    );
  };
  return (
    <Dialog title={moreTexts.items.exportTitle(items.length)} onClose={onClose}>
      <div class="stack">
        <ExportForm gather={gather} onDone={onClose} />
      </div>
    </Dialog>
  );
}
