// Create an account, then its recovery sheet.
import { type Client, InvalidInvitation, SignupsClosed, type User } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { TextField } from "../components/textField.js";
import { tell } from "../state/notices.js";
import { confirmKey, unconfirmedKey } from "../state/recoveryKey.js";
import { enterNew, newClient, replicaName } from "../state/session.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { Fault, Form, Frame } from "./frame.js";
import { EmailField, type LoginSubpage, isEmail, ServerField } from "./loginFields.js";
import { faultOf, NewPasswordFields, NO_PASSWORD } from "./newPassword.js";
import { RecoverySheet } from "./recoverySheet.js";

interface Made {
  readonly client: Client;
  readonly user: User;
  readonly recoveryKey: string;
}

/** The page. */
export const SignUp: LoginSubpage = ({ typed, onTyped, onBack }) => {
  const [password, setPassword] = useState(NO_PASSWORD);
  const [invitation, setInvitation] = useState<string>(); // asked for once the server says that it takes no one without
  const [made, setMade] = useState<Made>();
  const action = useAction();
  const { email, server } = typed;
  const register = async (): Promise<void> => {
    const client = newClient(server);
    let user: User;
    try {
      user = await client.register(
        email.trim(),
        password.first,
        invitation?.trim() ? { invitation: invitation.trim() } : {},
      );
    } catch (fault) {
      if (fault instanceof SignupsClosed || fault instanceof InvalidInvitation) setInvitation((before) => before ?? "");
      if (fault instanceof SignupsClosed) return action.refuse(texts.signUp.invitationHint);
      throw fault;
    }
    try {
      const recoveryKey = await unconfirmedKey(replicaName(user), () => client.makeRecoveryKey(password.first));
      setMade({ client, user, recoveryKey });
    } catch {
      await enterNew(client, server, user);
      tell(texts.recoverySheet.failed, { kind: "fault" });
    }
    setPassword(NO_PASSWORD);
  };
  const submit = (): void => {
    if (!isEmail(email)) return action.refuse(email.trim() ? texts.logIn.emailWrong : texts.logIn.emailMissing);
    const fault = faultOf(password);
    if (fault !== undefined) return action.refuse(fault);
    if (invitation === "") return action.refuse(texts.signUp.invitationHint);
    void action.run(register);
  };
  if (made) {
    return (
      <Frame title={texts.recoverySheet.title} isWide>
        <RecoverySheet
          recoveryKey={made.recoveryKey}
          email={email.trim()}
          server={server}
          onDone={() => {
            confirmKey();
            void action.run(() => enterNew(made.client, server, made.user));
          }}
          onLater={() => void action.run(() => enterNew(made.client, server, made.user))}
        />
        <Fault>{action.fault}</Fault>
      </Frame>
    );
  }
  return (
    <Frame title={texts.signUp.title} below={<p class="muted small">{texts.logIn.trust}</p>}>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <ServerField typed={typed} onTyped={onTyped} />
        <EmailField typed={typed} onTyped={onTyped} isFirst />
        <NewPasswordFields value={password} onInput={setPassword} />
        {invitation !== undefined && (
          <TextField
            label={texts.signUp.invitation}
            hint={texts.signUp.invitationHint}
            isMono
            value={invitation}
            onInput={setInvitation}
            maxLength={100}
          />
        )}
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {texts.signUp.submit}
        </Button>
        {action.isBusy && (
          <p class="hint" role="status">
            {texts.logIn.working}
          </p>
        )}
      </Form>
      <div class="choices">
        <Button kind="plain" onClick={onBack}>
          {texts.signUp.logIn}
        </Button>
      </div>
    </Frame>
  );
};
