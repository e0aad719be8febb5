// The texts of views that are loaded when they are first shown. The build makes a file of its own of them.
export { moreTexts } from "./en.js";
