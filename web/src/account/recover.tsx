// A lost password: the recovery key opens the account, and a new password is set.
import { Invalid, InvalidCredentials } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { TextField } from "../components/textField.js";
import { askFactor } from "../state/factor.js";
import { enterNew, newClient } from "../state/session.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { sentenceOf } from "./faults.js";
import { Fault, Form, Frame } from "./frame.js";
import { type GatePage, isEmail, ServerField } from "./logIn.js";
import { faultOf, NewPasswordFields, NO_PASSWORD } from "./newPassword.js";

const told = (fault: unknown): string | undefined =>
  fault instanceof InvalidCredentials || fault instanceof Invalid ? texts.recover.wrong : sentenceOf(fault);

/** The page. */
export const Recover: GatePage = ({ typed, onTyped, onBack }) => {
  const [key, setKey] = useState("");
  const [password, setPassword] = useState(NO_PASSWORD);
  const action = useAction(told);
  const { email, server } = typed;
  const submit = (): void => {
    if (!isEmail(email)) return action.refuse(email.trim() ? texts.logIn.emailWrong : texts.logIn.emailMissing);
    if (!key.trim()) return action.refuse(texts.recover.keyMissing);
    const fault = faultOf(password);
    if (fault !== undefined) return action.refuse(fault);
    void action.run(async () => {
      const client = newClient(server);
      await enterNew(client, server, await client.recover(email.trim(), key, password.first, { code: askFactor }));
    });
  };
  return (
    <Frame title={texts.recover.title}>
      <p class="muted">{texts.recover.why}</p>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <ServerField typed={typed} onTyped={onTyped} />
        <TextField
          label={texts.common.email} type="email" autoComplete="username" autoFocus
          value={email} onInput={(next) => onTyped({ ...typed, email: next })}
        />
        <TextField label={texts.recover.key} hint={texts.recover.keyHint} isMono value={key} onInput={setKey} maxLength={100} />
        <NewPasswordFields label={texts.recover.password} value={password} onInput={setPassword} />
        <Button type="submit" kind="primary" isBusy={action.isBusy}>{texts.recover.submit}</Button>
      </Form>
      <div class="choices">
        <Button kind="plain" onClick={onBack}>{texts.common.back}</Button>
      </div>
    </Frame>
  );
};
