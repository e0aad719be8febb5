// The export of a replica: what it holds, as the file of an account that `importAccount` takes (docs/export.md).
import { Locked } from "../errors.js";
import { spellDescriptor } from "../format/descriptor.js";
import { type Bytes, text, toBase64 } from "../format/encoding.js";
import { freeName } from "../format/freeName.js";
import { byUid, type Keyring } from "../format/keyring.js";
import { isSame, type Vault } from "../format/keyringBody.js";
import type { Row } from "../net/decoders.js";
import { AccountFile } from "../operations/accountFile.js";
import {
  type DocumentLine,
  FORMAT,
  FORMAT_VERSION,
  type Line,
  MEDIA_TYPE,
  type VaultLine,
} from "../operations/accountLines.js";
import { newUid } from "../operations/core.js";
import { Scope } from "../operations/documents.js";
import { unlocked } from "../operations/keyrings.js";
import { openVaultWith } from "../operations/vaults.js";
import { blobAbove, entryAbove, rowAbove } from "./aboveFloor.js";
import type { Local } from "./local.js";
import type { Entry } from "./records.js";
import type { Tables } from "./tables.js";
import { keptVaults } from "./vaultKeys.js";

const NO_TOKEN = "A token opens what it was made for; log in to export the replica of the account.";
const PIECE = 1 << 20; // bytes that are handed to the browser at a time

/** What a replica holds, queued changes included; each line is verified with the account's keys. */
export async function exportReplica(local: Local): Promise<Blob> {
  if (local.core.token) throw new Locked(NO_TOKEN);
  await local.followKeys(local.store);
  return local.store.transaction((tables) => new Export(local, tables).run());
}

