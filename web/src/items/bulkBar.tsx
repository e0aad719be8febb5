// Actions on all items that are selected.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { Dialog } from "../components/dialog.js";
import { IconButton } from "../components/iconButton.js";
import { Menu } from "../components/menu.js";
import { Progress } from "../components/progress.js";
import { TextField } from "../components/textField.js";
import { tell } from "../state/notices.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { changeItems, deleteEntries, working } from "./changes.js";
import type { Entry } from "./entries.js";
import { selection } from "./listState.js";
import { MoveDialog } from "./moveDialog.js";

const ASKED_FROM = 5; // so many are not deleted without a question

/** The bar above the list while something is selected. */
export function BulkBar({ chosen, onAll }: { chosen: readonly Entry[]; onAll: () => void }) {
  const [asked, setAsked] = useState<"move" | "tag" | "untag" | "export" | "delete">();
  const busy = useStore(working);
  const clear = (): void => selection.set(new Set());
  const remove = (): void => {
    setAsked(undefined);
    clear();
    void deleteEntries(chosen);
  };
  const isFavorite = chosen.every((entry) => entry.isFavorite);
  if (busy)
    return (
      <div class="bulkBar">
        <Progress label={moreTexts.items.working(busy.done, busy.total)} done={busy.done} total={busy.total} />
      </div>
    );
  return (
    <div class="bulkBar" role="toolbar" aria-label={moreTexts.items.selectedActions}>
      <IconButton icon="close" label={moreTexts.items.clearSelection} onClick={clear} />
      <span class="bulkCount" role="status">
        {moreTexts.items.selected(chosen.length)}
      </span>
      <Button kind="plain" icon="folder" onClick={() => setAsked("move")}>
        {moreTexts.items.move}
      </Button>
      <Button kind="plain" icon="trash" onClick={() => (chosen.length < ASKED_FROM ? remove() : setAsked("delete"))}>
        {texts.common.delete}
      </Button>
      <Menu
        label={texts.common.more}
        items={[
          { label: moreTexts.items.selectAll, icon: "check", run: onAll },
          {
            label: isFavorite ? moreTexts.items.unfavorite : moreTexts.items.favorite,
            icon: "star",
            run: () =>
              void changeItems(
                chosen,
                (item) => ({ ...item, favorite: !isFavorite }),
                isFavorite ? moreTexts.items.unfavorited : moreTexts.items.favorited,
              ),
          },
          { label: moreTexts.items.addTag, icon: "add", run: () => setAsked("tag") },
          { label: moreTexts.items.removeTag, icon: "close", run: () => setAsked("untag") },
          { label: moreTexts.items.export, icon: "download", run: () => setAsked("export") },
        ]}
      />
      {asked === "move" && <MoveDialog entries={chosen} onClose={() => setAsked(undefined)} />}
      {(asked === "tag" || asked === "untag") && (
        <TagDialog chosen={chosen} isAdded={asked === "tag"} onClose={() => setAsked(undefined)} />
      )}
      {asked === "export" && <Export chosen={chosen} onClose={() => setAsked(undefined)} />}
      {asked === "delete" && (
        <Confirm
          title={moreTexts.items.deleteManyTitle(chosen.length)}
          action={texts.common.delete}
          isDanger
          onConfirm={remove}
          onClose={() => setAsked(undefined)}
        >
          <p>{moreTexts.items.deleteManyWhat}</p>
        </Confirm>
      )}
    </div>
  );
}

/** The dialogue of an export, which is loaded only now. */
function Export(props: { chosen: readonly Entry[]; onClose: () => void }) {
  const [loaded, setLoaded] = useState<typeof import("./exportDialog.js")>();
  useEffect(() => {
    import("./exportDialog.js").then(setLoaded, () => {
      tell(texts.errors.Unreachable, { kind: "fault" });
      props.onClose();
    });
  }, []);
  return loaded ? <loaded.ExportDialog {...props} /> : null;
}

/** A tag for all that are selected, or one less. */
function TagDialog({ chosen, isAdded, onClose }: { chosen: readonly Entry[]; isAdded: boolean; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const tag = typed.trim();
  const save = (): void => {
    if (!tag) return;
    onClose();
    void changeItems(
      chosen,
      (item) => {
        const tags = item.tags ?? [];
        if (tags.includes(tag) === isAdded) return undefined;
        return { ...item, tags: isAdded ? [...tags, tag] : tags.filter((one) => one !== tag) };
      },
      moreTexts.items.changedMany,
    );
  };
  return (
    <Dialog
      title={isAdded ? moreTexts.items.addTag : moreTexts.items.removeTag}
      onClose={onClose}
      onSubmit={save}
      actions={
        <>
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isDisabled={!tag}>
            {texts.common.save}
          </Button>
        </>
      }
    >
      <TextField label={texts.items.tag} value={typed} onInput={setTyped} maxLength={100} autoFocus />
    </Dialog>
  );
}
