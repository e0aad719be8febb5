// Move an account from another server to this one: the file that was exported there is sent here, and compared.
import { Client, HistoryLeftOut, InvalidInvitation, SignupsClosed } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { PasswordField } from "../components/passwordField.js";
import { Progress } from "../components/progress.js";
import { Checkbox } from "../components/select.js";
import { TextField } from "../components/textField.js";
import { logIn } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { chooseFile } from "./files.js";
import { Fault, Form, Frame } from "./frame.js";
import { EmailField, type LoginSubpage, isEmail, ServerField } from "./loginFields.js";

/** The page. */
export const MoveIn: LoginSubpage = ({ typed, onTyped, onBack }) => {
  const [file, setFile] = useState<File>();
  const [password, setPassword] = useState("");
  const [invitation, setInvitation] = useState<string>();
  const [isLess, setLess] = useState<boolean>(); // asked for once the server says that it keeps less history
  const [progress, setProgress] = useState<readonly [number, number]>();
  const action = useAction();
  const { email, server } = typed;
  const move = async (): Promise<void> => {
    if (!file) return;
    try {
      const client = await Client.importAccount(server, file, email.trim(), password, {
        deviceName: texts.common.deviceName,
        progress: (done, total) => setProgress([done, total]),
        allowLessHistory: isLess ?? false,
        ...(invitation?.trim() && { invitation: invitation.trim() }),
      });
      await client.logout();
    } catch (fault) {
      if (fault instanceof SignupsClosed || fault instanceof InvalidInvitation) setInvitation((before) => before ?? "");
      if (fault instanceof HistoryLeftOut) setLess((before) => before ?? false);
      throw fault;
    } finally {
      setProgress(undefined);
    }
    await logIn(server, email.trim(), password);
  };
  const submit = (): void => {
    if (!file) return action.refuse(moreTexts.moveIn.fileMissing);
    if (!isEmail(email)) return action.refuse(email.trim() ? texts.logIn.emailWrong : texts.logIn.emailMissing);
    if (!password) return action.refuse(texts.logIn.passwordMissing);
    void action.run(move);
  };
  return (
    <Frame title={moreTexts.moveIn.title}>
      <p class="muted">{moreTexts.moveIn.why}</p>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <ServerField typed={typed} onTyped={onTyped} />
        <div class="row">
          <Button icon="file" autoFocus onClick={() => void chooseFile("").then((chosen) => chosen && setFile(chosen))}>
            {moreTexts.moveIn.choose}
          </Button>
          {file && (
            <span class="clip">
              <bdi>{file.name}</bdi>
            </span>
          )}
        </div>
        <EmailField typed={typed} onTyped={onTyped} />
        <PasswordField
          label={texts.common.password}
          autoComplete="current-password"
          value={password}
          onInput={setPassword}
        />
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
        {isLess !== undefined && <Checkbox label={moreTexts.moveIn.less} isChecked={isLess} onChange={setLess} />}
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {moreTexts.moveIn.submit}
        </Button>
        {progress && <Progress label={moreTexts.moveIn.progress} done={progress[0]} total={progress[1]} />}
      </Form>
      <div class="choices">
        <Button kind="plain" onClick={onBack}>
          {texts.common.back}
        </Button>
      </div>
    </Frame>
  );
};
