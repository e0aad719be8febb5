// Something that is fetched from the server and shown: a list of sessions, the log, the usage.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Waiting } from "../components/progress.js";
import { texts } from "../texts/en.js";
import { sentenceOf } from "./faults.js";
import { Fault } from "./frame.js";

interface Loading<T> {
  readonly value: T | undefined;
  readonly fault: string | undefined;
  /** Fetch it again. */
  readonly again: () => void;
}

/** What a function fetches, when the component is first shown and whenever `again` is called. */
export function useLoaded<T>(fetch: () => Promise<T>): Loading<T> {
  const [state, setState] = useState<{ value?: T; fault?: string | undefined }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isShown = true;
    fetch().then(
      (value) => isShown && setState({ value }),
      (fault: unknown) => isShown && setState({ fault: sentenceOf(fault) ?? texts.common.notLoaded }),
    );
    return () => {
      isShown = false;
    };
  }, [turn]);
  return { value: state.value, fault: state.fault, again: () => setTurn((before) => before + 1) };
}

/** It, once it is there; before that, that it is being fetched; or why it cannot be. */
export function Loaded<T>({ of, children }: { of: Loading<T>; children: (value: T) => ComponentChildren }) {
  if (of.fault !== undefined) {
    return (
      <div class="stack">
        <Fault>{of.fault}</Fault>
        <div class="row">
          <Button onClick={of.again}>{texts.common.retry}</Button>
        </div>
      </div>
    );
  }
  return of.value === undefined ? <Waiting label={texts.common.loading} /> : children(of.value);
}

/** A time in the past, in the words of this browser; the whole time when it is pointed at. */
export function Time({ at }: { at: number | null }) {
  if (at === null) return <>{texts.common.never}</>;
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString("en")}>
      {date.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}
    </time>
  );
}
