// The whole account as a file, the move to another server, and the end of the account.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { TextField } from "../components/textField.js";
import { askFactor } from "../state/factor.js";
import { putOff } from "../state/device.js";
import { tell } from "../state/notices.js";
import { logOut, useOpen } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { AskPassword } from "./askPassword.js";
import { saveFile } from "./files.js";
import { Fault } from "./frame.js";

const BUSY = 10_000; // milliseconds

/** The section. */
export function Move() {
  const { client, email } = useOpen();
  const { pending } = useStore(syncStatus);
  const [isDeleting, setDeleting] = useState(false);
  const [typed, setTyped] = useState("");
  const action = useAction();
  const write = (): void =>
    void action.run(async () => {
      const busy = setInterval(putOff, BUSY); // it locks when nothing goes on any more
      try {
        saveFile(moreTexts.move.fileName, await client.exportAccount());
      } finally {
        clearInterval(busy);
      }
      tell(moreTexts.move.written);
    });
  const erase = async (password: string): Promise<void> => {
    await client.deleteAccount(password, { code: askFactor });
    await logOut();
    tell(moreTexts.move.deleted);
  };
  return (
    <>
      <section class="stack">
        <p class="muted">{moreTexts.move.what}</p>
        {pending > 0 && <p class="warningBox">{moreTexts.move.pending(pending)}</p>}
        <Fault>{action.fault}</Fault>
        <div class="row">
          <Button icon="download" isBusy={action.isBusy} onClick={write}>
            {moreTexts.move.write}
          </Button>
        </div>
        <h3>{moreTexts.move.how}</h3>
        <ol class="steps numbered">
          {moreTexts.move.steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      </section>
      <section class="stack section">
        <h3>{moreTexts.move.end}</h3>
        <p class="muted">{moreTexts.move.endWhat}</p>
        <div class="row">
          <Button kind="danger" onClick={() => setDeleting(true)}>
            {moreTexts.move.delete}
          </Button>
        </div>
      </section>
      {isDeleting && (
        <AskPassword
          title={moreTexts.move.delete}
          action={moreTexts.move.delete}
          isDanger
          run={erase}
          onClose={() => setDeleting(false)}
          missing={() => (typed.trim().toLowerCase() === email.toLowerCase() ? undefined : moreTexts.move.typeEmail)}
        >
          <p>{moreTexts.move.deleteWhy}</p>
          <TextField label={moreTexts.move.typeEmail} value={typed} onInput={setTyped} />
        </AskPassword>
      )}
    </>
  );
}
