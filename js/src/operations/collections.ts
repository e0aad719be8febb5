// The collections of a vault.
//
// A sealed name proves that a key holder named a collection of this vault so. Which of them hold documents is the
// server's word, as far as this device has not seen one in them.
import { Locked, Refusal, RolledBack, Tampered } from "../errors.js";
import { compare } from "../format/encoding.js";
import { openName, plainName } from "../format/names.js";
import { listCollections as listCall } from "../net/requests/vaults.js";
import type { Core } from "./core.js";
import { get, Scope, WITHHELD } from "./documents.js";
import { reload } from "./keyrings.js";
import { type OpenVault, renewed } from "./vaults.js";

const ORDER = "The server's list of collections shows one twice, or does not end.";

/** The names of the collections that hold documents, sorted. */
export async function listCollections(core: Core, opened: OpenVault): Promise<string[]> {
  let vault = await renewed(core, opened);
  const wires = new Set<string>();
  let last: string | undefined;
  for (let more = true; more; ) {
    const page = await core.session.send(listCall(vault.uid, last));
    const count = wires.size + page.collections.length;
    for (const wire of page.collections) wires.add(wire);
    if (wires.size !== count || (page.hasMore && !page.collections.length)) throw new Tampered(ORDER);
    last = page.collections.at(-1);
    more = page.hasMore;
  }
  const found = new Set<string>();
  for (const wire of wires) {
    try {
      found.add(await nameOf(vault, wire));
    } catch (error) {
      if (!(error instanceof Locked) || !core.ring) throw error;
      await reload(core); // perhaps another device has rotated the vault's key
      vault = await renewed(core, vault);
      found.add(await nameOf(vault, wire));
    }
  }
  await checkMissing(core, vault, wires);
  return [...found].sort(compare);
}

/** What people call a collection; refused where its name is not in the manner of this vault. */
async function nameOf(vault: OpenVault, wire: string): Promise<string> {
  if (vault.sealed) return openName(vault.keys, "collection", wire);
  try {
    return plainName(wire, "collection");
  } catch (error) {
    throw error instanceof Refusal ? new Tampered() : error;
  }
}

/** Refuse a list without a collection in which this device has seen a document that is still there. */
async function checkMissing(core: Core, vault: OpenVault, wires: Set<string>): Promise<void> {
  const seen = new Map<string, string>();
  for (const [uid, known] of core.device.rows(vault.uid)) if (!known.deleted) seen.set(known.collection, uid);
  const scope = new Scope(vault.keys);
  for (const [wire, uid] of seen) {
    if (wires.has(wire)) continue;
    const known = core.device.known(vault.uid, uid);
    const document = await get(core, scope, uid, true);
    if (!document.deleted && document.version === known?.version) throw new RolledBack(WITHHELD);
  }
}
