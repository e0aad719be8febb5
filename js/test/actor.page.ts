// The actor in a browser.
export { act } from "./actor.js";
