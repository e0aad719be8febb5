// Rotation: new keys for the account or a vault, and everything encrypted again under them.
//
// What is still to do follows from the generations on the wire: an interrupted rotation continues where it was. Only what
// this device has read before the keys changed is encrypted again, or what its caller accepts: whoever has had the keys
// of before, and works with the server, can show more under them. When nothing is left, the floor of the vault rises,
// and nothing under the keys of before is believed as current any more.
import { DocumentConflict, DocumentNotFound, Invalid, VaultNotFound } from "../errors.js";
import { newPassword } from "../format/derive.js";
import { newest } from "../format/keys.js";
import { primitives } from "../format/primitives.js";
import { blobLineage, readProof } from "../format/seal.js";
import { passkeysOf, withFloors, withRotatedVault } from "../format/keyringSlots.js";
import { setRecovery } from "./accounts.js";
import { BatchWrites, deletions, type Item, replacements } from "./batches.js";
import { Blob, toBlob } from "./blobs.js";
import type { Core } from "./core.js";
import { checkedPassword, rotate } from "./credentials.js";
import { Document, Scope } from "./documents.js";
import type { FactorSource } from "./factors.js";
import { update } from "./keyrings.js";
import { Listing } from "./listing.js";
import type { ListedSession } from "../net/decoders.js";
import { type ListedPasskey, listPasskeys } from "./passkeys.js";
import { apiKeys, revokeKey, sessions } from "./sessionsAndKeys.js";
import { listVaults, updateWire } from "./vaultChanges.js";
import { currentRow, openEntry, type OpenVault, renewed } from "./vaults.js";

const PASSES = 10; // over a vault in which others write meanwhile

/** Is told how many documents are done, and how many there are. */
export type Progress = (done: number, total: number) => void;

/** A document or a blob. */
export type Unseen = Document | Blob;

/** What a rotation has done. */
export interface Rotation {
  /** The new recovery key, if there was one before. */
  readonly recoveryKey: string | undefined;
  /**
   * Documents and blobs under old keys that this device had not read when the keys changed: they are as they were.
   *
   * Whoever has had those keys, and works with the server, may have made them. `finishRotation({ accept })` encrypts
   * again what its caller accepts of them.
   */
  readonly unseen: readonly Unseen[];
  /**
   * Passkeys that opened the account before, and do not any more.
   *
   * `passkeys.enableUnlock` lets one again, which is touched for that.
   */
  readonly passkeys: readonly ListedPasskey[];
  /**
   * The other sessions that were open when the keys changed, as the server reports them.
   *
   * They are devices that have not seen the rotation.
   */
  readonly devices: readonly ListedSession[];
}

const NOTHING = { recoveryKey: undefined, passkeys: [], devices: [] };

/**
 * New keys for the account and every vault; then everything is encrypted again under them.
 *
 * A recovery key is replaced too, and the new one returned: who had the old keys knows its public keys. So
 * passkeys open the account no more, until each is touched again.
 */
export async function rotateKeys(
  core: Core,
  password: string,
  next: string | undefined,
  progress: Progress | undefined,
  source: FactorSource,
): Promise<Rotation> {
  if (next !== undefined) newPassword(next);
  const keys = await checkedPassword(core, password);
  const believed = await readAll(core, await listVaults(core));
  const opening = passkeysOf(core.keyring()).length ? await listPasskeys(core) : [];
  const devices = (await sessions(core)).filter(({ current }) => !current);
  await revoke(core); // first: an interrupted rotation leaves nothing to do that cannot be seen later
  await rotate(core, keys, next, source);
  const unseen = await new EncryptionAgain(core, believed, progress).run(await listVaults(core));
  // Last, so that it is returned as soon as it is stored: until then the one of before opens the account.
  const recoveryKey = core.keyring().reveal().body.recovery
    ? await setRecovery(core, next ?? password, source)
    : undefined;
  const passkeys = opening.filter(({ unlocks }) => unlocks).map((one) => ({ ...one, unlocks: false }));
  return { recoveryKey, unseen, passkeys, devices };
}

