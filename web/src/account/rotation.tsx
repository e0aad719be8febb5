// New keys for the whole account, with progress.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { Progress } from "../components/progress.js";
import { Checkbox } from "../components/select.js";
import { putOff, remembered } from "../state/device.js";
import { askFactor } from "../state/factor.js";
import { tell } from "../state/notices.js";
import { confirmKey, unconfirmedKey } from "../state/recoveryKey.js";
import { saveAgain, syncNow, useOpen } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { AskPassword } from "./askPassword.js";
import { Fault } from "./frame.js";
import { faultOf, NewPasswordFields, NO_PASSWORD } from "./newPassword.js";
import { RecoverySheet } from "./recoverySheet.js";

/** The section. */
export function Rotation() {
  const { client, email } = useOpen();
  const [isAsking, setAsking] = useState(false);
  const [isNew, setNew] = useState(true);
  const [next, setNext] = useState(NO_PASSWORD);
  const [progress, setProgress] = useState<readonly [done: number, total: number]>();
  const [recoveryKey, setRecoveryKey] = useState<string>();
  const action = useAction();
  const known = remembered();
  const told = (done: number, total: number): void => {
    putOff(); // it locks when nothing goes on any more
    setProgress([done, total]);
  };
  const finish = async (): Promise<void> => {
    setProgress(undefined);
    await saveAgain();
    syncNow();
    tell(moreTexts.rotation.done);
  };
  const rotate = async (password: string): Promise<void> => {
    try {
      setProgress([0, 0]);
      const make = () =>
        client.rotateKeys(password, { code: askFactor, progress: told, ...(isNew && { newPassword: next.first }) });
      const recoveryKey = async () => (await make()).recoveryKey;
      setRecoveryKey(await (client.hasRecoveryKey ? unconfirmedKey(known?.replica ?? "", recoveryKey) : recoveryKey()));
    } finally {
      setProgress(undefined);
    }
    await finish();
  };
  const goOn = (): void =>
    void action.run(async () => {
      await client.finishRotation({ progress: told });
      await finish();
    });
  return (
    <>
      <p class="muted">{moreTexts.rotation.what}</p>
      <Fault>{action.fault}</Fault>
      <div class="row">
        <Button onClick={() => setAsking(true)}>{moreTexts.rotation.begin}</Button>
        <Button kind="plain" isBusy={action.isBusy} onClick={goOn}>
          {moreTexts.rotation.goOn}
        </Button>
      </div>
      <p class="muted small">{moreTexts.rotation.goOnWhy}</p>
      {progress && !isAsking && (
        <Progress label={moreTexts.rotation.progress(...progress)} done={progress[0]} total={progress[1]} />
      )}
      {isAsking && (
        <AskPassword
          title={moreTexts.rotation.begin}
          action={moreTexts.rotation.submit}
          isDanger
          missing={() => (isNew ? faultOf(next) : undefined)}
          run={rotate}
          onClose={() => setAsking(false)}
        >
          <p>{moreTexts.rotation.why}</p>
          <Checkbox
            label={moreTexts.rotation.newPassword}
            isChecked={isNew}
            onChange={setNew}
            hint={moreTexts.rotation.newPasswordWhy}
          />
          {isNew && <NewPasswordFields label={moreTexts.recover.password} value={next} onInput={setNext} />}
          {progress && (
            <Progress label={moreTexts.rotation.progress(...progress)} done={progress[0]} total={progress[1]} />
          )}
        </AskPassword>
      )}
      {recoveryKey !== undefined && (
        <Dialog title={texts.recoverySheet.title} isWide canClose={false} onClose={() => setRecoveryKey(undefined)}>
          <p>{moreTexts.rotation.newKey}</p>
          <RecoverySheet
            recoveryKey={recoveryKey}
            email={email}
            server={known?.server ?? ""}
            onDone={() => {
              confirmKey();
              setRecoveryKey(undefined);
            }}
          />
        </Dialog>
      )}
    </>
  );
}
