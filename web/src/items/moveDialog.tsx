// Where items are moved to: a vault, and a folder in it. The way for the keyboard; the mouse can also drag.
import { useMemo, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { Select } from "../components/select.js";
import { TextField } from "../components/textField.js";
import { vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { moveItems } from "./changes.js";
import { entries as index, type Entry } from "./entries.js";
import { flat, folderTree, pathText, typedPath } from "./folders.js";
import { filter } from "./listState.js";
import { oneLine } from "./shownText.js";

const NEW = "?"; // no path: in a name, `?` would stand beside other characters or be one that nobody has chosen here

/** Choose a vault and a folder for some items. */
export function MoveDialog({ entries, onClose }: { entries: readonly Entry[]; onClose: () => void }) {
  const found = useStore(vaults);
  const { all } = useStore(index);
  const { folder: from } = useStore(filter);
  const [vault, setVault] = useState(entries[0]?.document.vault ?? "");
  const [at, setAt] = useState(entries[0]?.folders[0] ?? "");
  const [typed, setTyped] = useState("");
  const folders = useMemo(
    () => [...flat(folderTree(all.filter(({ document }) => document.vault === vault)))],
    [all, vault],
  );
  const isOther = entries.some(({ document }) => document.vault !== vault);
  const choices: [string, string][] = [
    ["", moreTexts.items.noFolder],
    ...folders.map(([{ path }, depth]): [string, string] => [
      path,
      `${"\u2003".repeat(depth)}${oneLine(pathText(path).split(" / ").at(-1) ?? "", 60)}`,
    ]),
    [NEW, moreTexts.items.newFolder],
  ];
  const known = choices.some(([path]) => path === at) ? at : "";
  const move = (): void => {
    onClose();
    void moveItems(entries, vault, at === NEW ? typedPath(typed) : known, from);
  };
  return (
    <Dialog
      title={moreTexts.items.moveTitle(entries.length)}
      onClose={onClose}
      onSubmit={move}
      actions={
        <>
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isDisabled={at === NEW && !typedPath(typed)}>
            {moreTexts.items.move}
          </Button>
        </>
      }
    >
      <Select
        label={moreTexts.items.vault}
        value={vault}
        choices={found.map(({ uid, name }) => [uid, oneLine(name, 60)])}
        onChange={setVault}
      />
      <Select
        label={moreTexts.items.folder}
        value={known || (at === NEW ? NEW : "")}
        choices={choices}
        onChange={setAt}
      />
      {at === NEW && (
        <TextField
          label={moreTexts.items.newFolderName}
          value={typed}
          onInput={setTyped}
          hint={moreTexts.items.newFolderHint}
          autoFocus
        />
      )}
      {isOther && <p class="hint">{moreTexts.items.otherVaultHint}</p>}
    </Dialog>
  );
}
