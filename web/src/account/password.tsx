// The password and the recovery key.
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { Checkbox } from "../components/select.js";
import { remembered } from "../state/device.js";
import { askFactor } from "../state/factor.js";
import { tell } from "../state/notices.js";
import { confirmKey, unconfirmedKey } from "../state/recoveryKey.js";
import { saveAgain, syncNow, useOpen } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { AskPassword } from "./askPassword.js";
import { faultOf, NewPasswordFields, NO_PASSWORD } from "./newPassword.js";
import { RecoverySheet } from "./recoverySheet.js";

/** The section. */
export function PasswordSection() {
  const { client, email } = useOpen();
  const [shown, setShown] = useState<"password" | "make" | "remove">();
  const [recoveryKey, setRecoveryKey] = useState<string>();
  const hasKey = client.hasRecoveryKey;
  const known = remembered();
  const make = async (password: string): Promise<void> => {
    setRecoveryKey(
      await unconfirmedKey(known?.replica ?? "", () => client.makeRecoveryKey(password, { code: askFactor })),
    );
    await saveAgain();
  };
  const remove = async (password: string): Promise<void> => {
    await client.removeRecoveryKey(password, { code: askFactor });
    confirmKey();
    await saveAgain();
    tell(moreTexts.password.keyRemoved);
  };
  return (
    <>
      <section class="stack">
        <p class="muted">{moreTexts.password.what}</p>
        <div class="row">
          <Button onClick={() => setShown("password")}>{moreTexts.password.change}</Button>
        </div>
      </section>
      <section class="stack section">
        <h3>{moreTexts.password.recovery}</h3>
        <p class="muted">{hasKey ? moreTexts.password.hasKey : moreTexts.password.hasNone}</p>
        <div class="row">
          <Button onClick={() => setShown("make")}>
            {hasKey ? moreTexts.password.makeAnew : moreTexts.password.make}
          </Button>
          {hasKey && (
            <Button kind="plain" onClick={() => setShown("remove")}>
              {moreTexts.password.removeKey}
            </Button>
          )}
        </div>
      </section>
      {shown === "password" && <ChangePassword onClose={() => setShown(undefined)} />}
      {shown === "make" && (
        <AskPassword
          title={hasKey ? moreTexts.password.makeAnew : moreTexts.password.make}
          action={texts.common.next}
          run={make}
          onClose={() => setShown(undefined)}
        >
          <p>{moreTexts.password.makeWhy}</p>
        </AskPassword>
      )}
      {shown === "remove" && (
        <AskPassword
          title={moreTexts.password.removeKey}
          action={moreTexts.password.removeKey}
          isDanger
          run={remove}
          onClose={() => setShown(undefined)}
        >
          <p>{moreTexts.password.removeWhy}</p>
        </AskPassword>
      )}
      {recoveryKey !== undefined && (
        <Dialog title={texts.recoverySheet.title} isWide canClose={false} onClose={() => setRecoveryKey(undefined)}>
          <RecoverySheet
            recoveryKey={recoveryKey}
            email={email}
            server={known?.server ?? ""}
            onDone={() => {
              confirmKey();
              setRecoveryKey(undefined);
              tell(moreTexts.password.keyMade);
            }}
          />
        </Dialog>
      )}
    </>
  );
}

/** Another password. After a restore from an old backup, the current one is that of the backup. */
function ChangePassword({ onClose }: { onClose: () => void }) {
  const { client } = useOpen();
  const [next, setNext] = useState(NO_PASSWORD);
  const [isRestored, setRestored] = useState(false);
  const { problem } = useStore(syncStatus);
  const wasRestored = problem?.kind === "credentialsRolledBack";
  const run = async (password: string): Promise<void> => {
    await client.changePassword(password, next.first, { code: askFactor, restored: isRestored });
    await saveAgain();
    syncNow();
    tell(moreTexts.password.changed);
  };
  return (
    <AskPassword
      title={moreTexts.password.change}
      action={moreTexts.password.submit}
      missing={() => faultOf(next)}
      run={run}
      onClose={onClose}
    >
      <p>{moreTexts.password.changeWhy}</p>
      {wasRestored && (
        <Checkbox
          label={moreTexts.password.restored}
          isChecked={isRestored}
          onChange={setRestored}
          hint={moreTexts.password.restoredHint}
        />
      )}
      <NewPasswordFields label={moreTexts.recover.password} value={next} onInput={setNext} />
    </AskPassword>
  );
}
