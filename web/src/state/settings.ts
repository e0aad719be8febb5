// Settings of this device, in localStorage: nothing secret, and nothing of the account's content.
import { createStore, type Store } from "./store.js";

/** How the app looks and behaves on this device. */
export interface Settings {
  readonly theme: "system" | "light" | "dark";
  /** Minutes without input until it locks; 0: when the last tab is closed. */
  readonly lockMinutes: number;
  readonly density: "dense" | "roomy";
}

const KEY = "strongroom-web.settings";
/** What can be chosen for `lockMinutes`. */
export const LOCK_CHOICES: readonly number[] = [1, 5, 15, 60, 0];
const DEFAULT: Settings = { theme: "system", lockMinutes: 15, density: "dense" };

function read(): Settings {
  let found: unknown;
  try {
    found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    found = undefined;
  }
  const { theme, lockMinutes, density } = (typeof found === "object" && found !== null ? found : {}) as Record<
    string,
    unknown
  >;
  return {
    theme: theme === "light" || theme === "dark" ? theme : DEFAULT.theme,
    lockMinutes:
      typeof lockMinutes === "number" && LOCK_CHOICES.includes(lockMinutes) ? lockMinutes : DEFAULT.lockMinutes,
    density: density === "roomy" ? density : DEFAULT.density,
  };
}

const current = createStore<Settings>(read());
addEventListener("storage", ({ key }) => {
  if (key === KEY) current.set(read());
});

/** The settings of this device. Another tab's change arrives here too. */
export const settings: Store<Settings> = current;

/** Change settings, for all tabs. */
export function changeSettings(changed: Partial<Settings>): void {
  current.set((before) => ({ ...before, ...changed }));
  localStorage.setItem(KEY, JSON.stringify(current.getSnapshot()));
}

/** Show the page in the chosen theme and density, now and after each change. */
export function followSettings(): void {
  const apply = (): void => {
    const { theme, density } = current.getSnapshot();
    document.documentElement.dataset.theme = theme;
    document.documentElement.dataset.density = density;
  };
  apply();
  current.subscribe(apply);
}
