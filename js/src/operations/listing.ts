// Paginated lists of documents, checked for order and completeness.
import { DocumentNotFound, RolledBack, Tampered } from "../errors.js";
import { must } from "../format/encoding.js";
import { readProof } from "../format/seal.js";
import type { Page, Row } from "../net/decoders.js";
import { listPage } from "../net/requests/documents.js";
import type { Core } from "./core.js";
import type { KnownDocument } from "./device.js";
import { type Document, get, openRow, type Scope, verifyRow, WITHHELD, WRONG_DOCUMENT } from "./documents.js";

const ORDER = "The server's list of documents is not in order, or shows a document twice.";
export const FIRST_LIMIT = 200; // documents of a first page
const MAX_LIMIT = 2000;
const TARGET_BYTES = 4 << 20; // bytes that a page should have

/** Refuse a page that does not match its request or is out of order; the timestamp that it ends at. */
export function checkPage(
  page: Page,
  vault: string,
  collection: string | undefined,
  since: number,
  limit: number,
  deleted: boolean,
): number {
  const { documents } = page;
  if (documents.length > limit) throw new Tampered(ORDER);
  let timestamp = since;
  for (const row of documents) {
    if (row.updatedAt <= timestamp || (row.deletedAt !== null && !deleted)) throw new Tampered(ORDER);
    if (row.vaultUid !== vault || (collection !== undefined && row.collection !== collection)) {
      throw new Tampered(WRONG_DOCUMENT);
    }
    timestamp = row.updatedAt;
  }
  const isOnce = new Set(documents.map((row) => row.uid)).size === documents.length;
  if (!isOnce || page.next !== timestamp || (page.hasMore && !documents.length)) throw new Tampered(ORDER);
  return timestamp;
}

/** The page size of the next request, by the average size of documents. */
export function nextLimit({ documents }: Page, limit: number): number {
  if (!documents.length) return limit;
  const average = documents.reduce((sum, row) => sum + row.data.length, 0) / documents.length + 300;
  return Math.max(1, Math.min(MAX_LIMIT, Math.floor(TARGET_BYTES / average), limit * 4));
}

/**
 * A cursor over the documents of a scope, page by page; each document once.
 *
 * Without `since`, only live documents are returned. What this device has seen before must be among them, unless a key
 * holder has deleted or changed it meanwhile. With `trash`, only deleted documents are returned whose content is still
 * there; which those are is the server's word. A `survey` returns notices of deletion among the live documents too, and
 * nothing of it is remembered.
 */
export class Listing<T> {
  readonly #core: Core;
  readonly #since: number | undefined;
  readonly #trash: boolean;
  readonly #survey: boolean;
  #scope: Scope<T>;
  #seen = new Map<string, number>();
  readonly #given = new Map<string, number>(); // before the list began again
  #limit = FIRST_LIMIT;
  #expected: Map<string, KnownDocument> | undefined;
  /** The timestamp up to which everything was seen. */
  cursor: number;
  /** Whether there is another page. */
  more = true;

  constructor(core: Core, scope: Scope<T>, since?: number, trash = false, survey = false) {
    this.#core = core;
    this.#scope = scope;
    this.#since = since;
    this.#trash = trash;
    this.#survey = survey;
    this.cursor = since ?? 0;
  }

