// The keyring of a replica, where the server has an older one, or one of another branch.
import { CredentialsRolledBack } from "../errors.js";
import { readDescriptor, spellDescriptor } from "../format/descriptor.js";
import { equal, must } from "../format/encoding.js";
import { readHead } from "../format/keyring.js";
import type { Core } from "../operations/core.js";
import { TWO_KEYRINGS } from "../operations/rollback.js";
import type { Tables } from "./tables.js";

/**
 * The server has sent an older keyring than the one that is here, or one of another branch: go on with this one.
 *
 * The same keys must open both. Whether the server was restored from a backup, the next sync asks.
 */
export async function useOwn(core: Core, tables: Tables, sealed: string): Promise<void> {
  const { ring, email = "" } = core;
  const spelled = await tables.fact("descriptor");
  const descriptor = readDescriptor(spelled);
  const mine = core.descriptor && JSON.stringify(spellDescriptor(core.descriptor));
  const head = readHead(sealed);
  if (!ring || !equal(head.slots, ring.slots) || head.generation !== ring.generation || spelled !== mine) {
    must(!ring || head.version > ring.version, TWO_KEYRINGS);
    throw new CredentialsRolledBack();
  }
  const own = await ring.reopened(sealed);
  const follows = own.followsOn(ring.version, ring.digest);
  must(follows !== null, TWO_KEYRINGS);
  if (follows) await core.device.recordAccount(email, own, descriptor);
  else core.isForked = true;
  Object.assign(core, { ring: own, sealed });
}
