// What the tables of a replica hold.
import type { Bytes } from "../format/encoding.js";
import type { Row } from "../net/decoders.js";

/** The base of a change that follows on nothing that the server has. */
export const DIVERGED = -1;

/** What a queued change does. `bury`: the notice of a deletion is stored, the server's own deletion is not. */
export type Kind = "put" | "delete" | "bury";

/** A vault as last pulled. Everything up to `cursor` was received. */
export interface VaultRecord {
  readonly uid: string;
  readonly wire: string;
  readonly version: number;
  readonly clock: number;
  readonly epoch: string;
  readonly cursor: number;
  /** The vault's clock when a first download began that has not ended yet. */
  readonly start: number | null;
  readonly data: string | null;
  readonly salt: string | null;
}

/** A document as the server has it, without its content. */
export interface Head extends Omit<Row, "data" | "vaultUid"> {
  readonly vault: string;
  /** Whether a key holder deleted it. */
  readonly deleted: boolean;
  /** Whether this device wrote the newest version. */
  readonly mine: boolean;
}

/** The newest row of a document that was seen: no restore lowers it, only a person's decision. */
export interface Mark extends Pick<Head, "vault" | "uid" | "version" | "hmac" | "collection" | "deleted"> {}

/** Whether a row is older than a mark, or another one of the same version. */
export const isBelow = (row: Row, mark: Mark | undefined): boolean =>
  mark !== undefined && (row.version < mark.version || (row.version === mark.version && row.hmac !== mark.hmac));

/** A queued change, sealed as `version`, and the version of the server's row that it is based on. */
export interface Entry {
  readonly vault: string;
  readonly uid: string;
  readonly collection: string;
  readonly kind: Kind;
  readonly data: string;
  readonly hmac: string;
  readonly version: number;
  readonly base: number;
  /** What is sent gets a version above it. */
  readonly floor: number;
  /** The row that the change was made from. */
  readonly before: Row | null;
  readonly madeAt: number;
  /** Its place in the order of changes. */
  readonly seq: number;
}

/** A change that is not queued yet. */
export const newEntry = (
  entry: Pick<Entry, "vault" | "uid" | "collection" | "kind" | "data" | "hmac" | "version" | "base"> & Partial<Entry>,
): Entry => ({ floor: 0, before: null, madeAt: 0, seq: 0, ...entry });

/** An entry as a row that nobody has stored yet. */
export const entryRow = ({ uid, vault, collection, data, hmac, version, before, madeAt }: Entry): Row => ({
  uid,
  vaultUid: vault,
  collection,
  data,
  hmac,
  version,
  createdAt: before?.createdAt ?? madeAt,
  updatedAt: madeAt,
  deletedAt: null,
});

/** Whether two entries of one document are the same. */
export const isSameEntry = (one: Entry | undefined, other: Entry | undefined): boolean => spell(one) === spell(other);
const spell = (entry: Entry | undefined): string =>
  JSON.stringify(
    entry && [
      entry.kind,
      entry.hmac,
      entry.data,
      entry.version,
      entry.base,
      entry.floor,
      entry.madeAt,
      entry.seq,
      entry.before?.hmac,
    ],
  );

/** Whether two rows of one document are the same. */
export const isSameRow = (one: Row | undefined, other: Row | undefined): boolean =>
  one?.version === other?.version &&
  one?.hmac === other?.hmac &&
  one?.data === other?.data &&
  one?.updatedAt === other?.updatedAt;

/** Why the server refused the queued change of a document. Sizes are those of a request. */
export interface RefusalRecord {
  readonly vault: string;
  readonly uid: string;
  readonly kind: string;
  readonly maxBytes?: number | undefined;
  readonly size?: number | undefined;
  /** Whether the next push sends it again. */
  readonly again?: boolean;
}

/** The property of a replica with the vaults that have got another name than was wanted, sealed, until that is told. */
export const RENAMED = "renamed";

/** A vault that was made on this device under a name that another device has taken meanwhile, and its new name. */
export interface RenamedVault {
  readonly uid: string;
  readonly wanted: string;
  readonly name: string;
}

/** The sealed keys of a vault. `isNew`: it was made here, and the server does not have it yet. */
export interface KeptKeys {
  readonly vault: string;
  readonly sealed: string;
  readonly isNew: boolean;
}

/** A box with contents of documents that were opened before. Its key is `vault` and `uid`. */
export interface ContentsRecord {
  readonly vault: string;
  readonly uid: string;
  /** What tells which contents are in it. */
  readonly proofs: string;
  readonly box: Bytes;
}
