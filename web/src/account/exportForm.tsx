// What every export of items has: a format, the warning that the file is not encrypted, and the file.
import type { Item } from "@strongroom/client/items";
// Not from the module above: the first load has that one, and needs no formats.
import { WRITE_FORMATS, type WriteFormat, writeItems } from "@strongroom/client/items/formats/table";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Progress } from "../components/progress.js";
import { Select } from "../components/select.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { saveFile } from "./files.js";
import { Fault } from "./frame.js";

/** An item to be exported, by its uid. */
export type Exported = readonly [uid: string, item: Item];

interface ExportFormProps {
  /** Gives the items; it tells how many it has so far. */
  gather: (told: (count: number) => void) => Promise<readonly Exported[]>;
  /** Fields that say which items. */
  children?: ComponentChildren;
  onDone?: () => void;
}

/** Write items as a file that other programs read. */
export function ExportForm({ gather, children, onDone }: ExportFormProps) {
  const [format, setFormat] = useState<WriteFormat>("bitwarden");
  const [done, setDone] = useState<number>();
  const action = useAction();
  const write = async (): Promise<void> => {
    try {
      const content = await writeItems(format, await gather(setDone));
      saveFile(moreTexts.transfer.fileName(format), new Blob([content], { type: "application/json" }));
    } finally {
      setDone(undefined);
    }
    onDone?.();
  };
  return (
    <>
      <Select
        label={moreTexts.transfer.format}
        value={format}
        onChange={setFormat}
        choices={WRITE_FORMATS.map((one) => [one, moreTexts.transfer.formats[one]] as const)}
      />
      {children}
      <Fault>{action.fault}</Fault>
      <p class="warningBox">{moreTexts.transfer.plain}</p>
      <div class="row">
        <Button icon="download" isBusy={action.isBusy} onClick={() => void action.run(write)}>
          {moreTexts.transfer.write}
        </Button>
      </div>
      {done !== undefined && <Progress label={moreTexts.transfer.progress(done, undefined)} />}
    </>
  );
}

/** An item with the name of its vault as its outermost folder, as the command line exports several vaults. */
export function inFolder<I extends { readonly folders?: readonly string[] | undefined }>(item: I, name: string): I {
  const outer = name.replace(/%/g, "%25").replace(/\//g, "%2F");
  const folders = item.folders?.length ? item.folders.map((folder) => `${outer}/${folder}`) : [outer];
  return { ...item, folders };
}
