// The lock screen: the account is on this device, and its keys are not.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { PasswordField } from "../components/passwordField.js";
import { defaultServer, remembered } from "../state/device.js";
import { logInWithPasskey, logOut, session, unlock } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { passwordSentence } from "./faults.js";
import { Fault, Form, Frame } from "./frame.js";
import { LogIn } from "./logIn.js";

/** The page while it is locked. */
export function Unlock() {
  const [password, setPassword] = useState("");
  const [shown, setShown] = useState<"logIn" | "logOut">();
  const action = useAction(passwordSentence);
  const now = useStore(session);
  const server = remembered()?.server ?? defaultServer();
  if (shown === "logIn") return <LogIn onBack={() => setShown(undefined)} />;
  const submit = (): void => {
    if (!password) return action.refuse(texts.logIn.passwordMissing);
    void action.run(() => unlock(password));
  };
  return (
    <Frame title={texts.unlock.title}>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <PasswordField
          label={texts.common.password}
          autoComplete="current-password"
          autoFocus
          value={password}
          onInput={setPassword}
        />
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {action.isBusy ? texts.unlock.working : texts.unlock.submit}
        </Button>
      </Form>
      <div class="choices">
        {now.kind === "locked" && now.hasPasskey && (
          <Button icon="key" isDisabled={action.isBusy} onClick={() => void action.run(() => logInWithPasskey(server))}>
            {texts.unlock.passkey}
          </Button>
        )}
        <Button kind="plain" onClick={() => setShown("logIn")}>
          {texts.unlock.changed}
        </Button>
        <Button kind="plain" onClick={() => setShown("logOut")}>
          {texts.unlock.logOut}
        </Button>
      </div>
      {shown === "logOut" && (
        <Confirm
          title={texts.logOut.title}
          action={texts.logOut.submit}
          isDanger
          isBusy={action.isBusy}
          onConfirm={() => void action.run(async () => void (await logOut()))}
          onClose={() => setShown(undefined)}
        >
          <p>{texts.logOut.locked}</p>
        </Confirm>
      )}
    </Frame>
  );
}
