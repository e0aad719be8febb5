// What a replica holds below a floor, under the newest keys: an export needs it, because nobody takes it as it is.
import { type Bytes, short } from "../format/encoding.js";
import type { VaultKeys } from "../format/keys.js";
import { openKnownBlob, openPastDocument } from "../format/past.js";
import { blobLineage, DELETION, DOCUMENT, readProof, type Sealed, sealBlob, sealContent } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import type { Scope } from "../operations/documents.js";
import { type Entry, entryRow, type VaultRecord } from "./records.js";

/** A row; a live one below the floor is replaced by itself, as in a rotation. */
export async function rowAbove(scope: Scope, row: Row): Promise<Row> {
  if (row.deletedAt !== null || !(await isBelow(scope, row.hmac))) return row;
  const version = row.version + 1;
  return { ...row, version, ...(await encryptedAgain(scope, row, version, await short(row.hmac ?? ""))) };
}

/** A queued change; below the floor it is encrypted again for the same version, as before it is sent. */
export async function entryAbove(scope: Scope, entry: Entry): Promise<Entry> {
  if (!(await isBelow(scope, entry.hmac))) return entry;
  const { parent } = readProof(entry.hmac);
  return { ...entry, ...(await encryptedAgain(scope, entryRow(entry), entry.version, parent)) };
}

/** A vault; a blob below the floor is replaced by itself, as in a rotation. */
export async function blobAbove(keys: VaultKeys, record: VaultRecord): Promise<VaultRecord> {
  const { data, wire } = record;
  if (data === null || blobLineage(data).generation >= keys.floor) return record;
  const [content, version] = [await openKnownBlob(keys, wire, record), record.version + 1];
  return { ...record, version, ...(await sealBlob(keys, wire, version, content, { parent: await short(data) })) };
}

const isBelow = async (scope: Scope, hmac: string | null): Promise<boolean> =>
  readProof(hmac).generation < (await scope.floor());

async function encryptedAgain(scope: Scope, row: Row, version: number, parent: Bytes): Promise<Sealed> {
  const keys = await scope.key(row.collection);
  const { content, deleted } = await openPastDocument(keys, row);
  return sealContent(keys, deleted ? DELETION : DOCUMENT, row.uid, version, content, { parent, wire: row.collection });
}
