/** Requests of vaults: their names and blobs, their collections, their events. */

import {
  NotFound,
  TooManyVaults,
  VaultAlreadyExists,
  VaultConflict,
  VaultNotFound,
  VersionNotFound,
} from "../../errors.js";
import { type Call, LARGE, pathPart } from "../call.js";
import * as decoders from "../decoders.js";

const NO_VAULT = { 404: VaultNotFound, 409: VaultAlreadyExists };

/** What is sent of a blob. */
export interface SealedBlob {
  data: string;
  salt: string;
}

const pathOf = (uid: string): string => `/vault/${pathPart(uid)}`;

/** List the vaults. */
export const listAll = () =>
  ({ method: "GET", path: "/vault", decode: decoders.vaults, maxBytes: LARGE }) satisfies Call<unknown>;

/** Get a vault. */
export const get = (uid: string) =>
  ({
    method: "GET",
    path: pathOf(uid),
    decode: decoders.vault,
    refusals: NO_VAULT,
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** Create a vault. */
export const create = (uid: string, name: string, blob?: SealedBlob) =>
  ({
    method: "POST",
    path: "/vault",
    body: JSON.stringify({ name, uid, data: blob?.data, salt: blob?.salt }),
    decode: decoders.vault,
    refusals: NO_VAULT,
    kinds: [TooManyVaults],
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** Another blob, or another name and with it the blob that is sealed for it. */
export const put = (
  uid: string,
  change: { name?: string; version: number; newVersion?: number },
  blob?: SealedBlob,
  keyringVersion?: number,
) =>
  ({
    method: "PUT",
    path: pathOf(uid),
    body: JSON.stringify({ ...change, data: blob?.data, salt: blob?.salt }),
    decode: decoders.vault,
    refusals: { 404: VaultNotFound, 409: VaultConflict },
    maxBytes: LARGE,
    keyringVersion,
  }) satisfies Call<unknown>;

/** Which blobs of a vault were replaced and are kept. */
export const blobVersions = (uid: string) =>
  ({
    method: "GET",
    path: `${pathOf(uid)}/versions`,
    decode: decoders.blobVersions,
    refusals: NO_VAULT,
  }) satisfies Call<unknown>;

/** A vault's blob as it was. */
export const blobVersion = (uid: string, version: number) =>
  ({
    method: "GET",
    path: `${pathOf(uid)}/versions/${version}`,
    decode: decoders.blobVersion,
    refusals: NO_VAULT,
    kinds: [VersionNotFound],
    maxBytes: LARGE,
  }) satisfies Call<unknown>;

/** Delete a vault and everything in it. */
export const remove = (uid: string) =>
  ({
    method: "DELETE",
    path: pathOf(uid),
    decode: decoders.ignored,
    refusals: NO_VAULT,
    alreadyDone: [VaultNotFound],
  }) satisfies Call<unknown>;

/** List a page of the collections of a vault. */
export const listCollections = (vault: string, after?: string) =>
  ({
    method: "GET",
    path: `/vaults/${pathPart(vault)}/collections`,
    query: after === undefined ? [] : [["after", after]],
    decode: decoders.collections,
    refusals: { 404: VaultNotFound },
  }) satisfies Call<unknown>;

/** Open the event stream of a vault, or of all vaults, after a timestamp. */
export const events = (vault: string | undefined, since: number) =>
  ({
    method: "GET",
    path: vault === undefined ? "/events" : `/vaults/${pathPart(vault)}/events`,
    query: [["since", `${since}`]],
    decode: decoders.ignored,
    accept: "text/event-stream",
    refusals: { 404: NotFound },
    wait: 15,
  }) satisfies Call<unknown>;
