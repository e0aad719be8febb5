// Contents of documents that were verified and opened before, sealed again: many in one box.
//
// A browser takes far longer for a call of its cryptography than for what the call computes, and a document needs five.
// So a page that is opened again opens some boxes in the place of every document. A content is used only for a row with
// the proof, the version and the collection of the row that it was opened from: to verify that row would find the same.
import { Refusal } from "../errors.js";
import { openBox } from "../format/box.js";
import { type Bytes, fromText, items } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import { unpad } from "../format/padding.js";
import type { Key } from "../format/primitives.js";
import type { Scope } from "../operations/documents.js";
import type { ContentsRecord, Head } from "./records.js";
import type { Tables } from "./tables.js";
import { storageKey } from "./vaultKeys.js";

/** A content, and what tells the row that it was opened from. */
export type KeptContent = readonly [uid: string, version: number, wire: string, proof: string | null, value: unknown];

/** Whether a content is that of a row. */
export const isContentOf = ([uid, version, wire, proof]: KeptContent, head: Head): boolean =>
  uid === head.uid &&
  version === head.version &&
  wire === head.collection &&
  proof === head.hmac &&
  head.deletedAt === null;

/** Where the contents of a place are kept: those of one collection by its name on the wire, those of all apart. */
export const placeOf = async (scope: Scope<unknown>): Promise<string> => (await scope.own())?.wires[0] ?? "";

/** The key that contents are sealed with. */
export const contentsKey = (ring: Keyring): Promise<Key> => storageKey(ring, "replica-contents");

/** What the box of a record is sealed for. */
export const contentsLabel = (ring: Keyring, { vault, uid }: Pick<ContentsRecord, "vault" | "uid">): Bytes =>
  items("replica-contents", ring.account, vault, uid);

/** The contents that are kept of a place, box by box. One that does not open is left out: its documents are opened from their rows. */
export async function keptContents(
  tables: Tables,
  ring: Keyring,
  scope: Scope<unknown>,
): Promise<Promise<readonly KeptContent[]>[]> {
  const records = await tables.contents(scope.vault, await placeOf(scope));
  if (!records.length) return [];
  const key = await contentsKey(ring);
  return records.map((record) => opened(ring, key, record));
}

async function opened(ring: Keyring, key: Key, record: ContentsRecord): Promise<readonly KeptContent[]> {
  try {
    const { data } = unpad(await openBox(key, record.box, contentsLabel(ring, record)));
    return JSON.parse(fromText(data) ?? "[]") as KeptContent[]; // what this key has sealed, this client has written
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    return []; // sealed under keys of before a rotation, or the storage was changed
  }
}
