// What tests do inside a client, which no program can.
import { type Client, coreOf } from "../src/client.js";
import type { Core } from "../src/operations/core.js";
import * as deviceMemory from "../src/operations/deviceMemory.js";

/** Perform a test's own operation on what is inside a client. */
export async function perform(core: Core, name: string, values: unknown[]): Promise<unknown> {
  if (name === "tokens") return core.session.tokens();
  if (name === "tokensHeld") return core.session.isOpen ? core.session.tokens().catch(() => []) : [];
  if (name === "useTokens") return core.session.useTokens(String(values[0]), String(values[1]));
  if (name === "email") return core.email;
  if (name === "sealed") return core.sealed;
  if (name === "keyring") {
    const { version, generation, vaults } = core.keyring();
    return { version, generation, vaults: vaults.map(({ uid, name: called }) => ({ uid, name: called })) };
  }
  if (name === "keyringVersion") return core.keyring().version;
  if (name === "descriptor") return { memory: core.descriptor?.memory, passes: core.descriptor?.passes };
  if (name === "twin") return twin(core, coreOf(values[0] as Client));
  if (name === "remember") return remember(core, values[0] as Record<string, number>);
  throw new Error(`there is no operation ${name}`);
}

/** Make another client what this one is: the same keys and tokens, and the same memory of what was seen. */
async function twin(from: Core, to: Core): Promise<void> {
  to.email = from.email;
  to.ring = from.ring;
  to.sealed = from.sealed;
  to.descriptor = from.descriptor;
  to.session.useTokens(...(await from.session.tokens()));
  const vaults = new Set(from.keyring().vaults.map(({ uid }) => uid));
  deviceMemory.remember(to.device, from.email ?? "", deviceMemory.memoryOf(from.device, from.email ?? "", vaults));
  for (const uid of vaults) {
    const blob = from.device.blob(uid);
    if (blob) to.device.recordBlob(blob);
  }
}

/** Have seen other figures of the account than there were. */
function remember({ device, email = "" }: Core, figures: Record<string, number>): void {
  const { account, ...others } = deviceMemory.memoryOf(device, email, new Set());
  deviceMemory.remember(device, email, { ...others, account: { ...account, ...figures } });
}