class Export {
  readonly #local: Local;
  readonly #tables: Tables;
  readonly #file = new AccountFile();
  readonly #now = Date.now();
  readonly #whole: Blob[] = [];
  readonly #pieces: Bytes[] = [];
  readonly #counts = new Map(
    ["keyrings", "keyringVersions", "vaults", "documents", "versions", "blobVersions"].map((kind) => [kind, 0]),
  );
  #length = 0;

  constructor(local: Local, tables: Tables) {
    this.#local = local;
    this.#tables = tables;
  }

  /** Write all lines. */
  async run(): Promise<Blob> {
    const { descriptor } = unlocked(this.#local.core);
    const records = await this.#tables.vaults();
    const [ring, sealed] = await this.#keyring(new Set(records.map(({ uid }) => uid)));
    const vaults: VaultLine[] = [];
    for (const { uid, made } of ring.vaults) if (made) vaults.push(await this.#vault(ring, uid));
    await this.#line({
      kind: "header",
      format: FORMAT,
      version: FORMAT_VERSION,
      id: newUid(),
      epoch: records[0]?.epoch ?? "",
      exportedAt: this.#now,
      clock: Math.max(0, ...vaults.map(({ updatedAt }) => updatedAt)),
      kdf: { ...spellDescriptor(descriptor) },
    });
    const line = { kind: "keyring", keyring: sealed, version: ring.version, updatedAt: this.#now } as const;
    await this.#line(line);
    this.#file.useKeyring(line, ring);
    for (const vault of vaults) {
      await this.#line(vault);
      const scope = new Scope(await ring.vaultKeys(vault.uid));
      for await (const document of this.#documents(scope)) await this.#line(document);
    }
    await this.#line({ kind: "trailer", counts: Object.fromEntries(this.#counts), sha256: this.#file.lines.digest });
    return new Blob([...this.#whole, ...this.#pieces], { type: MEDIA_TYPE });
  }

  async #line(line: Line): Promise<void> {
    const raw = text(`${JSON.stringify(line, (_, value: unknown) => value ?? undefined)}\n`);
    await this.#file.read(raw);
    const count = this.#counts.get(`${line.kind}s`);
    if (count !== undefined) this.#counts.set(`${line.kind}s`, count + 1);
    this.#pieces.push(raw);
    this.#length += raw.length;
    if (this.#length <= PIECE) return;
    this.#whole.push(new Blob(this.#pieces.splice(0))); // the browser keeps it where there is room
    this.#length = 0;
  }

  /**
   * The keyring; where vaults wait here that the server does not have, or not any more, the next one with them.
   *
   * A vault that this replica has never fetched is not in the file, so the file calls it one that was not made.
   */
  async #keyring(here: ReadonlySet<string>): Promise<[ring: Keyring, sealed: string]> {
    const { ring, sealed } = unlocked(this.#local.core);
    const { vaults, gone } = ring.reveal().body;
    const entries: Vault[] = vaults.map((vault) => (here.has(vault.uid) ? vault : { ...vault, made: false }));
    const taken = new Map(entries.map((vault) => [vault.name, vault]));
    const created = new Set((await this.#tables.keptKeys()).filter(({ isNew }) => isNew).map(({ vault }) => vault));
    for (const { uid, name, sealed: isSealed, floor, secrets } of [
      ...(await keptVaults(this.#tables, ring)).values(),
    ].sort(byUid)) {
      if (ring.entry(uid) || !(created.has(uid) || (await this.#tables.entries(uid)).length)) continue;
      const keys = secrets.map(([generation, secret]) => ({ generation, key: toBase64(secret.reveal()) }));
      const free = freeName(name, (one) => taken.get(one));
      const own: Vault = { uid, name: free, sealed: isSealed, made: true, floor, keys };
      taken.set(own.name, own);
      entries.push(own);
    }
    entries.sort(byUid);
    if (isSame(entries, vaults)) return [ring, sealed];
    const uids = new Set(entries.map(({ uid }) => uid));
    const made = await ring.next({ vaults: entries, gone: gone.filter(({ uid }) => !uids.has(uid)) }).seal();
    return [made.ring, made.sealed];
  }

  async #vault(ring: Keyring, uid: string): Promise<VaultLine> {
    const keys = await ring.vaultKeys(uid);
    const held = (await this.#tables.blobAside(uid)) ?? (await this.#tables.vault(uid));
    const record = held && (await blobAbove(keys, held));
    let updatedAt = record?.clock ?? this.#now;
    let createdAt = updatedAt;
    for await (const row of this.#documents(new Scope(keys))) {
      createdAt = Math.min(createdAt, row.createdAt);
      updatedAt = Math.max(updatedAt, row.updatedAt);
    }
    const entry = ring.entry(uid);
    const name = record?.wire ?? (entry ? (await openVaultWith(keys, entry)).wire : "");
    const [version, data, salt] = [record?.version ?? 1, record?.data ?? null, record?.salt ?? null];
    return { kind: "vault", uid, name, version, createdAt, updatedAt, data, salt };
  }

  /** The rows as the server has them; then the queued changes, as they would be stored; none below the floor. */
  async *#documents(scope: Scope): AsyncGenerator<DocumentLine, void, undefined> {
    const { vault } = scope;
    const queued = await this.#tables.entries(vault);
    const changed = new Set(queued.map(({ uid }) => uid));
    const heads = (await this.#tables.heads(vault)).filter(({ uid }) => !changed.has(uid));
    heads.sort((one, other) => one.updatedAt - other.updatedAt || byUid(one, other));
    let last = 0;
    for await (const rows of this.#tables.live(vault, undefined, heads)) {
      for (const row of rows) {
        last = Math.max(row.updatedAt, last + 1);
        yield stored(await rowAbove(scope, row), last);
      }
    }
    last = Math.max(last, (await this.#tables.vault(vault))?.clock ?? 0);
    for (const entry of queued) {
      last = Math.max(entry.madeAt, last + 1);
      yield waiting(await entryAbove(scope, entry), last);
    }
  }
}

/** A row as the server has it. Where a restored server lost it, its times mean nothing. */
function stored({ uid, vaultUid, collection, version, createdAt, data, hmac, ...row }: Row, at: number): DocumentLine {
  const deletedAt = row.deletedAt === null ? null : Math.min(row.deletedAt, at);
  return {
    kind: "document",
    uid,
    vaultUid,
    collection,
    version,
    createdAt: Math.min(createdAt, deletedAt ?? at),
    updatedAt: at,
    data: data || null,
    hmac,
    deletedAt,
    purgedAt: data ? null : deletedAt,
  };
}

/** A queued change as it would be stored: of a deletion, the tombstone that follows on its notice. */
function waiting(entry: Entry, at: number): DocumentLine {
  const { uid, vault, collection, version, data, hmac } = entry;
  const isDeletion = entry.kind !== "put";
  return {
    kind: "document",
    uid,
    vaultUid: vault,
    collection,
    version: version + (isDeletion ? 1 : 0),
    createdAt: Math.min(entry.before?.createdAt ?? entry.madeAt, at),
    updatedAt: at,
    data,
    hmac,
    deletedAt: isDeletion ? at : null,
    purgedAt: null,
  };
}
