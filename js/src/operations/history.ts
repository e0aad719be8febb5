// History: versions of documents and of blobs that were replaced and are kept.
//
// A version is believed if a key holder made it for this place and this version, and if the parents lead to it from the
// current one. Where the server keeps too little to show that, the version has `gap`; where they lead elsewhere, it is
// of another branch, and refused. Times, and which versions are kept, are the server's word.
import { Tampered, VersionNotFound } from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import { checkedInteger, checkedUid, must } from "../format/encoding.js";
import { type Descent, type Link, trace, traceAll } from "../format/parents.js";
import { openPastDocument } from "../format/past.js";
import { blobLineage, link, noticeVersion, openPastBlob, readProof } from "../format/seal.js";
import type { ReplacedVersion } from "../net/decoders.js";
import { getVersion as getVersionCall } from "../net/requests/documents.js";
import * as requests from "../net/requests/vaults.js";
import { Blob, putBlob, requireBlobDescent, toBlob } from "./blobs.js";
import type { Core } from "./core.js";
import { FORKED, historyRows } from "./descent.js";
import {
  type Document,
  get,
  replaceContent,
  type Scope,
  toDocument,
  verifyRow,
  wireCollection,
  WRONG_DOCUMENT,
} from "./documents.js";
import { currentRow, type OpenVault, WRONG_VAULT } from "./vaults.js";

const TWICE = "The server's history shows one version twice, or another content of the current one.";

const BELOW = "The server's history does not show that a version under keys of before a rotation was ever current.";

/** A version that was replaced and is kept. `updatedAt` is the server's word; `deleted` is a key holder's. */
export interface Version {
  readonly version: number;
  readonly updatedAt: number;
  readonly deleted: boolean;
  /** Whether the server's history does not show that the current version follows on this one. */
  readonly gap: boolean;
}

/** The versions of a document that were replaced and are kept, newest first. */
export async function ofDocument(core: Core, scope: Scope<unknown>, uid: string): Promise<Version[]> {
  const now = await get(core, scope, checkedUid(uid), true);
  const { rows, links, newest } = await historyOf(core, scope, now);
  const descents = await traceAll(newest, links, readProof);
  const found: Version[] = [];
  for (const [at, { version, updatedAt, hmac }] of rows.entries()) {
    const deleted = (await noticeOf(core, scope, now, version, hmac)) !== null;
    found.push({ version, updatedAt, deleted, gap: isGap(descents[at] ?? "gap") });
  }
  return found;
}

/** A document as it was at a version, or as it is. */
export async function getVersion<T>(core: Core, scope: Scope<T>, uid: string, version: number): Promise<Document<T>> {
  checkedInteger(version, "version");
  const now = await get(core, scope, checkedUid(uid), true);
  if (version === now.version) return now;
  if (version < 1 || version > now.version) throw new VersionNotFound();
  const row = await core.session.send(getVersionCall(scope.vault, now.uid, version));
  const isMoved = row.uid !== now.uid || row.version !== version || row.collection !== now.wire;
  if (isMoved || row.createdAt !== now.createdAt) throw new Tampered(WRONG_DOCUMENT);
  const [keys, made] = await verifyRow(core, scope, row, openPastDocument);
  const { links, newest } = await historyOf(core, scope, now);
  const gap = isGap(await trace(newest, link(row), links, readProof));
  must(!gap || made.generation >= keys.floor, BELOW);
  return toDocument(scope, row, made.content, keys.name, made.deleted, gap);
}

/** The content of a version in the place of the current one, which must be the one that was seen. */
export async function restore<T>(
  core: Core,
  scope: Scope<T>,
  document: Document<unknown>,
  version: number,
): Promise<Document<T>> {
  await wireCollection(scope, document);
  const old = await getVersion(core, scope, document.uid, version);
  if (old.purged) throw new VersionNotFound("This version has no content: it is a deletion whose content is gone.");
  return replaceContent(core, scope, document, toContent(old.raw));
}

/** What the server keeps of a document before its current version, newest first. */
interface Kept {
  readonly rows: ReplacedVersion[];
  /** The same as links. */
  readonly links: Link[];
  /** The current version. */
  readonly newest: Link;
}

async function historyOf(core: Core, scope: Scope<unknown>, now: Document<unknown>): Promise<Kept> {
  const found = await historyRows(core, scope.vault, 0, now.uid);
  if (found.some((row) => row.uid !== now.uid)) throw new Tampered(WRONG_DOCUMENT);
  const rows = found.filter((row) => row.version <= now.version).sort((one, other) => other.version - one.version);
  requireOnce(rows);
  const [first] = rows;
  if (first?.version === now.version) {
    // it was replaced after it was read
    if (first.hmac !== now.proof) throw new Tampered(TWICE);
    rows.shift();
  }
  const linkOf = async (version: number, hmac: string | null): Promise<Link> => [
    (await noticeOf(core, scope, now, version, hmac)) ?? version,
    hmac ?? "",
  ];
  const newest = await linkOf(now.version, now.proof);
  return { rows, links: await Promise.all(rows.map(({ version, hmac }) => linkOf(version, hmac))), newest };
}

/** Refuse a history that shows a version twice. */
function requireOnce(versions: readonly { readonly version: number }[]): void {
  if (new Set(versions.map(({ version }) => version)).size !== versions.length) throw new Tampered(TWICE);
}

async function noticeOf(
  core: Core,
  scope: Scope<unknown>,
  now: Document<unknown>,
  version: number,
  hmac: string | null,
): Promise<number | null> {
  const keys = await (await scope.renewed(core)).key(now.wire);
  return noticeVersion(keys, now.wire, now.uid, version, hmac);
}

/** Whether it cannot be told that the current version follows on another; one of another branch is refused. */
function isGap(descent: Descent): boolean {
  if (descent === "forked") throw new Tampered(FORKED);
  return descent === "gap";
}

/** The versions of a vault whose blob was replaced and is kept, newest first: the server's word till one is read. */
export async function ofBlob(core: Core, opened: OpenVault): Promise<Version[]> {
  const [vault, row] = await currentRow(core, opened);
  const { versions } = await core.session.send(requests.blobVersions(vault.uid));
  requireOnce(versions);
  return versions
    .filter(({ version }) => version >= 1 && version < row.version)
    .sort((one, other) => other.version - one.version)
    .map((one) => ({ ...one, deleted: false, gap: false }));
}

/** A vault's blob as it was at a version of the vault, or as it is. */
export async function getBlobVersion(core: Core, opened: OpenVault, version: number): Promise<Blob> {
  checkedInteger(version, "version");
  const [vault, row, gap] = await currentRow(core, opened);
  if (row.data === null || version < 1 || version > row.version) throw new VersionNotFound();
  const newest = version === row.version ? await toBlob(vault, row, gap) : undefined;
  if (newest) {
    core.device.recordBlob(row);
    return newest;
  }
  const old = await core.session.send(requests.blobVersion(vault.uid, version));
  if (old.uid !== vault.uid || old.version !== version) throw new Tampered(WRONG_VAULT);
  const content = await openPastBlob(vault.keys, old.name === null ? vault.wires : [old.name], old);
  const isUnknown = await requireBlobDescent(core, row, [version, old.data]);
  must(!isUnknown || blobLineage(old.data).generation >= vault.keys.floor, BELOW);
  return new Blob(vault.uid, toValue(content), version, isUnknown);
}

/** The blob of a version in the place of the current one. */
export async function restoreBlob(core: Core, vault: OpenVault, version: number, after?: Blob<unknown>): Promise<Blob> {
  return putBlob(core, vault, (await getBlobVersion(core, vault, version)).raw, after);
}
