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

type Rotated = Awaited<ReturnType<ReturnType<typeof useOpen>["client"]["rotateKeys"]>>;

/** The section. */
export function Rotation() {
  const { client, email } = useOpen();
  const [isAsking, setAsking] = useState(false);
  const [isNew, setNew] = useState(true);
  const [next, setNext] = useState(NO_PASSWORD);
  const [progress, setProgress] = useState<readonly [done: number, total: number]>();
  const [recoveryKey, setRecoveryKey] = useState<string>();
  const [result, setResult] = useState<Rotated>();
  const action = useAction();
  const known = remembered();
  const told = (done: number, total: number): void => {
    putOff(); // it locks when nothing goes on any more
    setProgress([done, total]);
  };
  const finish = async (made: Rotated): Promise<void> => {
    setProgress(undefined);
    await saveAgain();
    syncNow();
    setResult(made.unseen.length + made.passkeys.length + made.devices.length ? made : undefined);
    if (!made.unseen.length) tell(moreTexts.rotation.done);
  };
  const rotate = async (password: string): Promise<void> => {
    let made: Rotated;
    try {
      setProgress([0, 0]);
      const make = () =>
        client.rotateKeys(password, { code: askFactor, progress: told, ...(isNew && { newPassword: next.first }) });
      made = await (client.hasRecoveryKey ? unconfirmedKey(known?.replica ?? "", make) : make());
      setRecoveryKey(made.recoveryKey);
    } finally {
      setProgress(undefined);
    }
    await finish(made);
  };
  const goOn = (accept: Rotated["unseen"] = []): void =>
    void action.run(async () => finish(await client.finishRotation({ accept, progress: told })));
  return (
    <>
      <p class="muted">{moreTexts.rotation.what}</p>
      <p class="muted">{moreTexts.rotation.does}</p>
      <p class="muted">{moreTexts.rotation.cannot}</p>
      <Fault>{action.fault}</Fault>
      <div class="row">
        <Button onClick={() => setAsking(true)}>{moreTexts.rotation.begin}</Button>
        <Button kind="plain" isBusy={action.isBusy} onClick={() => goOn()}>
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
          <p>{moreTexts.rotation.does}</p>
          <p>{moreTexts.rotation.cannot}</p>
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
      {recoveryKey === undefined && result && !isAsking && (
        <Result
          rotation={result}
          onClose={() => setResult(undefined)}
          onAccept={() => {
            setResult(undefined);
            goOn(result.unseen);
          }}
        />
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

/** What a rotation has left to do, by people: on other devices, with passkeys, and with what was not encrypted again. */
function Result({ rotation, onClose, onAccept }: { rotation: Rotated; onClose: () => void; onAccept: () => void }) {
  const { unseen, passkeys, devices } = rotation;
  return (
    <Dialog
      title={moreTexts.rotation.result}
      onClose={onClose}
      actions={
        <>
          {unseen.length > 0 && (
            <Button kind="danger" onClick={onAccept}>
              {moreTexts.rotation.accept}
            </Button>
          )}
          <Button kind="primary" onClick={onClose}>
            {texts.common.close}
          </Button>
        </>
      }
    >
      <Named sentence={moreTexts.rotation.unseen(unseen.length)} names={unseen.map(titleOf)} />
      <Named sentence={moreTexts.rotation.passkeys} names={passkeys.map(({ name, rpId }) => name || rpId)} />
      <Named
        sentence={moreTexts.rotation.devices}
        names={devices.map(({ deviceName, userAgent, id }) => deviceName ?? userAgent ?? id)}
      />
    </Dialog>
  );
}

/** A sentence and the names that it is about; nothing without names. */
function Named({ sentence, names }: { sentence: string; names: readonly string[] }) {
  if (!names.length) return null;
  return (
    <>
      <p>{sentence}</p>
      <ul>
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </>
  );
}

/** What a person knows a document or a blob by. */
function titleOf(one: Rotated["unseen"][number]): string {
  if (!("collection" in one)) return moreTexts.rotation.blob;
  const { value } = one;
  const title = typeof value === "object" && value !== null && "title" in value ? String(value.title) : "";
  return moreTexts.rotation.unseenTitle(title, one.collection);
}
