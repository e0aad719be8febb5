// The trash: deleted documents are revived, or purged for good.
//
// That a document is deleted is proven by its notice. That its content is gone from the server is the server's word.
import { DocumentNotFound, Invalid, Tampered } from "../errors.js";
import { toContent } from "../format/content.js";
import { verifyDocument } from "../format/seal.js";
import * as requests from "../net/requests/documents.js";
import type { Core } from "./core.js";
import { type Document, replaceContent, type Scope, wireCollection, WRONG_DOCUMENT } from "./documents.js";

const ENDLESS = "The server says again and again that there is more to purge.";
const MOST_REQUESTS = 100_000;

/** A deleted document with its last value again, if it has not changed since it was read. */
export async function revive<T>(core: Core, scope: Scope<T>, document: Document<unknown>): Promise<Document<T>> {
  await requireDeleted(scope, document);
  if (document.purged) {
    throw new DocumentNotFound("The content of this document is gone from the server; create a new document.");
  }
  return replaceContent(core, scope, document, toContent(document.raw));
}

/** Purge the content and the history of a deleted document, if it has not changed since it was read. */
export async function purge(core: Core, scope: Scope<unknown>, document: Document<unknown>): Promise<void> {
  await requireDeleted(scope, document);
  const { uid, version, proof } = document;
  const mark = core.device.mark();
  const row = await core.session.send(requests.purge(scope.vault, uid, version));
  if (row.uid !== uid || row.version !== version || row.hmac !== proof) throw new Tampered(WRONG_DOCUMENT);
  if (row.data || row.deletedAt === null) {
    throw new Tampered("The server did not purge the document that it was told to.");
  }
  const { deleted } = await verifyDocument(await (await scope.renewed(core)).key(row.collection), row);
  core.device.record(row, mark, deleted);
}

/** Refuse a document that was not deleted when it was read. */
async function requireDeleted(scope: Scope<unknown>, document: Document<unknown>): Promise<void> {
  await wireCollection(scope, document);
  if (!document.deleted) {
    throw new Invalid({ document: "is not deleted; give one that delete has returned, or one of the trash" });
  }
}

/** Purge all deleted documents of a vault, or of one collection; how many, as the server says. */
export async function empty(core: Core, scope: Scope<unknown>): Promise<number> {
  const now = await scope.renewed(core);
  let purged = 0;
  for (const wire of (await now.own())?.wires ?? [undefined]) {
    for (let count = 0; ; count++) {
      const done = await core.session.send(requests.emptyTrash(now.vault, wire));
      purged += done.purged;
      if (!done.hasMore) break;
      if (!done.purged || count === MOST_REQUESTS) throw new Tampered(ENDLESS);
    }
  }
  return purged;
}
