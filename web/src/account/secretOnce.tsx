// A secret that is shown once: to be copied, saved or printed.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { tell } from "../state/notices.js";
import { onLock } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/later.js";
import { saveFile } from "./files.js";

const CLEARED = 30_000; // milliseconds until the clipboard is emptied
let clearing: ReturnType<typeof setTimeout> | undefined;

/** Copy a secret, and empty the clipboard after a while. */
async function copy(secret: string): Promise<void> {
  await navigator.clipboard.writeText(secret);
  clearTimeout(clearing);
  clearing = setTimeout(empty, CLEARED);
  tell(moreTexts.secretOnce.copied);
}

function empty(): void {
  if (clearing === undefined) return;
  clearTimeout(clearing);
  clearing = undefined;
  void navigator.clipboard.writeText("").catch(() => undefined);
}
onLock(empty);

/** The secret, in a box. With `fileName`, it can be saved as a text file. */
export function SecretOnce({ label, secret, fileName }: { label: string; secret: string; fileName?: string }) {
  const [isFailed, setFailed] = useState(false);
  useEffect(() => setFailed(false), [secret]);
  return (
    <div class="stack tight">
      <p class="secretBox mono" role="textbox" aria-readonly="true" aria-label={label} tabIndex={0}>{secret}</p>
      <div class="row">
        <Button icon="copy" onClick={() => void copy(secret).catch(() => setFailed(true))}>{texts.common.copy}</Button>
        {fileName !== undefined && <Button icon="download" onClick={() => saveFile(fileName, `${secret}\n`, "text/plain")}>{moreTexts.secretOnce.save}</Button>}
      </div>
      {isFailed && <p class="fault" role="alert">{moreTexts.secretOnce.notCopied}</p>}
    </div>
  );
}
