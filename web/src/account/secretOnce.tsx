// A secret that is shown once: to be copied, saved or printed.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { copyText } from "../items/copy.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { saveFile } from "./files.js";

/** The secret, in a box. With `fileName`, it can be saved as a text file. */
export function SecretOnce({ label, secret, fileName }: { label: string; secret: string; fileName?: string }) {
  const [isFailed, setFailed] = useState(false);
  useEffect(() => setFailed(false), [secret]);
  return (
    <div class="stack tight">
      {/* biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a field would be filled by password managers */}
      {/* biome-ignore lint/a11y/useSemanticElements: the same */}
      <p class="secretBox mono" role="textbox" aria-readonly="true" aria-label={label} tabIndex={0}>
        {secret}
      </p>
      <div class="row">
        <Button icon="copy" onClick={() => void copyText(secret, label, true).then((is) => setFailed(!is))}>
          {texts.common.copy}
        </Button>
        {fileName !== undefined && (
          <Button icon="download" onClick={() => saveFile(fileName, `${secret}\n`, "text/plain")}>
            {moreTexts.secretOnce.save}
          </Button>
        )}
      </div>
      {isFailed && (
        <p class="fault" role="alert">
          {moreTexts.secretOnce.notCopied}
        </p>
      )}
    </div>
  );
}
