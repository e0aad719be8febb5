// Conflicts: a document was changed on this device and on the server. Both changes are kept until one is resolved.
import { DocumentConflict, Invalid } from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import { openKnownBlob } from "../format/past.js";
import { DOCUMENT, parentAfter, sealContent } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import { newUid } from "../operations/core.js";
import type { Document, Scope } from "../operations/documents.js";
import { isPurged, type Local } from "./local.js";
import { checkedResolver, Resolution, type Resolver } from "./resolutions.js";
import { type Entry, entryRow, isSameEntry, isSameRow, newEntry, type VaultRecord } from "./records.js";
import type { Tables } from "./tables.js";

/** A document changed on this device and on the server. `base` is the common ancestor, if known. */
export class Conflict {
  /** The document's uid. */
  readonly uid: string;
  /** The uid of the document's vault. */
  readonly vault: string;
  /** The plaintext name of the document's collection. */
  readonly collection: string;
  /** The document that both changes were made from, if it is known. */
  readonly base: Document | undefined;
  /** The document as it is on this device. */
  readonly mine: Document;
  /** The document as the server has it. */
  readonly theirs: Document;
  /** Whether no resolver may decide it: the server's side is not of a higher version than this device has seen. */
  readonly needsManualResolution: boolean;
  readonly #inside: Inside;

  /** Made by a replica. */
  constructor(inside: Inside, base: Document | undefined, mine: Document, theirs: Document) {
    this.#inside = inside;
    const { entry, row } = inside;
    this.uid = entry.uid;
    this.vault = entry.vault;
    this.collection = theirs.collection;
    this.base = base;
    this.mine = mine;
    this.theirs = theirs;
    this.needsManualResolution = row.version <= entry.floor;
  }

  /** Resolve the conflict. What remains of `mine` is sent with the next sync. */
  async resolve(how: Resolver): Promise<void> {
    const resolution: unknown = await checkedResolver(how)(this);
    if (!(resolution instanceof Resolution)) {
      throw new Invalid({
        resolver: `must return what keepMine(conflict) returns, or merged(value), not ${typeof resolution}`,
      });
    }
    const { local, scope, entry, row } = this.#inside;
    await local.store.transaction(async (tables) => {
      const [now, there] = [await tables.entry(this.vault, this.uid), await tables.row(this.vault, this.uid)];
      if (!isSameEntry(now, entry) || !isSameRow(there, row)) {
        throw new DocumentConflict(this.theirs.version, this.theirs.updatedAt);
      }
      await apply(local, tables, scope, entry, row, resolution, this.mine);
    });
  }
}

/** What a conflict is of. */
interface Inside {
  readonly local: Local;
  readonly scope: Scope;
  readonly entry: Entry;
  readonly row: Row;
}

/**
 * After a restore the server has gone on with another blob than this device has. The replica shows `mine`.
 *
 * To keep `mine`, put it in the place of the server's: `blob.put(conflict.mine, { after: await blob.get() })`, where
 * `blob` is that of `client.vault(…)`. Then, or to do without it, `discard`.
 */
export class BlobConflict {
  /** The uid of the vault. */
  readonly vault: string;
  readonly #local: Local;
  readonly #mine: unknown;
  readonly #theirs: unknown;

  /** Made by a replica. */
  constructor(local: Local, vault: string, mine: unknown, theirs: unknown) {
    this.#local = local;
    this.vault = vault;
    this.#mine = mine;
    this.#theirs = theirs;
  }

  /** The blob of this device. */
  get mine(): unknown {
    return this.#mine;
  }

  /** The blob of the server; undefined where there is none. */
  get theirs(): unknown {
    return this.#theirs;
  }

  /** Forget this device's blob. */
  async discard(): Promise<void> {
    await this.#local.store.transaction((tables) => tables.dropBlobAside(this.vault));
  }
}

/** The blobs that were kept apart. */
export async function undecidedBlobs(local: Local, scopes: ReadonlyMap<string, Scope>): Promise<BlobConflict[]> {
  const found: BlobConflict[] = [];
  for (const [uid, { vaultKeys }] of scopes) {
    const aside = await local.store.blobAside(uid);
    if (!vaultKeys || !aside) continue;
    const open = async (record: VaultRecord | undefined): Promise<unknown> =>
      record?.data == null ? undefined : toValue(await openKnownBlob(vaultKeys, record.wire, record));
    found.push(new BlobConflict(local, uid, await open(aside), await open(await local.store.vault(uid))));
  }
  return found;
}

/** The unresolved conflicts. */
export async function undecidedConflicts(local: Local, scopes: ReadonlyMap<string, Scope>): Promise<Conflict[]> {
  const found: Conflict[] = [];
  for (const entry of await local.store.conflicting()) {
    const [scope, row] = [scopes.get(entry.vault), await local.store.row(entry.vault, entry.uid)];
    if (!scope || !row) continue;
    const base = entry.before ? await local.openRow(scope, entry.before) : undefined;
    const mine = await local.openRow(scope, entryRow(entry));
    found.push(new Conflict({ local, scope, entry, row }, base, mine, await local.openRow(scope, row)));
  }
  return found;
}

async function apply(
  local: Local,
  tables: Tables,
  scope: Scope,
  entry: Entry,
  row: Row,
  resolution: Resolution,
  mine: Document,
): Promise<void> {
  if (resolution.kind === "mine") return rebase(local, tables, scope, entry, row);
  if (resolution.kind === "merged") {
    const version = Math.max(row.version, entry.floor) + 1;
    const { uid, collection: wire } = entry;
    const place = { parent: await parentAfter(row), wire };
    const sealed = await sealContent(await scope.key(wire), DOCUMENT, uid, version, toContent(resolution.value), place);
    local.limit.require(uid, wire, sealed);
    return rebase(local, tables, scope, { ...entry, kind: "put", ...sealed, version }, row);
  }
  tables.dropEntry(entry.vault, entry.uid);
  tables.lowerMark(entry.vault, entry.uid);
  if (resolution.kind === "both" && !mine.deleted) await copy(tables, scope, mine);
}

/** Rebase a change on the server's row. If that was purged, the change becomes a new document. */
async function rebase(local: Local, tables: Tables, scope: Scope, entry: Entry, row: Row): Promise<void> {
  if (isPurged(row)) return recreateEntry(local, tables, scope, entry);
  await tables.putEntry({ ...entry, base: row.version, before: row });
}

/** Keep the value of a row as a new document. */
export const copyRow = async (local: Local, tables: Tables, scope: Scope, row: Row): Promise<void> =>
  copy(tables, scope, await local.openRow(scope, row));

async function copy(tables: Tables, scope: Scope, mine: Document): Promise<void> {
  const { vault } = mine;
  const keys = await scope.key(mine.wire);
  const madeAt = Date.now();
  const uid = newUid(madeAt);
  const [collection] = keys.wires;
  const sealed = await sealContent(keys, DOCUMENT, uid, 1, toContent(mine.raw));
  await tables.putEntry(newEntry({ vault, uid, collection, kind: "put", ...sealed, version: 1, base: 0, madeAt }));
}

/** Turn a change of a document that is deleted and purged into a new one; a deletion has nothing left to do. */
export async function recreateEntry(local: Local, tables: Tables, scope: Scope, entry: Entry): Promise<void> {
  const mine = await local.openRow(scope, entryRow(entry));
  tables.dropEntry(entry.vault, entry.uid);
  if (!mine.deleted) await copy(tables, scope, mine);
}
