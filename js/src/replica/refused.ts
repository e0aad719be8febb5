// Refused changes: queued changes that the server does not accept. Each stays until it is sent, moved or discarded.
import { DocumentConflict, Invalid, Locked } from "../errors.js";
import { toContent } from "../format/content.js";
import { type Document, Scope } from "../operations/documents.js";
import type { Local } from "./local.js";
import { type Entry, entryRow, isSameEntry, type RefusalRecord } from "./records.js";
import { tooLarge } from "./sizes.js";
import type { Tables } from "./tables.js";
import { openVaults, scopesOf } from "./unlock.js";
import { keptVaults, keysOf, type Place } from "./vaultKeys.js";

const SENTENCES = {
  payload_too_large:
    "This change is too large for the server, or for a proxy before it. Make the document smaller, or discard the change.",
  insufficient_scope:
    "This token does not allow this change. Open the replica with a token that does, or discard the change.",
  quota_exceeded:
    "The account's quota is used up. Delete something, or ask the operator of the server for more; the next sync tries again.",
  storage_full: "The server's disk is full. The next sync tries again.",
  import_unfinished:
    "An import into this account is unfinished, and the server accepts nothing else meanwhile. The next sync tries again.",
  validation_error:
    "The server does not accept the form of this change. Update the client or the server, and retry; or discard the change.",
  uid_taken:
    "Another document of the account has this uid already, where this vault or token does not reach. Move this document to a collection, where it gets a new uid, or discard it.",
  vault_deleted:
    "The vault was deleted on another device. Move this document to a collection of another vault, or discard it.",
} as const;

/** Why a change is refused, for programs. */
export type RefusalKind = keyof typeof SENTENCES;
/** Those that every sync tries again. */
export const TEMPORARY: readonly RefusalKind[] = ["quota_exceeded", "storage_full", "import_unfinished"];

/** Why the server refused a change. `kind` is for programs, `sentence` for people. */
export interface Reason {
  readonly kind: RefusalKind;
  readonly sentence: string;
  /** Of a change that is too large: the bytes of its request, encrypted and padded. */
  readonly size: number | undefined;
  /** What the server accepts, if it says so. */
  readonly limit: number | undefined;
}

/** A change on this device that the server refused. Choose `discard`, `retry` or `moveTo`. */
export class RefusedChange {
  /** The document's uid. */
  readonly uid: string;
  /** The uid of the document's vault. */
  readonly vault: string;
  /** The plaintext name of the document's vault. */
  readonly vaultName: string;
  readonly reason: Reason;
  /** The document as it is on this device; undefined where the keys of its vault are gone. A deletion is `deleted`. */
  readonly document: Document | undefined;
  readonly #local: Local;
  readonly #entry: Entry | undefined;

  /** Made by a replica. */
  constructor(
    local: Local,
    vaultName: string,
    record: RefusalRecord,
    entry: Entry | undefined,
    document: Document | undefined,
  ) {
    this.#local = local;
    this.#entry = entry;
    this.uid = record.uid;
    this.vault = record.vault;
    this.vaultName = vaultName;
    this.reason = reasonOf(record);
    this.document = document;
  }

  /** The plaintext name of the document's collection; empty where the keys of the vault are gone. */
  get collection(): string {
    return this.document?.collection ?? "";
  }

  /** Whether every sync tries again by itself. */
  get isTemporary(): boolean {
    return TEMPORARY.includes(this.reason.kind);
  }

  /** Drop the change. The document is then as the server has it. */
  async discard(): Promise<void> {
    await this.#change((tables) => this.#drop(tables));
  }

  /** Send the change again with the next sync. */
  async retry(): Promise<void> {
    await this.#change(async (tables) => tables.dropRefusal(this.vault, this.uid));
  }

