// The texts of the operator's page. The build makes a file of its own of them.
export { operatorTexts } from "./en.js";
