/** Locks: one task at a time, in this client or in all tabs of one origin. */

/** Named locks of one client: tasks with the same name run one after another. */
export class Locks {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Run a task when those before it with the same name have ended. */
  run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const made = (this.#last.get(name) ?? Promise.resolve()).then(task, task);
    const settled = made.catch(() => undefined);
    this.#last.set(name, settled);
    return made;
  }
}

/** Run a task while no other tab of this origin runs one of the same name; at once where there are no such locks. */
export const acrossTabs = async <T>(name: string, task: () => Promise<T>): Promise<T> => {
  const locks = globalThis.navigator?.locks;
  return locks ? await locks.request(name, task) : await task();
};