/** A new key for one vault; then everything in it is encrypted again under it. */
export async function rotateVault(
  core: Core,
  vault: OpenVault,
  progress?: Progress,
): Promise<[opened: OpenVault, rotation: Rotation]> {
  const { uid } = vault;
  const believed = await readAll(core, [await renewed(core, vault)]);
  await revoke(core, uid);
  await update(core, (ring) => withRotatedVault(ring, uid, primitives().random));
  const entry = core.keyring().entry(uid);
  if (!entry) throw new VaultNotFound();
  const opened = await openEntry(core, entry);
  const unseen = await new EncryptionAgain(core, believed, progress).run([opened]);
  return [await renewed(core, opened), { ...NOTHING, unseen }];
}

/** Encrypt again what is not of the newest generation, if this device has read it or its caller accepts it. */
export async function finish(core: Core, accept: Iterable<Unseen>, progress?: Progress): Promise<Rotation> {
  const believed = remembered(core);
  for (const one of accept) believed.add(accepted(core, one));
  const unseen = await new EncryptionAgain(core, believed, progress).run(await listVaults(core));
  return { ...NOTHING, unseen };
}

/** What identifies a document or a blob that the caller accepts: exactly what it was shown. */
function accepted(core: Core, one: unknown): string {
  if (one instanceof Document) return one.proof;
  if (!(one instanceof Blob))
    throw new Invalid({ accept: `must be what \`unseen\` holds, a Document or a Blob, not ${typeof one}` });
  const row = core.device.blob(one.vault);
  return row?.version === one.version ? (row.data ?? "") : "";
}

/** Revoke the API keys of every token, or of those for one vault. */
async function revoke(core: Core, vault?: string): Promise<void> {
  for (const { uid, vaultUids } of await apiKeys(core))
    if (vault === undefined || vaultUids?.includes(vault)) await revokeKey(core, uid);
}

/** What this device has read of documents and blobs, by what identifies them. */
function remembered(core: Core): Set<string> {
  const found = new Set<string>();
  for (const { uid } of core.keyring().vaults) {
    for (const { proof } of core.device.rows(uid).values()) found.add(proof);
    found.add(core.device.blob(uid)?.data ?? "");
  }
  for (const one of core.doubted) found.delete(one);
  return found;
}

/**
 * Read everything, before the keys change: what is under the newest of them was made by those who have them now.
 *
 * What is under older ones counts only if this device had read it before: an earlier rotation was interrupted.
 */
async function readAll(core: Core, opened: readonly OpenVault[]): Promise<Set<string>> {
  const believed = remembered(core);
  for (const vault of opened) {
    const { generation } = newest(vault.keys);
    const [, { data }] = await currentRow(core, vault);
    if (data !== null && blobLineage(data).generation === generation) believed.add(data);
    for (const trash of [false, true]) {
      for await (const page of survey(core, vault, trash))
        for (const one of page) if (generationOf(one) === generation) believed.add(one.proof);
    }
  }
  return believed;
}

/** Where the documents of a vault lie, those below its floor included: nothing of them is believed for that. */
const scopeOf = ({ keys }: OpenVault): Scope => new Scope({ ...keys, floor: 1 });
const generationOf = ({ proof }: Document): number => readProof(proof).generation;

async function* survey(core: Core, vault: OpenVault, trash: boolean): AsyncGenerator<Document[], void, undefined> {
  const listing = new Listing(core, scopeOf(vault), undefined, trash, true);
  while (listing.more) yield await listing.page();
}

/** One run over vaults, with what was done so far. `believed` identifies what may be encrypted again. */
class EncryptionAgain {
  readonly #core: Core;
  readonly #believed: ReadonlySet<string>;
  readonly #progress: Progress | undefined;
  readonly #unseen: Unseen[] = [];
  readonly #floors = new Map<string, number>();
  #done = 0;
  #total = 0;

  constructor(core: Core, believed: ReadonlySet<string>, progress: Progress | undefined) {
    this.#core = core;
    this.#believed = believed;
    this.#progress = progress;
  }

