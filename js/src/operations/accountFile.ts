// The file of an account, verified with the account's keys.
//
// Nothing of a file is believed that the keys do not prove: each document, deletion, version and blob has its proof, each
// vault of the directory is there, and each keyring belongs to the account. Vaults that the directory does not have, such
// as one whose deletion was interrupted, are carried unread.
import { Invalid, Locked, RolledBack, Tampered } from "../errors.js";
import { type Bytes, equal, isObject, must, short, toUrl } from "../format/encoding.js";
import { digestOf, type Keyring, readHead } from "../format/keyring.js";
import { sealName } from "../format/names.js";
import { verifyPastDocument } from "../format/past.js";
import { blobLineage, openBlob, openPastBlob, type Row, verifyDocument } from "../format/seal.js";
import {
  AccountLines,
  type BlobLine,
  type DocumentLine,
  FORMAT,
  type HeaderLine,
  type KeyringLine,
  type KeyringVersionLine,
  type Line,
  parsed,
  type VaultLine,
  type VersionLine,
} from "./accountLines.js";
import { Scope } from "./documents.js";

const NO_KEYRING = "The file has no keyring: it is not of an account of this client.";
const CUT_OFF = "The file ends before its last line: it was cut off. Export the account again.";
const DAMAGED = "The file is incomplete or damaged; export the account again.";
const NO_EXPORT = "This is no file of exportAccount, or its beginning is damaged.";
const PLAINTEXT =
  "This is a file of a plaintext export, which cannot be imported; to move an account, use a file of exportAccount.";
const MISSING_VAULT = "The file lacks a vault that the account's directory has, and that nobody deleted.";
const END = 10;

/** A refusal of the file as a whole. */
const refused = (said: string): Invalid => new Invalid({ file: said }, said);

/** Reads the lines of a file and verifies each. `useKeyring` follows on the line of the keyring. */
export class AccountFile {
  readonly lines = new AccountLines();
  /** The keyrings that were replaced. */
  readonly replaced: KeyringVersionLine[] = [];
  #ring: Keyring | undefined;
  #vault: VaultRows | undefined;
  readonly #vaults = new Set<string>();
  readonly #uids = new Set<string>();

  /** The first line, once it was read. */
  get header(): HeaderLine {
    if (!this.lines.header) throw refused(CUT_OFF);
    return this.lines.header;
  }

  /** The keyring of the file, opened. */
  get ring(): Keyring {
    if (!this.#ring) throw refused(NO_KEYRING);
    return this.#ring;
  }

  /** Verify everything that comes with this keyring; refused where the line names another version than it does. */
  useKeyring(line: KeyringLine, ring: Keyring): void {
    if (ring.version !== line.version) throw this.#altered();
    this.#ring = ring;
  }

  /** Read the header and the keyring. */
  async readHead(source: AsyncIterator<Bytes, void>): Promise<KeyringLine> {
    const next = async (): Promise<Line> => this.read((await source.next()).value ?? new Uint8Array());
    await next();
    const line = await next();
    if (line.kind !== "keyring") throw refused(NO_KEYRING);
    return line;
  }

  /** Read and verify the next line. */
  async read(raw: Bytes): Promise<Line> {
    if (!raw.length) throw refused(CUT_OFF);
    let line: Line;
    try {
      line = this.lines.read(raw);
    } catch (fault) {
      throw fault instanceof Invalid ? this.#unreadable(raw, fault) : fault;
    }
    try {
      await this.#verify(line);
    } catch (fault) {
      throw fault instanceof Tampered || fault instanceof Locked ? this.#altered() : fault;
    }
    return line;
  }

  /** Refuse a file that was cut off. */
  requireWhole(): void {
    if (!this.lines.isWhole) throw refused(CUT_OFF);
  }

  /** The keys of the vault that is being read; undefined if the directory has no such vault. */
  scope(vaultUid: string): Scope | undefined {
    return this.#vault?.uid === vaultUid ? this.#vault.scope : undefined;
  }

  /** What is wrong with a file that has a line which is not valid. */
  #unreadable(raw: Bytes, fault: Invalid): Invalid {
    const first = this.lines.header ? undefined : parsed(raw);
    const fields = isObject(first) ? first : {};
    let said: string;
    if (this.lines.header) said = raw.at(-1) === END ? `${fault.message} ${DAMAGED}` : CUT_OFF;
    else if (fields.format === FORMAT) return fault;
    else said = fields.kind === undefined && typeof fields.vault === "string" ? PLAINTEXT : NO_EXPORT;
    const made = refused(said);
    made.details = fault.details;
    return made;
  }

