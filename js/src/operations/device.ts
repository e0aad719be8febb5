// Rollback detection state of a device: what it has seen of accounts, vaults and documents.
//
// Requests overlap. A response must not be older than what was seen before its request was sent; what was seen after
// that may honestly be newer. So each request takes a mark before it is sent.
import { RolledBack, Tampered } from "../errors.js";
import type { Descriptor } from "../format/descriptor.js";
import { must, toUrl } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import type { Link } from "../format/parents.js";
import { link } from "../format/seal.js";
import type { Row, VaultRow } from "../net/decoders.js";
import { checkBlob, nextAccount, nextRow, type SeenAccount } from "./rollback.js";

/** A document as last seen. `order` is the logical time of that. */
export interface KnownDocument {
  readonly version: number;
  readonly proof: string;
  readonly link: Link;
  readonly collection: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deleted: boolean;
  readonly order: number;
}

/** A vault as last seen. */
export interface KnownVault {
  readonly version: number;
  readonly clock: number;
  /** Of its blob. */
  readonly data: string | null;
  /** That of the server; undefined where an earlier release has saved it. */
  readonly epoch?: string;
  readonly order: number;
}

/** What a device has seen of one account, to be saved. */
export interface Memory {
  readonly account: SeenAccount;
  readonly vaults: readonly (readonly [string, KnownVault])[];
  readonly rows: readonly (readonly [string, readonly (readonly [string, KnownDocument])[]])[];
}

/** What one device has seen, held in memory. It holds no secret. */
export class Device {
  readonly accounts = new Map<string, SeenAccount>();
  /** What deviceMemory.ts reads and changes too. */
  readonly vaults = new Map<string, KnownVault>();
  readonly allRows = new Map<string, Map<string, KnownDocument>>();
  order = 0;
  readonly #blobs = new Map<string, VaultRow>();

  /** The logical time now; taken before a request is sent. */
  mark(): number {
    return this.order;
  }

  /** What was last seen of an account. */
  account(email: string): SeenAccount | undefined {
    return this.accounts.get(email);
  }

  /**
   * Remember a keyring that was opened, or refuse it.
   *
   * A passkey leads to an account whose email is the server's word: by another one, what was seen would not count.
   */
  async recordAccount(email: string, keyring: Keyring, descriptor: Descriptor): Promise<void> {
    const own = toUrl(keyring.account);
    must(
      [...this.accounts].every(([known, seen]) => known === email || seen.account !== own),
      "The server names another email for an account than the one that this device knows it by.",
    );
    this.accounts.set(email, await nextAccount(this.accounts.get(email) ?? null, keyring, descriptor));
  }

  /** Forget an account that was deleted or is registered again. */
  forgetAccount(email: string): void {
    this.accounts.delete(email);
  }

  /** What was seen of a vault. */
  vault(uid: string): KnownVault | undefined {
    return this.vaults.get(uid);
  }

  /** Remember a vault, or refuse it: neither its version nor its clock runs backwards, and its blob stays. */
  recordVault(vault: VaultRow, mark: number): void {
    const known = this.vaults.get(vault.uid);
    if (known && (vault.version < known.version || vault.updatedAt < known.clock)) {
      if (known.order > mark) return;
      throw new RolledBack("The server shows a vault as it was before this device saw it last.");
    }
    if (known) checkBlob(known.version, known.data, vault.version, vault.data);
    const { version, updatedAt: clock, data, epoch } = vault;
    this.vaults.set(vault.uid, { version, clock, data, epoch, order: ++this.order });
  }

  /** Forget a vault that was deleted by this client. */
  forgetVault(uid: string): void {
    for (const seen of [this.vaults, this.allRows, this.#blobs]) seen.delete(uid);
  }

  /** The vault with the blob that the program was given last, or has written. */
  blob(uid: string): VaultRow | undefined {
    return this.#blobs.get(uid);
  }

  /** Remember the blob that the program is given, or has written: the next one may follow on it. */
  recordBlob(vault: VaultRow): void {
    this.#blobs.set(vault.uid, vault);
  }

  /** The documents of a vault that were seen. */
  rows(vault: string): ReadonlyMap<string, KnownDocument> {
    return this.allRows.get(vault) ?? new Map();
  }

  /** What was last seen of a document. */
  known(vault: string, uid: string): KnownDocument | undefined {
    return this.allRows.get(vault)?.get(uid);
  }

  /**
   * Remember a row that was opened, or refuse it. False: something newer was seen meanwhile; ask again.
   *
   * Without `keep` it is held against what was seen, and not remembered.
   */
  record(row: Row, mark: number, deleted: boolean, keep = true): boolean {
    const known = this.known(row.vaultUid, row.uid);
    const { version, collection, createdAt, updatedAt } = row;
    if (known) {
      if (version < known.version && known.order > mark) return false;
      nextRow([known.version, known.proof, known.collection], row);
      const same = version === known.version;
      // Without a time, a restored server did not have it; somebody has sent it again.
      const isLater = same ? updatedAt === known.updatedAt : updatedAt > known.updatedAt;
      if (known.updatedAt && (createdAt !== known.createdAt || !isLater)) {
        throw new Tampered("The server changed the time of something that it showed before.");
      }
    }
    if (!keep) return true;
    const rows = this.allRows.get(row.vaultUid) ?? new Map<string, KnownDocument>();
    this.allRows.set(row.vaultUid, rows);
    const [proof, order] = [row.hmac ?? "", ++this.order];
    rows.set(row.uid, { version, proof, link: link(row), collection, createdAt, updatedAt, deleted, order });
    return true;
  }
}
