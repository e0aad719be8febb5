// Sealed rows: a document, its deletion, a vault's blob. Each is bound to its place, its version and its parent.
//
// data = base64(format (1) ‖ kind (1) ‖ generation (4) ‖ box)
// hmac = "sr2." ‖ base64url(generation (4) ‖ parent (16) ‖ HMAC-SHA-256(proof key, row, kind, SHA-256 of data))
//
// A deletion is two writes: a notice, sealed like a document of the next version, and then the server's own DELETE,
// which keeps the notice under the tombstone. A tombstone without a notice is not believed.
import { Tampered } from "../errors.js";
import { openBox, sealBox } from "./box.js";
import { EMPTY, toContent } from "./content.js";
import {
  AGAIN,
  type Bytes,
  checkFormat,
  checkedName,
  checkedUid,
  checkedVersion,
  digest,
  equal,
  FORMAT,
  fromBase64,
  fromUrl,
  isVersion,
  items,
  join,
  KEY,
  list,
  must,
  NO_PARENT,
  NONE,
  number,
  PARENT,
  PREFIX,
  type Random,
  readGeneration,
  short,
  toBase64,
  toUrl,
  withoutPrefix,
} from "./encoding.js";
import { type CollectionKey, type CollectionKeys, keyOf, newest, type VaultKey, type VaultKeys } from "./keys.js";
import { type Content, NOTHING, pad, unpad } from "./padding.js";
import type { Lineage, Link } from "./parents.js";
import { primitives } from "./primitives.js";

export const DOCUMENT = 1;
export const DELETION = 2;
const BLOB = 3;
const HEAD = 6; // format, kind, generation
const STRANGE = "The server sent a row that is not in this format: another client made it, or it was changed.";
const UNPROVEN = "The server says that a document is deleted, and has no proof from a key holder.";
const OLD_KEY =
  "The server shows something that was made with keys from before a rotation. If it was restored from an older backup, " +
  "finish the rotation on a new device.";

/** A document as the server sends it. */
export interface Row {
  readonly uid: string;
  readonly vaultUid: string;
  readonly collection: string;
  readonly data: string;
  readonly hmac: string | null;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | null;
}

/** What is sent of a document: the two fields that the server keeps. */
export interface Sealed {
  readonly data: string;
  readonly hmac: string;
}

/** What is sent of a blob. */
export interface SealedBlob {
  readonly data: string;
  readonly salt: string;
}

/** What of a vault's row, or of a blob of its history, opens its blob. */
export interface BlobRow {
  readonly uid: string;
  readonly version: number;
  readonly data: string | null;
  readonly salt: string | null;
}

/** What an `hmac` says: the generation of the key, the parent, and the proof itself. */
export interface Proof extends Lineage {
  readonly mac: Bytes;
}

/** A row whose proof is right. `deleted` is a key holder's word; `purged`: the content is gone from the server. */
export interface Verified extends Lineage {
  readonly uid: string;
  readonly version: number;
  readonly deleted: boolean;
  readonly purged: boolean;
}

/** A row that was believed, with its content. */
export interface Opened extends Verified {
  readonly content: Content;
}

/** Where what is sealed stands, beside its keys. */
export interface Place {
  /** `parentAfter` the row that it follows on; by default it is the first. */
  readonly parent?: Bytes;
  /** The collection's name on the wire where the document lies; by default that of new documents. */
  readonly wire?: string;
  readonly random?: Random;
}

/** The parts of an `hmac`; refused where it is in no spelling of this format. */
export function readProof(hmac: string | null): Proof {
  const spelled = withoutPrefix(hmac ?? "", STRANGE); // a later format may have longer ones
  must(spelled.length === 70, STRANGE);
  const raw = fromUrl(spelled);
  return {
    generation: readGeneration(raw.subarray(0, 4)),
    parent: raw.slice(4, 4 + PARENT),
    mac: raw.slice(4 + PARENT),
  };
}

/** Refuse an `hmac` that names as its parent one under a newer key: its writer was shut out by a rotation. */
export async function requireGeneration(seen: string, newer: string): Promise<void> {
  const { generation, parent } = readProof(newer);
  must(!equal(parent, await short(seen)) || generation >= readProof(seen).generation, OLD_KEY);
}

/** A row as a link of its chain: a tombstone counts as its notice. */
export const link = (row: Row): Link => [row.version - (row.deletedAt === null ? 0 : 1), row.hmac ?? ""];

/** The parent of a row that follows on this one; null: it is the first. */
export const parentAfter = async (row: Row | null): Promise<Bytes> => (row?.hmac == null ? NO_PARENT : short(row.hmac));

/**
 * The version of the notice that an `hmac` proves: the row's own or, of a tombstone, the one before.
 *
 * Null: it is not the proof of a deletion. Of a document it needs the data to prove anything.
 */
