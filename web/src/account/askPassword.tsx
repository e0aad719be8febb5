// The password, before something that changes what opens the account, or that cannot be taken back.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { PasswordField } from "../components/passwordField.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { passwordSentence } from "./faults.js";
import { Fault } from "./frame.js";

interface AskPasswordProps {
  title: string;
  /** The word on the button. */
  action: string;
  isDanger?: boolean;
  children?: ComponentChildren;
  /** What is still missing, besides the password. */
  missing?: (() => string | undefined) | undefined;
  /** Do it, with the password. */
  run: (password: string) => Promise<void>;
  onClose: () => void;
}

/** The dialogue. It closes when the work is done, and stays with a sentence where it fails. */
export function AskPassword({ title, action, isDanger, children, missing, run, onClose }: AskPasswordProps) {
  const [password, setPassword] = useState("");
  const doing = useAction(passwordSentence);
  const submit = (): void => {
    const fault = missing?.() ?? (password ? undefined : texts.logIn.passwordMissing);
    if (fault !== undefined) return doing.refuse(fault);
    void doing.run(async () => {
      await run(password);
      onClose();
    });
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      canClose={!doing.isBusy}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose} isDisabled={doing.isBusy}>
            {texts.common.cancel}
          </Button>
          <Button type="submit" kind={isDanger ? "danger" : "primary"} isBusy={doing.isBusy}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      <Fault>{doing.fault}</Fault>
      <PasswordField
        label={moreTexts.askPassword.current}
        autoComplete="current-password"
        value={password}
        onInput={setPassword}
      />
    </Dialog>
  );
}
