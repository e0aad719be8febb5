// How a newer row of a document stands to the one that this device has seen, by what the server keeps in between.
import { Tampered } from "../errors.js";
import { type Link, trace } from "../format/parents.js";
import { link, readProof } from "../format/seal.js";
import type { ReplacedVersion, Row } from "../net/decoders.js";
import { history as historyCall } from "../net/requests/documents.js";
import type { Core } from "./core.js";
import type { KnownDocument } from "./device.js";
import { WRONG_DOCUMENT } from "./documents.js";

export const FORKED = "The server shows a newer document whose writer did not know of what this device has seen.";
const MAX_HISTORY_PAGES = 1000; // of some thousand versions each

/** Refuse a newer row that was made without knowing of the one that was seen; whether none can tell. */
export async function requireDescent(core: Core, row: Row, known: KnownDocument, isLate: boolean): Promise<boolean> {
  if (isLate) throw new Tampered(FORKED);
  const history = await readHistory(core, row.vaultUid, 0, row.uid);
  const descent = await trace(
    link(row),
    known.link,
    history.map(([, one]) => one),
    readProof,
  );
  if (descent === "forked") throw new Tampered(FORKED);
  return descent === "gap";
}

/** Uid, version and proof of what was replaced after a time, in a vault or of one document. */
export async function readHistory(core: Core, vault: string, since: number, uid?: string): Promise<[string, Link][]> {
  const rows = await historyRows(core, vault, since, uid);
  return rows.flatMap(({ uid: one, version, hmac }) => (hmac === null ? [] : [[one, [version, hmac]]]));
}

/** The same rows as the server shows them, with those that have no proof. A history without an end is cut off. */
export async function historyRows(core: Core, vault: string, since: number, uid?: string): Promise<ReplacedVersion[]> {
  const found: ReplacedVersion[] = [];
  for (let pages = 0; pages < MAX_HISTORY_PAGES; pages++) {
    const page = await core.session.send(historyCall(vault, since, uid));
    found.push(...page.versions);
    if (!page.hasMore) break;
    if (page.next <= since) throw new Tampered(WRONG_DOCUMENT);
    since = page.next;
  }
  return found;
}
