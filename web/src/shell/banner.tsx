// What the app says about its state, above the content: offline, a session that has ended, a server that cannot be believed.
import { useState } from "preact/hooks";
import { AskAgain } from "../account/askAgain.js";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { Progress } from "../components/progress.js";
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
  if (!first) return null;
  return (
    <div class="banner calm">
      <Progress label={texts.sync.first(first.done, first.total)} done={first.done} total={first.total} />
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
        <p class="muted small">{texts.trouble.clientSays(trouble.sentence)}</p>
        <div class="row">
          <Button onClick={syncNow}>{texts.common.retry}</Button>
        </div>
      </div>
    </div>
  );
}
