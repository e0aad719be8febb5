// Rotation: new keys for the account or a vault, and everything sealed anew under them.
//
// What is still to do follows from the generations on the wire: an interrupted rotation goes on where it was.
import { DocumentConflict, DocumentNotFound, VaultNotFound } from "../errors.js";
import { newPassword } from "../format/derive.js";
import { newest } from "../format/keys.js";
import { primitives } from "../format/primitives.js";
import { readProof } from "../format/seal.js";
import { withRotatedVault } from "../format/keyringSlots.js";
import { toContent } from "../format/content.js";
import { setRecovery } from "./accounts.js";
import { BatchWrites, replacements, type WriteResult } from "./batches.js";
import type { Core } from "./core.js";
import { checkedPassword, rotate } from "./credentials.js";
import { get, replaceContent, Scope } from "./documents.js";
import type { FactorSource } from "./factors.js";
import { update } from "./keyrings.js";
import { Listing } from "./listing.js";
import { apiKeys, revokeKey } from "./sessionsAndKeys.js";
import { listVaults, updateWire } from "./vaultChanges.js";
import { openEntry, type OpenVault } from "./vaults.js";

/** Is told how many documents are done, and how many there are. */
export type Progress = (done: number, total: number) => void;

/**
 * New keys for the account and every vault; then everything is sealed anew under them.
 *
 * A recovery key is replaced too, and the new one returned: who has had the keys of before knows its public keys.
 */
export async function rotateKeys(
  core: Core,
  password: string,
  next: string | undefined,
  progress: Progress | undefined,
  source: FactorSource,
): Promise<string | undefined> {
  if (next !== undefined) newPassword(next);
  const keys = await checkedPassword(core, password);
  await revoke(core); // first: an interrupted rotation leaves nothing to do that cannot be seen later
  await rotate(core, keys, next, source);
  await reseal(core, progress);
  if (!core.keyring().recovery) return undefined;
  // Last, so that it is returned as soon as it is stored: until then the one of before opens the account.
  return setRecovery(core, next ?? password, source);
}

/** A new key for one vault; then everything in it is sealed anew under it. */
export async function rotateVault(core: Core, { uid }: OpenVault, progress?: Progress): Promise<OpenVault> {
  await revoke(core, uid);
  await update(core, (ring) => withRotatedVault(ring, uid, primitives().random));
  const entry = core.keyring().entry(uid);
  if (!entry) throw new VaultNotFound();
  const opened = await openEntry(core, entry);
  await resealAll(core, [opened], progress);
  return opened;
}

/** Revoke the API keys of every token, or of those for one vault. */
async function revoke(core: Core, vault?: string): Promise<void> {
  for (const { uid, vaultUids } of await apiKeys(core))
    if (vault === undefined || vaultUids?.includes(vault)) await revokeKey(core, uid);
}

/** Seal anew whatever is not of the newest generation. */
export const reseal = async (core: Core, progress?: Progress): Promise<void> =>
  resealAll(core, await listVaults(core), progress);

/** The names and the blobs of the vaults; then their documents, vault by vault. */
async function resealAll(core: Core, opened: readonly OpenVault[], progress?: Progress): Promise<void> {
  let [done, total] = [0, 0];
  for (const vault of opened) total += (await updateWire(core, vault)).documents ?? 0;
  const report = (more: number): void => {
    done += more;
    total = Math.max(total, done); // others may write meanwhile
    progress?.(done, total);
  };
  for (const { keys } of opened) {
    const scope = new Scope(keys);
    const listing = new Listing(core, scope);
    while (listing.more) {
      const page = await listing.page();
      const old = page.filter(({ proof }) => readProof(proof).generation !== newest(keys).generation);
      report(page.length - old.length);
      const writes = new BatchWrites(
        core,
        scope,
        replacements(
          old.map((one) => [one, one.raw] as const),
          true,
        ),
      );
      while (writes.more) {
        const results = await writes.page();
        for (const result of results) if (result.error) await retry(core, scope, result);
        report(results.length);
      }
    }
  }
}

/** Somebody changed it meanwhile: what they wrote may be of the old generation still. */
async function retry(core: Core, scope: Scope, { uid, error }: WriteResult): Promise<void> {
  const isChanged = (fault: unknown): boolean => fault instanceof DocumentConflict || fault instanceof DocumentNotFound;
  if (!isChanged(error)) throw error;
  try {
    const now = await get(core, scope, uid);
    const keys = await scope.key(now.wire);
    if (readProof(now.proof).generation !== newest(keys).generation)
      await replaceContent(core, scope, now, toContent(now.raw));
  } catch (fault) {
    // Changed or deleted again: a writer that has the new keys, or the next run, sees to it.
    if (!isChanged(fault)) throw fault;
  }
}
