// Something that a button does: busy while it runs, and a sentence where it fails.
import { useEffect, useRef, useState } from "preact/hooks";
import { sentenceOf } from "./faults.js";

/** The state of an action. */
export interface Action {
  readonly isBusy: boolean;
  /** Why it failed, for people. */
  readonly fault: string | undefined;
  /** Do it, unless it is under way. */
  readonly run: (task: () => Promise<void>) => Promise<void>;
  /** Say what is wrong before anything is done. */
  readonly refuse: (fault: string | undefined) => void;
}

/** An action of a component. `told` makes the sentence of an error. */
export function useAction(told: (fault: unknown) => string | undefined = sentenceOf): Action {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const running = useRef(false);
  const mounted = useRef(true);
  useEffect(
    () => () => {
      mounted.current = false;
    },
    [],
  );
  const run = async (task: () => Promise<void>): Promise<void> => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    setFault(undefined);
    try {
      await task();
    } catch (refusal) {
      if (mounted.current) setFault(told(refusal));
    } finally {
      running.current = false;
      if (mounted.current) setBusy(false);
    }
  };
  return { isBusy, fault, run, refuse: setFault };
}
