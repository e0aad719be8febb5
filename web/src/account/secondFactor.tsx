// The dialogue for a second factor, wherever the server asks for one.
import { InvalidSecondFactor } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { TextField } from "../components/textField.js";
import { question, type Question } from "../state/factor.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";

/** The question that waits, if there is one. */
export function FactorDialog() {
  const asked = useStore(question);
  return asked ? <Ask key={String(asked.refusal)} asked={asked} /> : null;
}

function Ask({ asked }: { asked: Question }) {
  const [code, setCode] = useState("");
  const isWrong = asked.refusal instanceof InvalidSecondFactor;
  const answerByPasskey = async (): Promise<void> =>
    asked.answer((await import("@strongroom/client/passkeys")).browserAuthenticator);
  return (
    <Dialog
      title={texts.secondFactor.title}
      onClose={asked.cancel}
      onSubmit={() => code.trim() && asked.answer(code)}
      actions={
        <>
          {typeof PublicKeyCredential !== "undefined" && (
            <Button icon="key" onClick={() => void answerByPasskey()}>
              {texts.secondFactor.passkey}
            </Button>
          )}
          <Button type="submit" kind="primary">
            {texts.secondFactor.submit}
          </Button>
        </>
      }
    >
      <TextField
        label={texts.secondFactor.code}
        hint={texts.secondFactor.codeHint}
        fault={isWrong ? texts.errors.InvalidSecondFactor : undefined}
        autoComplete="one-time-code"
        isMono
        value={code}
        onInput={setCode}
        maxLength={100}
      />
    </Dialog>
  );
}
