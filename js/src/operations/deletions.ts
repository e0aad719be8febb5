// Deletions of documents: a notice, and the server's own deletion.
import { BatchConflict, DocumentConflict, Tampered } from "../errors.js";
import { toContent } from "../format/content.js";
import { short } from "../format/encoding.js";
import { DELETION, sealContent, type Sealed } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import * as requests from "../net/requests/documents.js";
import type { Core } from "./core.js";
import {
  checkStored,
  type Document,
  get,
  NOT_STORED,
  once,
  recordWritten,
  type Scope,
  wireCollection,
  withCiphertext,
} from "./documents.js";
import * as keyrings from "./keyrings.js";

/** A notice that the document is deleted, and the server's own deletion, which keeps the notice: in one batch. */
export function remove<T>(core: Core, scope: Scope<T>, document: Document<unknown>): Promise<Document<T>> {
  const sealOnce = once();
  return keyrings.withNewest(core, async () => {
    const now = await scope.renewed(core);
    const wire = await wireCollection(now, document);
    const keys = await now.key(wire);
    const { uid, version, vault } = document;
    const last = toContent(document.raw);
    const sealed = await sealOnce(keys, async () =>
      sealContent(keys, DELETION, uid, version + 1, last, { parent: await short(document.proof), wire }),
    );
    const operations: requests.Operation[] = [
      { op: "put", uid, ...sealed, version },
      { op: "delete", uid, version: version + 1 },
    ];
    const mark = core.device.mark();
    let results: Row[];
    try {
      ({ results } = await core.session.send(requests.batch(vault, operations, now.keyring)));
    } catch (error) {
      if (error instanceof BatchConflict) return explainConflict(core, now, document, sealed, error);
      throw error;
    }
    const [notice, tombstone] = results;
    if (!notice || !tombstone || results.length !== 2) throw new Tampered(NOT_STORED);
    const row = withCiphertext(tombstone, sealed);
    checkStored(notice, sealed, vault, wire, uid, version + 1);
    checkStored(row, sealed, vault, wire, uid, version + 2, true);
    return recordWritten(core, now, row, last, mark, true);
  });
}

/** The deletion, if an attempt without a response has done it; otherwise throws the conflict. */
async function explainConflict<T>(
  core: Core,
  scope: Scope<T>,
  document: Document<unknown>,
  sealed: Sealed,
  refused: BatchConflict,
): Promise<Document<T>> {
  const now = await get(core, scope, document.uid, true);
  const known = core.device.known(scope.vault, document.uid);
  if (now.deleted && now.version === document.version + 2 && known?.proof === sealed.hmac) return now;
  if (now.version === document.version) throw refused;
  throw new DocumentConflict(now.version, now.updatedAt);
}
