// What an app imports from "@strongroom/client".
export * from "./errors.js";
