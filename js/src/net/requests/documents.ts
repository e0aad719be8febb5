/** Requests of documents: single ones, lists, batches, the trash, history. */

import { DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound, VersionNotFound } from "../../errors.js";
import { type Call, LARGE, pathPart } from "../call.js";
import * as decoders from "../decoders.js";

const NO_DOCUMENT = { 404: DocumentNotFound, 409: DocumentConflict, 412: DocumentConflict };
const NO_VAULT = { 404: VaultNotFound };

/** What is sent of a document: the two fields that the server keeps. */
export interface Sealed {
  data: string;
  hmac: string;
}

const pathOf = (vault: string, ...parts: string[]): string =>
  ["/vaults", vault, ...parts].map((part, at) => (at ? pathPart(part) : part)).join("/");

/** Create a document. */
export const create = (
  vault: string,
  uid: string,
  collection: string,
  { data, hmac }: Sealed,
  keyringVersion?: number,
) =>
  ({
    method: "POST",
    path: pathOf(vault, "documents"),
    body: JSON.stringify({ collection, data, hmac, uid }),
    decode: decoders.document,
    refusals: { ...NO_VAULT, 409: UidTaken },
    alreadyDone: [UidTaken],
    maxBytes: LARGE,
    keyringVersion,
  }) satisfies Call<unknown>;

/** Get a document, deleted or not. */
export const get = (vault: string, uid: string) =>
  ({
    method: "GET",
    path: pathOf(vault, "documents", uid),
    decode: decoders.document,
    refusals: NO_DOCUMENT,
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** Replace the ciphertext of a document of this version. */
export const put = (vault: string, uid: string, { data, hmac }: Sealed, version: number, keyringVersion?: number) =>
  ({
    method: "PUT",
    path: pathOf(vault, "documents", uid),
    body: JSON.stringify({ data, hmac, version }),
    decode: decoders.document,
    refusals: NO_DOCUMENT,
    maxBytes: LARGE,
    keyringVersion,
  }) satisfies Call<unknown>;

/** What is asked of a list. */
export interface ListOptions {
  collection?: string | undefined;
  since?: number | undefined;
  limit: number;
  /** Whether tombstones are wanted. */
  deleted?: boolean;
  /** Only deleted documents that can be revived. */
  trash?: boolean;
  /** Seconds to wait for a change. */
  wait?: number;
}

/** List a page of documents. */
export const listPage = (vault: string, { collection, since, limit, deleted, trash, wait = 0 }: ListOptions) => {
  const query: [string, string][] = [["limit", `${limit}`]];
  if (collection !== undefined) query.push(["collection", collection]);
  if (since !== undefined) query.push(["since", `${since}`]);
  if (trash) query.push(["deleted", "only"]);
  else if (deleted !== undefined) query.push(["includeDeleted", `${deleted}`]);
  if (wait) query.push(["wait", `${wait}`]);
  return {
    method: "GET",
    path: pathOf(vault, "documents"),
    query,
    decode: decoders.documents,
    refusals: NO_VAULT,
    maxBytes: LARGE,
    wait,
  } satisfies Call<unknown>;
};

/** Purge a deleted document of this version. */
export const purge = (vault: string, uid: string, version: number) =>
  ({
    method: "DELETE",
    path: pathOf(vault, "trash", uid),
    body: JSON.stringify({ version }),
    decode: decoders.document,
    refusals: NO_DOCUMENT,
  }) satisfies Call<unknown>;

/** Purge deleted documents of a vault, or of one collection; some of them, where there are many. */
export const emptyTrash = (vault: string, collection?: string) =>
  ({
    method: "DELETE",
    path: pathOf(vault, "trash"),
    query: collection === undefined ? [] : [["collection", collection]],
    decode: decoders.purged,
    refusals: NO_VAULT,
  }) satisfies Call<unknown>;

/** Get an earlier version of a document. */
export const getVersion = (vault: string, uid: string, version: number) =>
  ({
    method: "GET",
    path: pathOf(vault, "documents", uid, "versions", `${version}`),
    decode: decoders.document,
    refusals: NO_DOCUMENT,
    kinds: [VersionNotFound],
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** Uid, version and proof of the documents' versions that were replaced after a time and are kept. */
export const history = (vault: string, since: number, uid?: string) =>
  ({
    method: "GET",
    path: pathOf(vault, "documents", "history"),
    query: [
      ["since", `${since}`],
      ["limit", "5000"],
      ...(uid === undefined ? [] : [["uid", uid] satisfies [string, string]]),
    ],
    decode: decoders.history,
    refusals: NO_VAULT,
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** One operation of a batch. */
export interface Operation extends Partial<Sealed> {
  op: "create" | "put" | "delete";
  uid: string;
  collection?: string;
  version?: number;
  newVersion?: number;
}

/** Run a batch of operations: all of them, or none. */
export const batch = (vault: string, operations: Operation[], keyringVersion?: number) =>
  ({
    method: "POST",
    path: pathOf(vault, "batch"),
    body: JSON.stringify({ operations }),
    decode: decoders.results,
    maxBytes: LARGE,
    keyringVersion,
  }) satisfies Call<unknown>;
