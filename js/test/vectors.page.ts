// Every vector of the format, in a browser: a page calls this with the cases of a file.
export { differences } from "./vectorOperations.js";
