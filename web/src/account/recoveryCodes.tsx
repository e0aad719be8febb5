// Recovery codes of the second factor: shown once, printed or saved.
import type { RecoveryCodes } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { Checkbox } from "../components/select.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { saveFile } from "./files.js";

/** The sheet. It closes once a person says that the codes are kept. */
export function RecoveryCodeSheet({ codes, onClose }: { codes: RecoveryCodes; onClose: () => void }) {
  const [isKept, setKept] = useState(false);
  const all = [...codes];
  return (
    <Dialog
      title={moreTexts.recoveryCodes.title}
      canClose={false}
      onClose={onClose}
      actions={
        <Button kind="primary" isDisabled={!isKept} onClick={onClose}>
          {texts.common.done}
        </Button>
      }
    >
      <p>{moreTexts.recoveryCodes.why}</p>
      <div class="sheet">
        <h2 class="onPaper">{moreTexts.recoveryCodes.title}</h2>
        <ol class="codeList mono">
          {all.map((code) => (
            <li key={code}>{code}</li>
          ))}
        </ol>
        <p class="small onPaper">{moreTexts.recoveryCodes.why}</p>
      </div>
      <div class="row">
        <Button icon="print" onClick={() => print()}>
          {texts.recoverySheet.print}
        </Button>
        <Button
          icon="download"
          onClick={() => saveFile(moreTexts.recoveryCodes.fileName, `${all.join("\n")}\n`, "text/plain")}
        >
          {texts.recoverySheet.download}
        </Button>
      </div>
      <Checkbox label={moreTexts.recoveryCodes.kept} isChecked={isKept} onChange={setKept} />
    </Dialog>
  );
}
