// The whole account as a file, the move to another server, and the end of the account.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { TextField } from "../components/textField.js";
import { askFactor } from "../state/factor.js";
import { tell } from "../state/notices.js";
import { logOut, useOpen } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { AskPassword } from "./askPassword.js";
import { saveFile } from "./files.js";
import { Fault } from "./frame.js";

/** The section. */
export function Move() {
  const { client, email } = useOpen();
  const { pending } = useStore(syncStatus);
  const [isDeleting, setDeleting] = useState(false);
  const [typed, setTyped] = useState("");
  const action = useAction();
  const write = (): void =>
    void action.run(async () => {
      saveFile(texts.move.fileName, await client.exportAccount());
      tell(texts.move.written);
    });
  const erase = async (password: string): Promise<void> => {
    await client.deleteAccount(password, { code: askFactor });
    await logOut();
    tell(texts.move.deleted);
  };
  return (
    <>
      <section class="stack">
        <p class="muted">{texts.move.what}</p>
        {pending > 0 && <p class="warningBox">{texts.move.pending(pending)}</p>}
        <Fault>{action.fault}</Fault>
        <div class="row"><Button icon="download" isBusy={action.isBusy} onClick={write}>{texts.move.write}</Button></div>
        <h3>{texts.move.how}</h3>
        <ol class="steps numbered">{texts.move.steps.map((step) => <li key={step}>{step}</li>)}</ol>
      </section>
      <section class="stack section">
        <h3>{texts.move.end}</h3>
        <p class="muted">{texts.move.endWhat}</p>
        <div class="row"><Button kind="danger" onClick={() => setDeleting(true)}>{texts.move.delete}</Button></div>
      </section>
      {isDeleting && (
        <AskPassword
          title={texts.move.delete} action={texts.move.delete} isDanger run={erase} onClose={() => setDeleting(false)}
          missing={() => (typed.trim().toLowerCase() === email.toLowerCase() ? undefined : texts.move.typeEmail)}
        >
          <p>{texts.move.deleteWhy}</p>
          <TextField label={texts.move.typeEmail} value={typed} onInput={setTyped} />
        </AskPassword>
      )}
    </>
  );
}
