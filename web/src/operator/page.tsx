// The operator's page: health, load, sizes and backups, from `/metrics` and `/ready` alone.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Fault, Form, Frame } from "../account/frame.js";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { PasswordField } from "../components/passwordField.js";
import { Waiting } from "../components/progress.js";
import { operatorTexts } from "../texts/operator.js";
import { bytes, duration, number, percent, seconds } from "./format.js";
import { label, quantile, rate, type Reading, sum } from "./metrics.js";
import { Plot } from "./plot.js";
import { type Failure, follow, type Shown } from "./reader.js";

const DAY = 86_400;
const HIDDEN_MINUTES = 5;

/** Do something once the page was in the background for some time; the function that ends that. */
function whenHidden(milliseconds: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let since: number | undefined;
  const follow = (): void => {
    clearTimeout(timer);
    const isOver = since !== undefined && Date.now() - since >= milliseconds; // timers wait while a machine sleeps
    since = document.hidden ? (since ?? Date.now()) : undefined;
    if (isOver) run();
    else if (document.hidden) timer = setTimeout(run, milliseconds);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", follow);
  };
}

/** The whole page: first the token, then what it opens. */
export function OperatorPage() {
  const [shown, setShown] = useState<Shown>();
  const [failure, setFailure] = useState<Failure | "hidden">();
  const stop = useRef<(() => void) | undefined>(undefined);
  const leave = (reason?: Failure | "hidden"): void => {
    stop.current?.();
    stop.current = undefined;
    setShown(undefined);
    setFailure(reason);
  };
  const enter = (token: string): void => {
    setFailure(undefined);
    setShown({ readings: [], failure: undefined });
    stop.current = follow(token, (next) => {
      const isOut = next.failure !== undefined && (next.failure !== "unreachable" || !next.readings.length);
      if (isOut) leave(next.failure);
      else setShown(next);
    });
  };
  const [turn, setTurn] = useState(0); // another one draws the form anew
  useEffect(() => () => stop.current?.(), []);
  useEffect(
    () =>
      whenHidden(HIDDEN_MINUTES * 60_000, () => {
        leave("hidden");
        setTurn((before) => before + 1);
      }),
    [],
  );
  if (!shown) return <TokenForm key={turn} failure={failure} onToken={enter} />;
  const last = shown.readings.at(-1);
  return last ? (
    <Overview readings={shown.readings} last={last} isAway={shown.failure !== undefined} onLeave={() => leave()} />
  ) : (
    <Waiting label={operatorTexts.reading} />
  );
}

/** The form that asks for the token. It is not stored: a reload asks again. */
function TokenForm({
  failure,
  onToken,
}: {
  failure: Failure | "hidden" | undefined;
  onToken: (token: string) => void;
}) {
  const [token, setToken] = useState("");
  const words = operatorTexts;
  return (
    <Frame title={words.title} below={<p class="muted small">{words.noContent}</p>}>
      <Form onSubmit={() => token.trim() && onToken(token.trim())}>
        <PasswordField
          label={words.token}
          value={token}
          onInput={setToken}
          autoComplete="off"
          hint={words.tokenHint}
          autoFocus
        />
        <Fault>{failure && (failure === "hidden" ? words.hidden(HIDDEN_MINUTES) : words.failures[failure])}</Fault>
        <Button kind="primary" type="submit">
          {words.show}
        </Button>
      </Form>
    </Frame>
  );
}

interface OverviewProps {
  readings: readonly Reading[];
  last: Reading;
  isAway: boolean;
  onLeave: () => void;
}

function Overview({ readings, last, isAway, onLeave }: OverviewProps) {
  const words = operatorTexts;
  const failed = Object.entries(last.checks)
    .filter(([, isGood]) => !isGood)
    .map(([name]) => name);
  return (
    <main class="operator">
      <header class="row spread">
        <div class="row">
          <Icon name="vault" size={20} />
          <h1>{words.title}</h1>
        </div>
        <Button icon="lock" onClick={onLeave}>
          {words.forget}
        </Button>
      </header>
      <div role="status" class="stack tight">
        {isAway && <State kind="warning">{words.away(new Date(last.at).toLocaleTimeString())}</State>}
        {failed.length ? (
          <State kind="danger">{words.notReady(failed.join(", "))}</State>
        ) : (
          <State kind="good">{words.ready}</State>
        )}
      </div>
      <Health last={last} />
      <Load readings={readings} />
      <Sizes readings={readings} />
      <Backups last={last} />
      <p class="muted small">{words.rhythm}</p>
    </main>
  );
}

/** A sentence about the state, with a sign beside its colour. */
function State({ kind, children }: { kind: "good" | "warning" | "danger"; children: string }) {
  return (
    <p class={`state ${kind}`}>
      <Icon name={kind === "good" ? "check" : "warning"} />
      <span>{children}</span>
    </p>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="stack">
      <h2>{title}</h2>
      <div class="figures">{children}</div>
    </section>
  );
}