  #altered(): Tampered {
    return new Tampered(
      `Line ${this.lines.number} of the file was not made with the keys of this account for its place: the file was ` +
        "altered, or put together from several.",
    );
  }

  async #verify(line: Line): Promise<void> {
    if (line.kind === "header" || line.kind === "keyring") return;
    if (line.kind === "keyringVersion") return this.#verifyKeyring(line);
    if (line.kind === "trailer") {
      await this.#endVault();
      if (this.ring.vaults.some(({ made, uid }) => made && !this.#vaults.has(uid))) throw new RolledBack(MISSING_VAULT);
    } else if (line.kind === "vault") {
      await this.#endVault();
      this.#vault = await VaultRows.of(this.ring, line);
      this.#vaults.add(line.uid);
    } else if (this.#vault) {
      if (line.kind === "document") {
        must(!this.#uids.has(line.uid));
        this.#uids.add(line.uid);
      }
      await this.#vault.add(line);
    }
  }

  async #endVault(): Promise<void> {
    await this.#vault?.check();
    this.#vault = undefined;
  }

  /** Refuse a keyring of another account, of another version, or that the next one does not follow on. */
  async #verifyKeyring(line: KeyringVersionLine): Promise<void> {
    const { account, version, previous } = readHead(line.keyring);
    must(equal(account, this.ring.account) && version === line.version);
    const before = this.replaced.at(-1);
    if (before?.version === version - 1) must(equal(await digestOf(before.keyring), previous));
    if (version === this.ring.version - 1) must(equal(await digestOf(line.keyring), this.ring.previous));
    this.replaced.push(line);
  }
}

/** The rows of one vault: each is proven by itself, and none follows on a row under a newer key. */
class VaultRows {
  readonly uid: string;
  readonly scope: Scope | undefined;
  readonly #line: VaultLine;
  readonly #names: readonly string[]; // that a replaced blob may be bound to
  readonly #versions = new Map<string, number>();
  readonly #history = new Set<string>();
  readonly #generations = new Map<string, number>(); // of each row, by what a row that follows on it calls it
  readonly #parents: (readonly [generation: number, parent: string])[] = [];
  readonly #blobs: BlobLine[] = [];

  private constructor(line: VaultLine, scope: Scope | undefined, names: readonly string[]) {
    this.uid = line.uid;
    this.scope = scope;
    this.#line = line;
    this.#names = [line.name, ...names];
  }

  static async of(ring: Keyring, line: VaultLine): Promise<VaultRows> {
    const entry = ring.entry(line.uid);
    if (!entry) return new VaultRows(line, undefined, []);
    const keys = await ring.vaultKeys(line.uid);
    const names = entry.sealed
      ? await Promise.all(keys.keys.map((key) => sealName(keys, key, "vault", entry.name)))
      : [];
    const made = new VaultRows(line, new Scope(keys), names);
    if (line.data !== null) await openBlob(keys, line.name, line);
    return made;
  }

  /** Verify a row. */
  async add(line: DocumentLine | VersionLine | BlobLine): Promise<void> {
    if (!this.scope) return;
    if (line.kind === "blobVersion") {
      this.#blobs.push(line);
      return;
    }
    const verify = line.kind === "document" ? verifyDocument : verifyPastDocument;
    const { generation, parent } = await verify(await this.scope.key(line.collection), rowOf(line));
    this.#parents.push([generation, toUrl(parent)]);
    if (line.kind === "document") {
      this.#versions.set(line.uid, line.version);
      return;
    }
    const one = `${line.uid} ${line.version}`;
    must(line.version < (this.#versions.get(line.uid) ?? 0) && !this.#history.has(one));
    this.#history.add(one);
    this.#generations.set(toUrl(await short(line.hmac ?? "")), generation);
  }

  /** Check what takes all rows of the vault. */
  async check(): Promise<void> {
    must(this.#parents.every(([generation, parent]) => generation >= (this.#generations.get(parent) ?? 0)));
    // Each replaced blob is named by the one after it, or opens: a blob is bound to the name of its time.
    const { data } = this.#line;
    let wanted = data === null || !this.#blobs.length ? undefined : blobLineage(data).parent;
    for (const blob of this.#blobs.reverse()) {
      if (!wanted || !equal(await short(blob.data), wanted))
        await this.#openBlob([...this.#names, blob.name ?? ""], blob);
      wanted = blobLineage(blob.data).parent;
    }
  }

  async #openBlob(
    names: readonly string[],
    { version, data, salt }: { version: number; data: string; salt: string | null },
  ): Promise<void> {
    if (this.scope?.vaultKeys) await openPastBlob(this.scope.vaultKeys, names, { uid: this.uid, version, data, salt });
  }
}

/** A line as the row of a document. */
export const rowOf = ({
  uid,
  vaultUid,
  collection,
  version,
  data,
  hmac,
  createdAt,
  updatedAt,
  deletedAt,
}: DocumentLine | VersionLine): Row => ({
  uid,
  vaultUid,
  collection,
  version,
  data: data ?? "",
  hmac,
  createdAt,
  updatedAt,
  deletedAt,
});