  /** The names and the blobs of the vaults; then their documents, vault by vault; then the floors. */
  async run(opened: readonly OpenVault[]): Promise<readonly Unseen[]> {
    for (const vault of opened) {
      const { generation } = newest(vault.keys);
      this.#floors.set(vault.uid, generation);
      const row = await updateWire(this.#core, vault, undefined, this.#believed);
      this.#total += row.documents ?? 0;
      const own = row.data === null ? generation : blobLineage(row.data).generation;
      const blob = own < generation ? await toBlob(vault, row, false) : undefined;
      if (!blob) continue;
      this.#core.device.recordBlob(row);
      this.#core.doubted.add(row.data ?? "");
      this.#leave(vault, blob, own);
    }
    for (const vault of opened) {
      await this.#documents(vault);
      await this.#trash(vault);
    }
    for (const one of this.#unseen) if (one instanceof Document) this.#core.doubted.add(one.proof);
    await update(this.#core, (ring) => {
      // A vault that was never made has no rows under any key.
      const unmade = ring.vaults.filter(({ made }) => !made).map(({ uid, generation }) => [uid, generation] as const);
      return withFloors(ring, new Map([...unmade, ...this.#floors]));
    });
    return this.#unseen;
  }

  /** Leave something as it is: what is below the floor already holds the floor back no more. */
  #leave(vault: OpenVault, one: Unseen, generation: number): void {
    this.#unseen.push(one);
    const floor = this.#floors.get(vault.uid) ?? 1;
    if (generation >= vault.keys.floor) this.#floors.set(vault.uid, Math.min(floor, generation));
  }

  /** The live documents, and notices that no DELETE has followed; again, where others have written meanwhile. */
  async #documents(vault: OpenVault): Promise<void> {
    const [left, floor, done] = [this.#unseen.length, this.#floors.get(vault.uid) ?? 1, this.#done];
    for (let pass = 0; pass < PASSES; pass += 1) {
      if (await this.#pass(vault)) return;
      this.#unseen.length = left;
      this.#floors.set(vault.uid, floor);
      this.#done = done;
    }
    this.#floors.set(vault.uid, vault.keys.floor); // the next run sees to it
  }

  async #pass(vault: OpenVault): Promise<boolean> {
    let isWhole = true;
    for await (const page of survey(this.#core, vault, false)) {
      const old = this.#old(vault, page);
      for (const one of old) if (!this.#believed.has(one.proof)) this.#leave(vault, one, generationOf(one));
      const believed = old.filter(({ proof }) => this.#believed.has(proof));
      this.#report(page.length - believed.length);
      isWhole = (await this.#write(vault, believed, (more) => this.#report(more))) && isWhole;
    }
    return isWhole;
  }

  /** The trash: a deletion under a key of before would not be believed by a device that has not seen it. */
  async #trash(vault: OpenVault): Promise<void> {
    for await (const page of survey(this.#core, vault, true)) {
      const old = this.#old(vault, page).filter(({ proof }) => this.#believed.has(proof));
      await this.#write(vault, old, () => undefined);
    }
  }

  #old({ keys }: OpenVault, page: readonly Document[]): Document[] {
    const { generation } = newest(keys);
    return page.filter((one) => generationOf(one) !== generation);
  }

  /** Replace documents by themselves, and deletions by themselves; whether nobody was quicker. */
  async #write(vault: OpenVault, old: readonly Document[], report: (more: number) => void): Promise<boolean> {
    async function* items(): AsyncGenerator<Item, void, undefined> {
      const alive = old.filter(({ deleted }) => !deleted).map((one) => [one, one.raw] as const);
      yield* replacements(alive, true);
      yield* deletions(old.filter(({ deleted }) => deleted));
    }
    const writes = new BatchWrites(this.#core, scopeOf(vault), items());
    let isWhole = true;
    while (writes.more) {
      const results = await writes.page();
      for (const { error } of results) {
        if (error && !(error instanceof DocumentConflict || error instanceof DocumentNotFound)) throw error;
        isWhole &&= !error;
      }
      report(results.length);
    }
    return isWhole;
  }

  #report(more: number): void {
    this.#done += more;
    this.#total = Math.max(this.#total, this.#done); // others may write meanwhile
    this.#progress?.(this.#done, this.#total);
  }
}