/** A figure without a course. */
function Figure({ name, value, note }: { name: string; value: string; note?: string | undefined }) {
  return (
    <div class="figure">
      <h3>{name}</h3>
      <p class="value">{value}</p>
      {note !== undefined && <p class="muted small">{note}</p>}
    </div>
  );
}

function Health({ last }: { last: Reading }) {
  const words = operatorTexts;
  const { samples, at } = last;
  const started = sum(samples, "process_start_time_seconds");
  const expiry = sum(samples, "strongroom_certificate_expiry_timestamp_seconds");
  const engine = label(samples, "strongroom_info", "engine") ?? words.unknown;
  return (
    <Section title={words.health}>
      <Figure
        name={words.release}
        value={label(samples, "strongroom_info", "version") ?? words.unknown}
        note={words.engine(engine, label(samples, "strongroom_info", "schema") ?? "?")}
      />
      <Figure
        name={words.uptime}
        value={started === undefined ? words.unknown : duration(at / 1000 - started)}
        note={words.processes(number(sum(samples, "strongroom_processes") ?? 1))}
      />
      {expiry !== undefined && (
        <Figure
          name={words.certificate}
          value={duration(expiry - at / 1000)}
          note={expiry - at / 1000 < 14 * DAY ? words.renewSoon : undefined}
        />
      )}
      <Figure
        name={words.files}
        value={number(sum(samples, "process_open_fds") ?? 0)}
        note={words.of(number(sum(samples, "process_max_fds") ?? 0))}
      />
    </Section>
  );
}

/** One value for each reading, from it and the one before. */
function course(
  readings: readonly Reading[],
  value: (now: Reading, before: Reading | undefined) => number | undefined,
): (number | undefined)[] {
  return readings.map((now, at) => value(now, readings[at - 1]));
}

function Load({ readings }: { readings: readonly Reading[] }) {
  const words = operatorTexts;
  const rates = (name: string, labels?: RegExp) => course(readings, (now, before) => rate(before, now, name, labels));
  const gauges = (name: string) => course(readings, ({ samples }) => sum(samples, name));
  return (
    <Section title={words.load}>
      <Plot label={words.requests} values={rates("strongroom_requests_total")} format={number} />
      <Plot
        label={words.errors}
        values={course(
          readings,
          (now, before) => rate(before, now, "strongroom_requests_total", /status="5/) ?? (before && 0),
        )}
        format={number}
      />
      <Plot label={words.refusals} values={rates("strongroom_refusals_total")} format={number} />
      <Plot
        label={words.latency}
        values={course(readings, (now, before) => quantile(before, now, "strongroom_request_seconds", 0.95))}
        format={seconds}
      />
      <Plot
        label={words.commits}
        values={course(readings, (now, before) => quantile(before, now, "strongroom_commit_seconds", 0.95))}
        format={seconds}
      />
      <Plot
        label={words.failedLogins}
        values={rates("strongroom_logins_total", /result="(failed|throttled)"/)}
        format={number}
      />
      <Plot label={words.connections} values={gauges("strongroom_connections")} format={number} />
      <Plot label={words.streams} values={gauges("strongroom_event_streams")} format={number} />
      <Plot label={words.queues} values={gauges("strongroom_queue_depth")} format={number} />
      <Plot label={words.processor} values={rates("process_cpu_seconds_total")} format={percent} />
    </Section>
  );
}

function Sizes({ readings }: { readings: readonly Reading[] }) {
  const words = operatorTexts;
  const gauges = (name: string) => course(readings, ({ samples }) => sum(samples, name));
  const free = gauges("strongroom_disk_free_bytes");
  return (
    <Section title={words.sizes}>
      <Plot label={words.database} values={gauges("strongroom_database_bytes")} format={bytes} />
      {free.some((value) => value !== undefined) && <Plot label={words.disk} values={free} format={bytes} />}
      <Plot label={words.memory} values={gauges("process_resident_memory_bytes")} format={bytes} />
      <Plot label={words.buffers} values={gauges("strongroom_buffered_bytes")} format={bytes} />
    </Section>
  );
}

function Backups({ last }: { last: Reading }) {
  const words = operatorTexts;
  const age = sum(last.samples, "strongroom_backup_age_seconds");
  const failures = sum(last.samples, "strongroom_backup_failures_total") ?? 0;
  return (
    <section class="stack">
      <h2>{words.backups}</h2>
      {failures > 0 && <State kind="danger">{words.backupsFailed(number(failures))}</State>}
      {age === undefined ? (
        <p>{words.noBackups}</p>
      ) : (
        <div class="figures">
          <Figure name={words.newestBackup} value={words.ago(duration(age))} />
        </div>
      )}
    </section>
  );
}