  /** Whether tombstones are wanted. */
  get #deleted(): boolean {
    return this.#trash || this.#since !== undefined;
  }

  /** The documents that this device has seen, which the list must therefore contain. */
  async #expectedDocuments(): Promise<Map<string, KnownDocument>> {
    const found = new Map<string, KnownDocument>();
    if (this.#trash) return found;
    for (const [uid, known] of [...this.#core.device.rows(this.#scope.vault)]) {
      const isDue = this.#since === undefined ? !known.deleted : known.updatedAt > this.#since;
      if (isDue && (await this.#scope.holds(known.collection))) found.set(uid, known);
    }
    return found;
  }

  /** The next documents; `more` says whether there is another page. */
  async page(): Promise<Document<T>[]> {
    const core = this.#core;
    if (!this.#expected) {
      this.#scope = await this.#scope.renewed(core);
      this.#expected = await this.#expectedDocuments();
    }
    const scope = this.#scope;
    const mark = core.device.mark();
    const collection = await scope.filter();
    const isStart = this.#since === undefined && !this.#seen.size;
    const page = await core.session.send(
      listPage(scope.vault, {
        collection,
        since: isStart ? undefined : this.cursor,
        limit: this.#limit,
        deleted: this.#deleted,
        trash: this.#trash,
      }),
    );
    const cursor = checkPage(page, scope.vault, collection, this.cursor, this.#limit, this.#deleted);
    const found = await this.#open(page.documents, mark);
    this.cursor = cursor;
    this.more = page.hasMore;
    this.#limit = nextLimit(page, this.#limit);
    const now = await scope.renewed(core);
    if (now !== scope) this.#beginAgain(now);
    else if (!this.more) await this.#checkMissing();
    return found;
  }

  /** The documents of a page's rows. They are decrypted at the same time, and judged in their order. */
  async #open(rows: Row[], mark: number): Promise<Document<T>[]> {
    const [core, scope] = [this.#core, this.#scope];
    const verified = new Map<Row, ReturnType<typeof verifyRow>>();
    for (const row of rows) {
      if (this.#given.get(row.uid) === row.version || !(await scope.holds(row.collection))) continue;
      if (!core.device.known(row.vaultUid, row.uid) && (await scope.isBeyond(row))) continue;
      const opened = verifyRow(core, scope, row);
      opened.catch(() => undefined); // it is awaited in its turn, unless a row before it was refused
      verified.set(row, opened);
    }
    const found: Document<T>[] = [];
    for (const row of rows) {
      if (this.#trash && (row.deletedAt === null || !row.data)) throw new Tampered(ORDER);
      if ((this.#seen.get(row.uid) ?? 0) >= row.version) throw new Tampered(ORDER);
      const opened = verified.get(row);
      if (!opened) {
        if (this.#given.get(row.uid) !== row.version) continue;
        must(row.deletedAt !== null || readProof(row.hmac).generation >= (await scope.floor()));
        this.#seen.set(row.uid, row.version);
        continue;
      }
      const shown = await openRow(core, scope, row, mark, opened, !this.#survey);
      const document = shown ?? (await get(core, scope, row.uid, true));
      const isUnwanted = document.deleted !== this.#trash && !this.#survey;
      const isLeftOut = this.#since === undefined && (isUnwanted || this.#seen.has(row.uid));
      this.#seen.set(row.uid, row.version);
      if (!isLeftOut) found.push(document);
    }
    return found;
  }

  /** The vault's key was rotated meanwhile: the collection has another name on the wire as well. */
  #beginAgain(scope: Scope<T>): void {
    for (const [uid, version] of this.#seen) this.#given.set(uid, version);
    this.#scope = scope;
    this.#seen = new Map();
    this.cursor = this.#since ?? 0;
    this.more = true;
  }

  /** Get each expected document that the list left out: it must be deleted, or changed after the list. */
  async #checkMissing(): Promise<void> {
    const [core, { vault }] = [this.#core, this.#scope];
    for (const [uid, known] of this.#expected ?? []) {
      if (this.#seen.has(uid)) continue;
      let document: Document<T>;
      try {
        document = await get(core, this.#scope, uid, true);
      } catch (error) {
        if (!(error instanceof DocumentNotFound)) throw error;
        if (!core.device.known(vault, uid)) continue; // its vault was deleted here meanwhile
        throw new RolledBack(WITHHELD);
      }
      if (document.deleted && this.#since === undefined) continue;
      if (document.version === known.version || document.updatedAt <= this.cursor) throw new RolledBack(WITHHELD);
    }
  }
}
