// Passwords, recovery keys and second factors of an account: loaded when they are used for the first time.
export * as accounts from "./operations/accounts.js";
export { FactorSource, finishLogin } from "./operations/factors.js";
