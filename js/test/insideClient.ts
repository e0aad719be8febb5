// What tests do inside a client, which no program can.
import type { Core } from "../src/operations/core.js";

/** Perform a test's own operation on what is inside a client. */
export async function perform(core: Core, name: string, values: unknown[]): Promise<unknown> {
  if (name === "tokens") return core.session.tokens();
  if (name === "useTokens") return core.session.useTokens(String(values[0]), String(values[1]));
  if (name === "email") return core.email;
  if (name === "sealed") return core.sealed;
  if (name === "keyring") return { version: core.keyring().version, generation: core.keyring().generation };
  if (name === "keyringVersion") return core.keyring().version;
  if (name === "descriptor") return { memory: core.descriptor?.memory, passes: core.descriptor?.passes };
  throw new Error(`there is no operation ${name}`);
}
