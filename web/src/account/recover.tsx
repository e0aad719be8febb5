// A lost password: the recovery key opens the account, and a new password is set.
import { InvalidCredentials } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { TextField } from "../components/textField.js";
import { askFactor } from "../state/factor.js";
import { enterNew, newClient } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { sentenceOf } from "./faults.js";
import { Fault, Form, Frame } from "./frame.js";
import { EmailField, type LoginSubpage, isEmail, ServerField } from "./loginFields.js";
import { faultOf, NewPasswordFields, NO_PASSWORD } from "./newPassword.js";

const told = (fault: unknown): string | undefined =>
  fault instanceof InvalidCredentials ? moreTexts.recover.wrong : sentenceOf(fault);

/** The page. */
export const Recover: LoginSubpage = ({ typed, onTyped, onBack }) => {
  const [key, setKey] = useState("");
  const [password, setPassword] = useState(NO_PASSWORD);
  const action = useAction(told);
  const { email, server } = typed;
  const submit = (): void => {
    if (!isEmail(email)) return action.refuse(email.trim() ? texts.logIn.emailWrong : texts.logIn.emailMissing);
    if (!key.trim()) return action.refuse(moreTexts.recover.keyMissing);
    const fault = faultOf(password);
    if (fault !== undefined) return action.refuse(fault);
    void action.run(async () => {
      const client = newClient(server);
      await enterNew(client, server, await client.recover(email.trim(), key, password.first, { code: askFactor }));
    });
  };
  return (
    <Frame title={moreTexts.recover.title}>
      <p class="muted">{moreTexts.recover.why}</p>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <ServerField typed={typed} onTyped={onTyped} />
        <EmailField typed={typed} onTyped={onTyped} isFirst />
        <TextField
          label={moreTexts.recover.key}
          hint={moreTexts.recover.keyHint}
          isMono
          value={key}
          onInput={setKey}
          maxLength={100}
        />
        <NewPasswordFields label={moreTexts.recover.password} value={password} onInput={setPassword} />
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {moreTexts.recover.submit}
        </Button>
      </Form>
      <div class="choices">
        <Button kind="plain" onClick={onBack}>
          {texts.common.back}
        </Button>
      </div>
    </Frame>
  );
};
