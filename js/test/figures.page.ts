// What the client costs in a browser.
import * as figures from "./figures.js";

export { sealing } from "./figures.js";

/** A first sync into IndexedDB, reading everything, and an unlock. */
export const syncing = (url: string, email: string, password: string, count: number) =>
  figures.syncing(url, email, password, "figures", count);
