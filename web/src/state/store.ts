// A store: a value that changes, and whoever shows it. Stores of a replica (`LiveStore`) have the same shape.
import { useEffect, useState } from "preact/hooks";

/** A value that changes, for whoever shows it. */
export interface Store<T> {
  /** Call a function after each change; what ends that. */
  subscribe(listener: () => void): () => void;
  /** The value now: the same object as long as nothing changes. */
  getSnapshot(): T;
}

/** A store whose owner changes it. */
export interface OwnStore<T> extends Store<T> {
  /** Set another value, or make it from the one of before. */
  set(next: T | ((before: T) => T)): void;
}

/** A store with this value. */
export function createStore<T>(first: T): OwnStore<T> {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    getSnapshot: () => value,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set(next) {
      const made = typeof next === "function" ? (next as (before: T) => T)(value) : next;
      if (Object.is(made, value)) return;
      value = made;
      for (const listener of [...listeners]) listener();
    },
  };
}

/** A store whose value never changes: for what is not there yet. */
export const constantStore = <T>(value: T): Store<T> => ({
  getSnapshot: () => value,
  subscribe: () => () => undefined,
});

/** The value of a store; the component is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState<object>();
  const drawn = store.getSnapshot();
  useEffect(() => {
    let shown = drawn;
    const look = (): void => {
      const now = store.getSnapshot();
      if (Object.is(now, shown)) return;
      shown = now;
      draw({});
    };
    const stop = store.subscribe(look);
    look(); // it may have changed between the drawing and now
    return stop;
  }, [store]);
  return drawn;
}