export async function noticeVersion(
  keys: CollectionKeys,
  wire: string,
  uid: string,
  version: number,
  hmac: string | null,
): Promise<number | null> {
  const proof = readProof(hmac);
  const key = keyOf(keys, proof.generation);
  for (const one of [version, version - 1]) {
    if (!isVersion(one)) continue;
    const row = rowItems(keys, key, wire, uid, one, proof.parent);
    if (await primitives().verify(key.proving, proof.mac, await proofOf(DELETION, row, ""))) return one;
  }
  return null;
}

/** Seal a value as this document's next version: 1 for a new one, else one more than the stored version. */
export const sealDocument = (
  keys: CollectionKeys,
  uid: string,
  version: number,
  value: unknown,
  place: Place = {},
): Promise<Sealed> => sealContent(keys, DOCUMENT, uid, version, toContent(value), place);

/**
 * Seal the notice that a document is deleted: PUT it as the next version, then DELETE that.
 *
 * `last` is the content that was deleted, so that it can be restored; it goes when the server empties its trash.
 */
export const sealDeletion = (
  keys: CollectionKeys,
  uid: string,
  version: number,
  last: Content,
  place: Place,
): Promise<Sealed> => sealContent(keys, DELETION, uid, version, last, place);

/** Seal content under the newest key, and open again what is about to be sent. */
export async function sealContent(
  keys: CollectionKeys,
  kind: number,
  uid: string,
  version: number,
  content: Content,
  { parent = NO_PARENT, wire = keys.wires[0], random = primitives().random }: Place = {},
): Promise<Sealed> {
  const key = newest(keys);
  const row = rowItems(keys, key, wire, checkedUid(uid), checkedVersion(version), parent);
  const data = await sealRow(key, kind, row, content, random);
  const mac = await primitives().hmac(key.proving, await proofOf(kind, row, data));
  return { data, hmac: PREFIX + toUrl(join(number(key.generation, 4), parent, mac)) };
}

/** A notice with the proof of a tombstone whose content was thrown away: the proof does not depend on it. */
export async function resealNotice(
  keys: CollectionKeys,
  row: Row,
  random: Random = primitives().random,
): Promise<Sealed> {
  const { generation, parent } = readProof(row.hmac);
  const key = keyOf(keys, generation);
  const at = rowItems(keys, key, row.collection, row.uid, row.version - 1, parent);
  return { data: await sealRow(key, DELETION, at, EMPTY, random), hmac: row.hmac ?? "" };
}

async function sealRow(
  key: CollectionKey,
  kind: number,
  row: Bytes,
  content: Content,
  random: Random,
): Promise<string> {
  const [associated, padded] = [associatedOf(kind, row), pad(content)];
  const box = await sealBox(key.sealing, random(KEY), padded, associated);
  const data = toBase64(join(Uint8Array.of(FORMAT, kind), number(key.generation, 4), box));
  must(equal(await openBox(key.sealing, fromBase64(data).slice(HEAD), associated), padded), AGAIN);
  return data;
}

/**
 * Believe that a key holder made this row for exactly this place and version; a document's box is not opened.
 *
 * The caller compares a uid that it asked for with `row.uid`; vault and collection are compared here. The proof of a
 * deletion does not cover its data, so that box is opened.
 */
export async function verifyDocument(keys: CollectionKeys, row: Row): Promise<Verified> {
  const { verified, open } = await believe(keys, row);
  if (verified.deleted) await open();
  return verified;
}

/** Believe a row, live or deleted, and open it. */
export async function openDocument(keys: CollectionKeys, row: Row): Promise<Opened> {
  const { verified, open } = await believe(keys, row);
  return { ...verified, content: await open() };
}

async function believe(keys: CollectionKeys, row: Row): Promise<{ verified: Verified; open: () => Promise<Content> }> {
  must(row.vaultUid === keys.vault && keys.wires.includes(row.collection) && row.uid.isWellFormed());
  const gone = row.deletedAt !== null;
  const unproven = gone ? UNPROVEN : undefined;
  const version = row.version - (gone ? 1 : 0); // the DELETE counted one more than the notice
  const { generation, parent, mac } = readProof(row.hmac);
  must(gone || generation >= keys.floor, OLD_KEY); // all that were live have been encrypted again above the floor
  must(isVersion(version) && isVersion(row.version), unproven);
  const purged = gone && !row.data;
  const kind = purged ? DELETION : kindOf(row.data, generation);
  must(!gone || kind === DELETION, UNPROVEN);
  const key = keyOf(keys, generation);
  const at = rowItems(keys, key, row.collection, row.uid, version, parent);
  must(await primitives().verify(key.proving, mac, await proofOf(kind, at, row.data)), unproven);
  return {
    verified: { uid: row.uid, version: row.version, generation, parent, deleted: kind === DELETION, purged },
    async open() {
      if (purged) return EMPTY;
      const content = unpad(await openBox(key.sealing, fromBase64(row.data).slice(HEAD), associatedOf(kind, at)));
      must(kind === DELETION || content.kind !== NOTHING);
      return content;
    },
  };
}

