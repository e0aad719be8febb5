// One-time codes as the second factor: enrolment with a QR code, recovery codes, removal.
import type { Enrolment, RecoveryCodes } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { TextField } from "../components/textField.js";
import { askFactor } from "../state/factor.js";
import { tell } from "../state/notices.js";
import { useOpen } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { AskPassword } from "./askPassword.js";
import { Fault } from "./frame.js";
import { Loaded, Time, useLoaded } from "./loaded.js";
import { QrCode } from "./qrCode.js";
import { RecoveryCodeSheet } from "./recoveryCodes.js";

/** The section. */
export function SecondFactorSection() {
  const { client } = useOpen();
  const status = useLoaded(() => client.secondFactor.status());
  const [shown, setShown] = useState<"enrol" | "codes" | "disable">();
  const [enrolment, setEnrolment] = useState<Enrolment>();
  const [codes, setCodes] = useState<RecoveryCodes>();
  const close = (): void => {
    setShown(undefined);
    status.again();
  };
  const disable = async (password: string): Promise<void> => {
    await client.secondFactor.disable(password, { code: askFactor });
    tell(moreTexts.secondFactors.removed);
  };
  return (
    <>
      <p class="muted">{moreTexts.secondFactors.what}</p>
      <Loaded of={status}>
        {({ totpSince, passkeys, recoveryCodes }) => (
          <div class="stack">
            <dl class="facts">
              <div>
                <dt>{moreTexts.secondFactors.codes}</dt>
                <dd>
                  {totpSince === null ? (
                    moreTexts.secondFactors.off
                  ) : (
                    <>
                      {moreTexts.secondFactors.since} <Time at={totpSince} />
                    </>
                  )}
                </dd>
              </div>
              <div>
                <dt>{moreTexts.secondFactors.passkeys}</dt>
                <dd>{passkeys}</dd>
              </div>
              <div>
                <dt>{moreTexts.secondFactors.recoveryCodes}</dt>
                <dd>{moreTexts.secondFactors.left(recoveryCodes)}</dd>
              </div>
            </dl>
            <div class="row">
              <Button onClick={() => setShown("enrol")}>
                {totpSince === null ? moreTexts.secondFactors.enrol : moreTexts.secondFactors.replace}
              </Button>
              {totpSince !== null && (
                <Button onClick={() => setShown("disable")}>{moreTexts.secondFactors.remove}</Button>
              )}
              {(totpSince !== null || passkeys > 0) && (
                <Button onClick={() => setShown("codes")}>{moreTexts.secondFactors.newCodes}</Button>
              )}
            </div>
          </div>
        )}
      </Loaded>
      {shown === "enrol" && (
        <AskPassword
          title={moreTexts.secondFactors.enrol}
          action={texts.common.next}
          onClose={() => setShown(undefined)}
          run={async (password) => setEnrolment(await client.secondFactor.enrol(password, { code: askFactor }))}
        >
          <p>{moreTexts.secondFactors.enrolWhy}</p>
        </AskPassword>
      )}
      {shown === "codes" && (
        <AskPassword
          title={moreTexts.secondFactors.newCodes}
          action={texts.common.next}
          onClose={close}
          run={async (password) => setCodes(await client.secondFactor.newRecoveryCodes(password, { code: askFactor }))}
        >
          <p>{moreTexts.secondFactors.newCodesWhy}</p>
        </AskPassword>
      )}
      {shown === "disable" && (
        <AskPassword
          title={moreTexts.secondFactors.remove}
          action={moreTexts.secondFactors.remove}
          isDanger
          run={disable}
          onClose={close}
        >
          <p>{moreTexts.secondFactors.removeWhy}</p>
        </AskPassword>
      )}
      {enrolment && (
        <Enrol
          enrolment={enrolment}
          onClose={() => setEnrolment(undefined)}
          onCodes={(made) => {
            setEnrolment(undefined);
            setCodes(made);
            status.again();
          }}
        />
      )}
      {codes && <RecoveryCodeSheet codes={codes} onClose={() => setCodes(undefined)} />}
    </>
  );
}

/** The secret as a QR code and as text, and the first code of the app. */
function Enrol({
  enrolment,
  onClose,
  onCodes,
}: {
  enrolment: Enrolment;
  onClose: () => void;
  onCodes: (codes: RecoveryCodes) => void;
}) {
  const { client } = useOpen();
  const [code, setCode] = useState("");
  const action = useAction();
  const submit = (): void => {
    if (!/^\d{3} ?\d{3}$/.test(code.trim())) return action.refuse(moreTexts.secondFactors.sixDigits);
    void action.run(async () => onCodes(await client.secondFactor.confirm(code.trim())));
  };
  return (
    <Dialog
      title={moreTexts.secondFactors.scan}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {moreTexts.secondFactors.confirm}
        </Button>
      }
    >
      <p>{moreTexts.secondFactors.scanWhy}</p>
      <div class="qrRow">
        <QrCode text={enrolment.uri} label={moreTexts.secondFactors.qr} />
      </div>
      <details>
        <summary>{moreTexts.secondFactors.typeInstead}</summary>
        <p class="secretBox mono">{enrolment.secret.replace(/(.{4})(?=.)/g, "$1 ")}</p>
        <p>
          <a href={enrolment.uri}>{moreTexts.secondFactors.openApp}</a>
        </p>
      </details>
      <Fault>{action.fault}</Fault>
      <TextField
        label={moreTexts.secondFactors.first}
        autoComplete="one-time-code"
        inputMode="numeric"
        isMono
        value={code}
        onInput={setCode}
        maxLength={7}
      />
    </Dialog>
  );
}
