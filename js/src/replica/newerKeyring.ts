// The keyring of a replica, where the server has an older one.
import { CredentialsRolledBack } from "../errors.js";
import { readDescriptor, spellDescriptor } from "../format/descriptor.js";
import { equal, must } from "../format/encoding.js";
import { readHead } from "../format/keyring.js";
import type { Core } from "../operations/core.js";
import { TWO_KEYRINGS } from "../operations/rollback.js";
import type { Tables } from "./tables.js";

/**
 * The server has sent an older keyring than the one that is here: go on with this one, if the same keys open it.
 *
 * Whether the server was restored from a backup, the next sync asks.
 */
export async function useNewer(core: Core, tables: Tables, sealed: string): Promise<void> {
  const { ring, email = "" } = core;
  const spelled = await tables.fact("descriptor");
  const descriptor = readDescriptor(spelled);
  const mine = core.descriptor && JSON.stringify(spellDescriptor(core.descriptor));
  if (!ring || !equal(readHead(sealed).slots, ring.slots) || spelled !== mine) throw new CredentialsRolledBack();
  const newer = await ring.reopened(sealed);
  must(newer.followsOn(ring.version, ring.digest) === true, TWO_KEYRINGS);
  await core.device.recordAccount(email, newer, descriptor);
  Object.assign(core, { ring: newer, sealed });
}
