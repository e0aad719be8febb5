// Vaults that a device has and the server has not: made without it, or lost with a restore.
import { Tampered, VaultAlreadyExists } from "../errors.js";
import { freeName } from "../format/freeName.js";
import type { VaultEntry } from "../format/keyring.js";
import type { Generation } from "../format/keys.js";
import type { VaultRow } from "../net/decoders.js";
import { create } from "../net/requests/vaults.js";
import type { Core } from "./core.js";
import * as keyrings from "./keyrings.js";
import { fetchEntry, make, openEntry, type OpenVault, WRONG_VAULT } from "./vaults.js";

const RENAMED = 20; // names that are tried for a vault that was made without the server

/** A vault that was made without the server, with its key. */
export interface NewVault {
  readonly uid: string;
  readonly name: string;
  readonly sealed: boolean;
  readonly secrets: readonly Generation[];
}

/**
 * Make a vault on the server that was made without it: first in the directory, under a name that is free there.
 *
 * Undefined if it was deleted meanwhile. Where an earlier attempt was interrupted, this goes on with it.
 */
export async function addVault(core: Core, { uid, name, sealed, secrets }: NewVault): Promise<OpenVault | undefined> {
  const now = (): VaultEntry | undefined => core.keyring().entry(uid);
  for (let tries = 0; tries < RENAMED; tries += 1) {
    await keyrings.update(core, (ring) => {
      const [, key] = secrets[0] ?? [];
      if (ring.entry(uid) || ring.isGone(uid) || !key) return undefined;
      return ring.withVault(
        uid,
        freeName(name, (one) => ring.vault(one)),
        sealed,
        () => key.reveal(),
      );
    });
    const entry = now();
    if (!entry || entry.made) break;
    try {
      if (!(await fetchEntry(core, entry))) await make(core, await openEntry(core, entry));
    } catch (refusal) {
      if (!(refusal instanceof VaultAlreadyExists)) throw refusal;
      // Another program's vault, which is in no directory, has the name.
      await keyrings.update(core, (ring) => {
        const mine = ring.entry(uid);
        return mine && !mine.made
          ? ring.withEntry(uid, { name: freeName(mine.name, (one) => ring.vault(one)) })
          : undefined;
      });
      continue;
    }
    await keyrings.update(core, (ring) =>
      ring.entry(uid)?.made === false ? ring.withEntry(uid, { made: true }) : undefined,
    );
  }
  const entry = now();
  return entry && openEntry(core, entry);
}

/** A vault of the directory that the server has forgotten. */
export async function recreateVault(core: Core, entry: VaultEntry): Promise<[OpenVault, VaultRow]> {
  const vault = await openEntry(core, entry);
  const row = await core.session.send(create(vault.uid, vault.wire));
  if (row.uid !== vault.uid || row.name !== vault.wire) throw new Tampered(WRONG_VAULT);
  return [vault, row];
}
