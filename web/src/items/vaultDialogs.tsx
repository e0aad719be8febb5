// Vaults and folders: made, renamed, deleted with care.
import type { ReplicaVault } from "@strongroom/client/replica";
import { useRef, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { Dialog } from "../components/dialog.js";
import { Waiting } from "../components/progress.js";
import { TextField } from "../components/textField.js";
import { go } from "../state/route.js";
import { tell } from "../state/notices.js";
import { makeVault, useOpen, vaults, vaultsChanged } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { changeItems } from "./changes.js";
import { entries } from "./entries.js";
import { changeSentence } from "./faults.js";
import { isWithin, pathText, renamedFolders, typedPath } from "./folders.js";
import { showPlace } from "./listState.js";
import { oneLine } from "./shownText.js";
import { vaultByUid } from "./vaultByUid.js";

/** What a dialogue of the navigation is about. */
export type Asked =
  | { readonly kind: "newVault" }
  | { readonly kind: "renameVault"; readonly vault: ReplicaVault }
  | { readonly kind: "deleteVault"; readonly vault: ReplicaVault }
  | { readonly kind: "renameFolder" | "removeFolder"; readonly vault: string; readonly path: string };

/** The dialogue that was asked for. One that is about all items of a place waits until they are read. */
export function PlaceDialog({ asked, onClose }: { asked: Asked; onClose: () => void }) {
  const { isReady } = useStore(entries);
  // A sync may read the items again: what was typed, and why a deletion was refused, stays meanwhile.
  const wasReady = useRef(false);
  wasReady.current ||= isReady;
  switch (asked.kind) {
    case "newVault":
      return <NameVault onClose={onClose} />;
    case "renameVault":
      return <NameVault vault={asked.vault} onClose={onClose} />;
  }
  if (!(asked.kind === "deleteVault" ? wasReady.current : isReady))
    return (
      <Dialog title={texts.items[asked.kind]} onClose={onClose}>
        <Waiting label={texts.items.opening} />
      </Dialog>
    );
  switch (asked.kind) {
    case "deleteVault":
      return <DeleteVault vault={asked.vault} onClose={onClose} />;
    default:
      return <ChangeFolder {...asked} isRemoved={asked.kind === "removeFolder"} onClose={onClose} />;
  }
}

/** A new vault, or another name for one. A name needs the server; a new vault does not. */
function NameVault({ vault, onClose }: { vault?: ReplicaVault; onClose: () => void }) {
  const { client } = useOpen();
  const others = useStore(vaults);
  const [name, setName] = useState(vault?.name ?? "");
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const wanted = name.trim();
  const isTaken = others.some((one) => one.name === wanted && one.uid !== vault?.uid);
  const save = async (): Promise<void> => {
    if (!wanted || isTaken || isBusy) return;
    setBusy(true);
    try {
      if (vault) {
        await (await vaultByUid(client, vault)).rename(wanted);
        await vaultsChanged();
        tell(moreTexts.items.vaultRenamed);
      } else {
        const made = await makeVault(wanted);
        showPlace({ vault: made.uid });
        go("items", made.uid);
      }
      onClose();
    } catch (met) {
      setFault(changeSentence(met));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={vault ? texts.items.renameVault : texts.items.newVault}
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <>
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={!wanted || isTaken}>
            {vault ? texts.common.save : moreTexts.items.create}
          </Button>
        </>
      }
    >
      <TextField
        label={moreTexts.items.vaultName}
        value={name}
        onInput={setName}
        maxLength={200}
        fault={isTaken ? moreTexts.items.vaultTaken : fault}
        autoFocus
        hint={moreTexts.items.vaultNameHint}
      />
    </Dialog>
  );
}

/** The end of a vault: its name must be typed. */
function DeleteVault({ vault, onClose }: { vault: ReplicaVault; onClose: () => void }) {
  const { client, replica } = useOpen();
  const { all } = useStore(entries);
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const count = all.filter(({ document }) => document.vault === vault.uid).length;
  const name = vault.name;
  const remove = async (): Promise<void> => {
    setBusy(true);
    try {
      await (await vaultByUid(client, vault)).delete();
      await replica.sync();
      await vaultsChanged();
      showPlace({});
      go("items");
      tell(moreTexts.items.vaultDeleted);
      onClose();
    } catch (met) {
      setFault(changeSentence(met));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={texts.items.deleteVault}
      action={moreTexts.items.deleteForGood}
      isDanger
      isBusy={isBusy}
      typed={{
        label: moreTexts.items.typeName(oneLine(name, 200)),
        text: name.length <= 200 ? name.trim() : oneLine(name, 200),
      }}
      onConfirm={() => void remove()}
      onClose={onClose}
    >
      <p>{moreTexts.items.deleteVaultWhat(oneLine(name, 60), count)}</p>
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </Confirm>
  );
}

/** Another name for a folder, or its end: what is in it stays. */
function ChangeFolder({
  vault,
  path,
  isRemoved,
  onClose,
}: {
  vault: string;
  path: string;
  isRemoved: boolean;
  onClose: () => void;
}) {
  const { all } = useStore(entries);
  const inside = all.filter(
    ({ document, folders }) => document.vault === vault && folders.some((one) => isWithin(one, path)),
  );
  const [name, setName] = useState(pathText(path));
  const change = (): void => {
    const above = path.split("/").slice(0, -1).join("/");
    const to = isRemoved ? above : typedPath(name);
    if (!isRemoved && !to) return;
    onClose();
    showPlace({ vault, folder: to || undefined });
    void changeItems(
      inside,
      (item) => ({ ...item, folders: renamedFolders(item.folders ?? [], path, to) }),
      moreTexts.items.changedMany,
    );
  };
  if (isRemoved) {
    return (
      <Confirm title={texts.items.removeFolder} action={texts.items.removeFolder} onConfirm={change} onClose={onClose}>
        <p>{moreTexts.items.removeFolderWhat(oneLine(pathText(path), 80), inside.length)}</p>
      </Confirm>
    );
  }
  return (
    <Dialog
      title={texts.items.renameFolder}
      onClose={onClose}
      onSubmit={change}
      actions={
        <>
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isDisabled={!typedPath(name)}>
            {texts.common.save}
          </Button>
        </>
      }
    >
      <TextField
        label={moreTexts.items.folder}
        value={name}
        onInput={setName}
        hint={moreTexts.items.newFolderHint}
        autoFocus
      />
    </Dialog>
  );
}
