// What the app says about its state, above the content: offline, a session that has ended, a server that cannot be believed.
import { useRef, useState } from "preact/hooks";
import { AskAgain } from "../account/askAgain.js";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { Progress } from "../components/progress.js";
import { remembered } from "../state/device.js";
import { unconfirmed } from "../state/recoveryKey.js";
import { go } from "../state/route.js";
import { syncNow } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { ALARMS, type Trouble } from "../state/trouble.js";
import { texts } from "../texts/en.js";

/** The banner, if there is something to say. */
export function SyncBanner() {
  const { trouble, first } = useStore(syncStatus);
  const [isAsking, setAsking] = useState(false);
  if (trouble && ALARMS.includes(trouble.kind)) return <Alarm trouble={trouble} />;
  if (trouble) {
    const isPassword = trouble.kind === "ended" || trouble.kind === "password";
    return (
      <div class={trouble.kind === "offline" ? "banner calm" : "banner warning"} role="status">
        <Icon name={trouble.kind === "offline" ? "cloudOff" : "warning"} />
        <p>{texts.trouble[trouble.kind]}</p>
        {isPassword ? (
          <Button kind="primary" onClick={() => setAsking(true)}>{texts.trouble.enterPassword}</Button>
        ) : (
          <Button kind="plain" onClick={syncNow}>{texts.common.retry}</Button>
        )}
        {isAsking && <AskAgain isChanged={trouble.kind === "password"} onClose={() => setAsking(false)} />}
      </div>
    );
  }
  if (!first) return <KeyBanner />;
  return (
    <div class="banner calm">
      <Progress label={texts.sync.first(first.done, first.total)} done={first.done} total={first.total} />
    </div>
  );
}

/** A recovery key was made before this unlock, and nobody has confirmed to have it. */
function KeyBanner() {
  const left = useRef(unconfirmed.getSnapshot()).current; // not one whose sheet is shown just now
  const isLeft = useStore(unconfirmed) !== undefined && left !== undefined && left === remembered()?.replica;
  if (!isLeft) return null;
  return (
    <div class="banner warning" role="status">
      <Icon name="warning" />
      <p>{texts.recoverySheet.unconfirmed}</p>
      <Button onClick={() => go("settings", "password")}>{texts.recoverySheet.another}</Button>
    </div>
  );
}

/** What the server showed cannot be true, or is older than what this device has seen. */
function Alarm({ trouble }: { trouble: Trouble }) {
  const { title, what, next } = texts.alarms[trouble.kind as keyof typeof texts.alarms];
  return (
    <div class="banner alarm" role="alert">
      <Icon name="warning" size={20} />
      <div class="stack tight">
        <h2>{title}</h2>
        <p>{what}</p>
        <p>{texts.trouble.nothingOverwritten}</p>
        <p>{next}</p>
        <details class="muted small">
          <summary>{texts.trouble.detail}</summary>
          <p>{trouble.sentence}</p>
        </details>
        <div class="row">
          <Button onClick={syncNow}>{texts.common.retry}</Button>
        </div>
      </div>
    </div>
  );
}