/** The kind of a row, by the first characters of `data`, which must name this generation. */
function kindOf(data: string, generation: number): number {
  const head = data.length >= 8 ? fromBase64(data.slice(0, 8)) : NONE;
  const kind = head[1];
  checkFormat(head[0], STRANGE);
  must(kind === DOCUMENT || kind === DELETION, STRANGE);
  must(equal(head.subarray(2), number(generation, 4)));
  return kind;
}

/** The items that say which version of which document, under which key, after what. */
function rowItems(
  keys: CollectionKeys,
  { generation }: CollectionKey,
  wire: string,
  uid: string,
  version: number,
  parent: Bytes,
): Bytes {
  if (place[0] !== keys || place[1] !== wire) place = [keys, wire, list(keys.account, keys.vault, wire)];
  return join(place[2], list(uid, version, generation, parent));
}

/** The items that all documents of a collection share, as they were used last. */
let place: readonly [CollectionKeys | undefined, string, Bytes] = [undefined, "", NONE];

const associatedOf = (kind: number, row: Bytes): Bytes => join(items(kind === DOCUMENT ? "document" : "deletion"), row);

const proofOf = async (kind: number, row: Bytes, data: string): Promise<Bytes> =>
  join(items("proof"), row, list(Uint8Array.of(kind), kind === DOCUMENT ? await digest(data) : NONE));

// A blob is bound to its vault's name too: a client that renames such a vault seals its blob anew, in the same request.

/** Seal content as this vault's blob. `name` is the vault's on the wire, `version` the vault's next version. */
export async function sealBlob(
  keys: VaultKeys,
  name: string,
  version: number,
  content: Content,
  { parent = NO_PARENT, random = primitives().random }: Pick<Place, "parent" | "random"> = {},
): Promise<SealedBlob> {
  const key = newest(keys);
  const associated = blobItems(keys, key, checkedName(name, "name"), checkedVersion(version), parent);
  const box = await sealBox(key.blob, random(KEY), pad(content), associated);
  const head = join(Uint8Array.of(FORMAT, BLOB), number(key.generation, 4), parent);
  const made = { data: toBase64(join(head, box.subarray(KEY))), salt: toBase64(box.subarray(0, KEY)) };
  const again = await openBlob(keys, name, { uid: keys.vault, version, ...made });
  must(again.kind === content.kind && equal(again.data, content.data), AGAIN);
  return made;
}

/** The generation and the parent that a blob names. */
export function blobLineage(data: string): Lineage {
  const raw = fromBase64(data);
  checkFormat(raw[0], STRANGE);
  must(raw[1] === BLOB && raw.length >= HEAD + PARENT, STRANGE);
  return { generation: readGeneration(raw.subarray(2, HEAD)), parent: raw.slice(HEAD, HEAD + PARENT) };
}

/** The parent of a blob that follows on this one; null: it is the first. */
export const parentAfterBlob = async (data: string | null): Promise<Bytes> => (data === null ? NO_PARENT : short(data));

/** Believe a vault's blob, if a key holder made it for exactly this vault, name on the wire and version. */
export async function openBlob(keys: VaultKeys, name: string, row: BlobRow): Promise<Content> {
  must(row.uid === keys.vault && row.data !== null && row.salt !== null && isVersion(row.version));
  const { generation, parent } = blobLineage(row.data);
  must(generation >= keys.floor, OLD_KEY);
  const key = keyOf(keys, generation);
  const salt = fromBase64(row.salt);
  must(salt.length === KEY && name.isWellFormed());
  const box = join(salt, fromBase64(row.data).subarray(HEAD + PARENT));
  const content = unpad(await openBox(key.blob, box, blobItems(keys, key, name, row.version, parent)));
  must(content.kind !== NOTHING);
  return content;
}

/** Believe a blob that was replaced, if a key holder made it for this vault and version, and one of these names. */
export async function openPastBlob(keys: VaultKeys, names: readonly string[], row: BlobRow): Promise<Content> {
  let last: unknown = new Tampered();
  for (const name of names) {
    try {
      return await openBlob({ ...keys, floor: 1 }, name, row);
    } catch (fault) {
      if (!(fault instanceof Tampered)) throw fault;
      last = fault;
    }
  }
  throw last;
}

const blobItems = (
  { account, vault }: VaultKeys,
  { generation }: VaultKey,
  name: string,
  version: number,
  parent: Bytes,
): Bytes => items("blob", account, vault, name, version, generation, parent);
