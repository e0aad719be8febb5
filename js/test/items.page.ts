// The vectors of items in a browser: a page calls this with the cases of a file.
export { itemDifferences } from "./itemVectors.js";
