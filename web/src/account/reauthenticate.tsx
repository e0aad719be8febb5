// The password again, because the session has ended. What waits to be sent stays.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { PasswordField } from "../components/passwordField.js";
import { logInAgain } from "../state/session.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { passwordSentence } from "./faults.js";
import { Fault } from "./frame.js";

/** The dialogue. `isChanged`: the password was changed on another device. */
export function Reauthenticate({ isChanged, onClose }: { isChanged: boolean; onClose: () => void }) {
  const [password, setPassword] = useState("");
  const action = useAction(passwordSentence);
  const submit = (): void => {
    if (!password) return action.refuse(texts.logIn.passwordMissing);
    void action.run(async () => {
      await logInAgain(password);
      onClose();
    });
  };
  return (
    <Dialog
      title={texts.reauthenticate.title}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {texts.logIn.submit}
        </Button>
      }
    >
      <p>{isChanged ? texts.reauthenticate.changed : texts.reauthenticate.ended}</p>
      <Fault>{action.fault}</Fault>
      <PasswordField
        label={texts.common.password}
        autoComplete="current-password"
        value={password}
        onInput={setPassword}
      />
    </Dialog>
  );
}
