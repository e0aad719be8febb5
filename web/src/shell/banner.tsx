// What the app says about its state: above the content an alarm, below it everything else, so that what a person is about
// to click or to drag stays where it is.
import { useRef, useState } from "preact/hooks";
import { Reauthenticate } from "../account/reauthenticate.js";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { Progress } from "../components/progress.js";
import { remembered } from "../state/device.js";
import { unconfirmed } from "../state/recoveryKey.js";
import { go } from "../state/route.js";
import { syncNow } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { ALARMS, type SyncProblem } from "../state/syncProblem.js";
import { texts } from "../texts/en.js";

/** What the server showed cannot be true, or is older than what this device has seen. */
export function SyncAlarm() {
  const { problem } = useStore(syncStatus);
  return problem && ALARMS.includes(problem.kind) ? <Alarm problem={problem} /> : null;
}

/** Offline, a session that has ended, or the progress of the first sync. */
export function SyncBanner() {
  const { problem, first } = useStore(syncStatus);
  const [isAsking, setAsking] = useState(false);
  if (problem && ALARMS.includes(problem.kind)) return null;
  if (problem) {
    const isPassword = problem.kind === "ended" || problem.kind === "password";
    return (
      <div class={problem.kind === "offline" ? "banner calm" : "banner warning"} role="status">
        <Icon name={problem.kind === "offline" ? "cloudOff" : "warning"} />
        <p>{texts.syncProblems[problem.kind]}</p>
        {isPassword ? (
          <Button kind="primary" onClick={() => setAsking(true)}>
            {texts.syncProblems.enterPassword}
          </Button>
        ) : (
          <Button kind="plain" onClick={syncNow}>
            {texts.common.retry}
          </Button>
        )}
        {isAsking && <Reauthenticate isChanged={problem.kind === "password"} onClose={() => setAsking(false)} />}
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

function Alarm({ problem }: { problem: SyncProblem }) {
  const { title, what, next } = texts.alarms[problem.kind as keyof typeof texts.alarms];
  return (
    <div class="banner alarm" role="alert">
      <Icon name="warning" size={20} />
      <div class="stack tight">
        <h2>{title}</h2>
        <p>{what}</p>
        <p>{texts.syncProblems.nothingOverwritten}</p>
        <p>{next}</p>
        <details class="muted small">
          <summary>{texts.syncProblems.detail}</summary>
          <p>{problem.sentence}</p>
        </details>
        <div class="row">
          <Button onClick={syncNow}>{texts.common.retry}</Button>
        </div>
      </div>
    </div>
  );
}
