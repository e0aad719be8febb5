// What need not be current: rows that were replaced, and what this device has believed before the floor rose.
import type { CollectionKeys, VaultKeys } from "./keys.js";
import type { Content } from "./padding.js";
import { type BlobRow, openBlob, openDocument, type Opened, type Row, type Verified, verifyDocument } from "./seal.js";

const lifted = <K extends { readonly floor: number }>(keys: K): K => ({ ...keys, floor: 1 });

/** Believe such a row, as `verifyDocument` does a current one. */
export const verifyPastDocument = (keys: CollectionKeys, row: Row): Promise<Verified> =>
  verifyDocument(lifted(keys), row);

/** Believe such a row, live or deleted, and open it. */
export const openPastDocument = (keys: CollectionKeys, row: Row): Promise<Opened> => openDocument(lifted(keys), row);

/** Open a blob that this device has believed before. */
export const openKnownBlob = (keys: VaultKeys, name: string, row: BlobRow): Promise<Content> =>
  openBlob(lifted(keys), name, row);