  /** Make a new document with this value in another collection of the replica, and drop the change. */
  async moveTo<T>(collection: Target<T>): Promise<Document<T>> {
    const { local, scope } = collection.inside?.() ?? {};
    if (local !== this.#local || !scope) throw new Invalid({ collection: "must be a collection of the same replica" });
    const { document } = this;
    if (!document) {
      throw new Locked(
        "The keys of the deleted vault are not on this device any more; this change can only be discarded.",
      );
    }
    if (document.deleted)
      throw new Invalid({ collection: "is not for a deletion, which has nothing to move; discard it" });
    const uid = await this.#change(async (tables) => {
      const [moved] = await local.createIn(tables, scope, [toContent(document.raw)]);
      await this.#drop(tables);
      return moved?.uid ?? "";
    });
    return local.get(scope, uid, false);
  }

  #change<R>(task: (tables: Tables) => Promise<R>): Promise<R> {
    return this.#local.store.transaction(async (tables) => {
      const now = await tables.entry(this.vault, this.uid);
      const isThere = this.#entry
        ? isSameEntry(now, this.#entry)
        : !now && (await tables.repeats(this.vault)).has(this.uid);
      if (!isThere) throw new DocumentConflict(this.document?.version ?? 0, this.document?.updatedAt ?? 0);
      return task(tables);
    });
  }

  async #drop(tables: Tables): Promise<void> {
    const { vault, uid } = this;
    if (this.#entry) {
      tables.dropEntry(vault, uid);
      if (this.reason.kind === "vault_deleted" && !(await tables.entries(vault)).length) tables.dropKeys(vault);
      return;
    }
    // A document that a restored server has lost: what the server has instead is read anew.
    tables.dropRepeat(vault, uid);
    tables.dropRow(vault, uid);
    const record = await tables.vault(vault);
    if (record) await tables.putVault({ ...record, cursor: 0 });
  }
}

/** A collection of a replica. */
export interface Target<T> {
  /** @internal */
  inside(): { readonly local: Local; readonly scope: Scope<T> };
}

/** The vaults of a replica by uid, with those that were deleted and in which changes wait. */
async function placesOf(local: Local): Promise<Map<string, Place>> {
  const opened = await openVaults(local);
  const called = new Map(opened.map(({ uid, name }) => [uid, name]));
  const found = new Map<string, Place>();
  for (const [uid, scope] of await scopesOf(local, opened)) found.set(uid, { scope, name: called.get(uid) ?? "" });
  const { ring } = local.core;
  for (const [uid, vault] of ring ? await keptVaults(local.store, ring) : []) {
    if (ring && !found.has(uid)) found.set(uid, { scope: new Scope(await keysOf(ring, vault)), name: vault.name });
  }
  return found;
}

/** All refused changes, those of deleted vaults included; a change that is also a conflict is one of those only. */
export async function refusedChanges(local: Local): Promise<RefusedChange[]> {
  const { store } = local;
  const places = await placesOf(local);
  const spell = ({ vault, uid }: { vault: string; uid: string }): string => `${vault}\n${uid}`;
  const conflicts = new Set((await store.conflicting()).map(spell));
  const found: RefusedChange[] = [];
  for (const record of await store.refusals()) {
    const entry = await store.entry(record.vault, record.uid);
    const row = entry ? entryRow(entry) : await store.row(record.vault, record.uid);
    if (!row || conflicts.has(spell(record))) continue;
    const { scope, name } = places.get(record.vault) ?? { scope: undefined, name: "" };
    found.push(new RefusedChange(local, name, record, entry, scope && (await local.openRow(scope, row))));
  }
  return found;
}

/** Record that the changes in a vault cannot be sent: it was deleted. Deletions are done with it. */
export async function refuseDeletedVault(local: Local, vault: string): Promise<void> {
  await local.store.transaction(async (tables) => {
    for (const { kind, uid } of await tables.entries(vault)) {
      if (kind === "put") tables.putRefusal({ vault, uid, kind: "vault_deleted" });
      else tables.dropEntry(vault, uid);
    }
    await tables.dropVault(vault);
    await tables.forgetNew(vault);
    if (!(await tables.entries(vault)).length) tables.dropKeys(vault);
  });
}

function reasonOf({ kind: given, size, maxBytes: limit }: RefusalRecord): Reason {
  const kind = (given in SENTENCES ? given : "validation_error") as RefusalKind;
  const isMeasured = kind === "payload_too_large" && size !== undefined && limit !== undefined;
  return { kind, sentence: isMeasured ? tooLarge(size, limit) : SENTENCES[kind], size, limit };
}
