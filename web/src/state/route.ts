// The route: what `location.hash` names, with uids only. No name, title or search text is ever in the address.
import { createStore, type Store } from "./store.js";

/** `#/items/VAULT/UID` has the view "items" and the parts ["VAULT", "UID"]. */
export interface Route {
  readonly view: string;
  readonly parts: readonly string[];
}

const START: Route = { view: "items", parts: [] };

function read(hash: string): Route {
  const [view, ...parts] = hash.replace(/^#\/?/, "").split("/").filter(Boolean);
  return view === undefined ? START : { view, parts };
}

const current = createStore<Route>(read(location.hash));
addEventListener("hashchange", () => current.set(read(location.hash)));

/** The route that is shown. */
export const route: Store<Route> = current;

/** The address of a route, for links: `hrefOf("items", vault, uid)`. */
export const hrefOf = (view: string, ...parts: readonly string[]): string => `#/${[view, ...parts].join("/")}`;

/** Show another route. With `replace`, the one of before is not in the history of the browser. */
export function go(view: string, ...parts: readonly string[]): void {
  location.hash = hrefOf(view, ...parts);
}

/** Show another route in the place of this one. */
export function replaceRoute(view: string, ...parts: readonly string[]): void {
  history.replaceState(null, "", hrefOf(view, ...parts));
  current.set(read(location.hash));
}

/** Asked later, whether the address is the same: the event of another one comes after it. */
export function routeGuard(): () => boolean {
  const { hash } = location;
  return () => location.hash === hash;
}
