// Many writes in batches: create, replace and delete, a result for each.
//
// A batch is stored as a whole or not at all, and a lost response is asked for again: what is stored already is
// recognised by its proof, so nothing is written twice. If some operations of a batch are refused, these get their
// errors and the others are sent again without them.
import {
  BatchConflict,
  DocumentConflict,
  DocumentNotFound,
  Invalid,
  KeyringConflict,
  PayloadTooLarge,
  type Refusal,
  Tampered,
  UidTaken,
} from "../errors.js";
import { EMPTY, toContent } from "../format/content.js";
import { checkedUid, short } from "../format/encoding.js";
import type { Content } from "../format/padding.js";
import { trace } from "../format/parents.js";
import { DELETION, DOCUMENT, readProof, sealContent, type Sealed } from "../format/seal.js";
import type { Row } from "../net/decoders.js";
import { batch as batchCall, type Operation } from "../net/requests/documents.js";
import { type Core, newUid } from "./core.js";
import { readHistory } from "./descent.js";
import {
  checkedDocument,
  checkStored,
  type Document,
  get,
  recordWritten,
  type Scope,
  wireCollection,
  withCiphertext,
} from "./documents.js";
import { NO_NEWER, reload } from "./keyrings.js";
import { encode } from "./valueTypes.js";

const MOST_OPERATIONS = 500;
const MOST_CHARACTERS = 2 << 20;
const UNEXPLAINED = "The server refused a batch and does not say why.";
const UIDS = { uids: "must be as many as the values" };

/** Values that are there, or that come one by one. */
export type Many<T> = Iterable<T> | AsyncIterable<T>;

/** What became of one item. */
export class WriteResult<T = unknown> {
  /** The place of the item. */
  readonly index: number;
  readonly uid: string;
  /** Why it was refused; undefined if it was not. */
  readonly error: Refusal | undefined;
  readonly #document: Document<T> | undefined;

  /** Made by `createMany`, `replaceMany` and `deleteMany`. */
  constructor(index: number, uid: string, found: Document<T> | Refusal) {
    this.index = index;
    this.uid = uid;
    if (found instanceof Error) this.error = found;
    else this.#document = found;
  }

  /** The document as it was written; throws the error if the item was refused. */
  get document(): Document<T> {
    if (this.#document) return this.#document;
    throw this.error ?? new DocumentNotFound();
  }
}

/** One item, sealed. `base` is the version that it replaces, 0 for none. */
interface Write {
  readonly index: number;
  readonly uid: string;
  readonly wire: string;
  readonly base: number;
  readonly content: Content;
  readonly sealed: Sealed;
  readonly deletes: boolean;
  readonly prepare: Prepare;
}

/** Seals an item, or refuses it. */
type Prepare = (index: number, scope: Scope<unknown>) => Promise<Write>;
/** An item that is to be written. */
export type Item = readonly [uid: string, prepare: Prepare];

/** New documents. */
export async function* creations(values: Many<unknown>, uids?: Many<string>): AsyncGenerator<Item, void, undefined> {
  const given = uids === undefined ? undefined : each(uids);
  for await (const value of values) {
    const next = await given?.next();
    if (next?.done) throw new Invalid(UIDS);
    const uid = next?.value ?? newUid();
    const prepare: Prepare = async (index, scope) => {
      const keys = await scope.writeKeys();
      const own = checkedUid(uid);
      const content = await encode(scope.type, value);
      const sealed = await sealContent(keys, DOCUMENT, own, 1, content);
      return { index, uid: own, wire: keys.wires[0], base: 0, content, sealed, deletes: false, prepare };
    };
    yield [uid, prepare];
  }
  if (given && !(await given.next()).done) throw new Invalid(UIDS);
}

async function* each<T>(many: Many<T>): AsyncGenerator<T, void, undefined> {
  yield* many;
}

/** Other values in the place of those that were seen; with `raw`, as they are stored. */
export async function* replacements(
  changes: Many<readonly [Document<unknown>, unknown]>,
  raw = false,
): AsyncGenerator<Item, void, undefined> {
  for await (const change of changes) {
    if (!Array.isArray(change) || change.length !== 2) {
      throw new Invalid({ changes: "must be pairs of a Document and its new value" });
    }
    const [document, value] = change;
    yield existing(document, DOCUMENT, (scope) => encode(raw ? undefined : scope.type, value));
  }
}

/** Deletions of documents that were seen. */
export async function* deletions(wanted: Many<Document<unknown>>): AsyncGenerator<Item, void, undefined> {
  for await (const document of wanted)
    yield existing(document, DELETION, () => (document.purged ? EMPTY : toContent(document.raw)));
}

function existing(
  given: unknown,
  kind: number,
  contentOf: (scope: Scope<unknown>) => Content | Promise<Content>,
): Item {
  const document = checkedDocument(given);
  const { uid, version: base, proof } = document;
  const prepare: Prepare = async (index, scope) => {
    const content = await contentOf(scope);
    const wire = await wireCollection(scope, document);
    const place = { parent: await short(proof), wire };
    const sealed = await sealContent(await scope.key(wire), kind, uid, base + 1, content, place);
    return { index, uid, wire, base, content, sealed, deletes: kind === DELETION, prepare };
  };
  return [uid, prepare];
}

function operationsOf({ uid, wire, base, sealed, deletes }: Write): Operation[] {
  if (!base) return [{ op: "create", collection: wire, ...sealed, uid }];
  const put: Operation = { op: "put", uid, ...sealed, version: base };
  return deletes ? [put, { op: "delete", uid, version: base + 1 }] : [put];
}

/** A run over many items, batch by batch; the items are taken as they are needed. */
export class BatchWrites<T> {
  readonly #core: Core;
  readonly #items: AsyncIterator<Item, void>;
  #scope: Scope<T>;
  #held: Item | undefined; // taken, and not in the batch before
  #count = 0;
  /** Whether there is another batch. */
  more = true;

  constructor(core: Core, scope: Scope<T>, items: AsyncIterator<Item, void>) {
    this.#core = core;
    this.#scope = scope;
    this.#items = items;
  }

  /** Write the next batch; the results in the order of the items. */
  async page(): Promise<WriteResult<T>[]> {
    this.#scope = await this.#scope.renewed(this.#core);
    const [batch, results] = await this.#nextBatch();
    results.push(...(await this.#send(batch)));
    return results.sort((one, other) => one.index - other.index);
  }

  /** End the items, which are not taken any more. */
  async close(): Promise<void> {
    await this.#items.return?.();
  }

  /** The next items, sealed; and the results of those that cannot be. */
  async #nextBatch(): Promise<[Write[], WriteResult<T>[]]> {
    const batch: Write[] = [];
    const refused: WriteResult<T>[] = [];
    const uids = new Set<string>();
    let [operations, size] = [0, 0];
    for (let item = this.#held ?? (await this.#next()); item; item = await this.#next()) {
      this.#held = item;
      try {
        const write = await item[1](this.#count, this.#scope);
        operations += write.deletes ? 2 : 1;
        size += write.sealed.data.length + 400;
        const isTooMuch = batch.length && (operations > MOST_OPERATIONS || size > MOST_CHARACTERS);
        // What is refused must be so for what was stored before the batch.
        if (isTooMuch || uids.has(write.uid)) return [batch, refused];
        batch.push(write);
        uids.add(write.uid);
      } catch (error) {
        if (!(error instanceof Invalid || error instanceof DocumentNotFound)) throw error;
        refused.push(new WriteResult(this.#count, item[0], error));
      }
      this.#held = undefined;
      this.#count++;
    }
    this.more = false;
    return [batch, refused];
  }

  async #next(): Promise<Item | undefined> {
    const { done, value } = await this.#items.next();
    return done ? undefined : value;
  }

  /** Send a batch; if it is too large, in halves, and if some are refused, without these. */
  async #send(batch: Write[]): Promise<WriteResult<T>[]> {
    const results: WriteResult<T>[] = [];
    const core = this.#core;
    while (batch.length) {
      const operations = batch.map(operationsOf);
      const mark = core.device.mark();
      let rows: Row[];
      try {
        const call = batchCall(this.#scope.vault, operations.flat(), this.#scope.keyring);
        ({ results: rows } = await core.session.send(call));
      } catch (error) {
        if (error instanceof KeyringConflict) {
          batch = await this.#sealedAnew(batch); // a key may have been rotated
        } else if (error instanceof BatchConflict) {
          const failed = failedOf(batch, operations, error);
          for (const write of batch) if (failed.has(write.index)) results.push(await this.#settle(write));
          batch = batch.filter((write) => !failed.has(write.index));
        } else if (error instanceof PayloadTooLarge) {
          const [only] = batch;
          if (batch.length === 1 && only) return [...results, new WriteResult(only.index, only.uid, error)];
          const half = batch.length >> 1;
          results.push(...(await this.#send(batch.slice(0, half))));
          batch = batch.slice(half);
        } else {
          throw error;
        }
        continue;
      }
      return [...results, ...(await this.#stored(batch, operations, rows, mark))];
    }
    return results;
  }

  async #sealedAnew(batch: Write[]): Promise<Write[]> {
    const was = this.#scope;
    await reload(this.#core);
    this.#scope = await was.renewed(this.#core);
    if (this.#scope.keyring === was.keyring) throw new Tampered(NO_NEWER);
    if ((await this.#scope.generation()) === (await was.generation())) return batch;
    return Promise.all(batch.map((write) => write.prepare(write.index, this.#scope)));
  }

  /** The results of a batch that was stored, if the server says exactly what was sent. */
  async #stored(batch: Write[], operations: Operation[][], rows: Row[], mark: number): Promise<WriteResult<T>[]> {
    if (rows.length !== operations.flat().length) {
      throw new Tampered("The server did not answer every operation of a batch.");
    }
    const { vault } = this.#scope;
    const results: WriteResult<T>[] = [];
    let at = 0;
    for (const { index, uid, wire, base, content, sealed, deletes } of batch) {
      let row = rows[at++] as Row;
      checkStored(row, sealed, vault, wire, uid, base + 1);
      if (deletes) {
        row = withCiphertext(rows[at++] as Row, sealed);
        checkStored(row, sealed, vault, wire, uid, base + 2, true);
      }
      const document = await recordWritten(this.#core, this.#scope, row, content, mark, deletes);
      results.push(new WriteResult(index, uid, document));
    }
    return results;
  }

  /** The result of an item that was refused: done, if an attempt without a response has stored it. */
  async #settle(write: Write): Promise<WriteResult<T>> {
    const { index, uid, base } = write;
    const result = (found: Document<T> | Refusal): WriteResult<T> => new WriteResult(index, uid, found);
    let now: Document<T>;
    try {
      now = await get(this.#core, this.#scope, uid, true);
    } catch (error) {
      if (!(error instanceof DocumentNotFound)) throw error;
      return result(base ? error : new UidTaken());
    }
    if (await this.#wasStored(write, now)) return result(now);
    if (!base) return result(new UidTaken(now.version, now.updatedAt));
    if (now.version !== base) return result(new DocumentConflict(now.version, now.updatedAt));
    if (now.purged) return result(new DocumentNotFound());
    throw new Tampered(UNEXPLAINED);
  }

  /** Whether the document that is there now is this write, or follows on it. */
  async #wasStored({ uid, base, sealed, deletes }: Write, now: Document<T>): Promise<boolean> {
    if (now.proof === sealed.hmac) return now.deleted || !deletes;
    if (now.version <= base + 1) return false;
    const history = await readHistory(this.#core, this.#scope.vault, 0, uid);
    const links = history.map(([, link]) => link);
    return (await trace([now.version, now.proof], [base + 1, sealed.hmac], links, readProof)) === "follows";
  }
}

/** The indexes of the items whose operations made the server refuse the batch. */
function failedOf(batch: Write[], operations: Operation[][], { details }: BatchConflict): Set<number> {
  const owners = batch.flatMap((write, at) => (operations[at] ?? []).map(() => write.index));
  const named: unknown = details?.operations;
  const failed = new Set<number>();
  for (const operation of Array.isArray(named) ? named : []) {
    const index: unknown = operation?.index;
    const owner = typeof index === "number" ? owners[index] : undefined;
    if (owner !== undefined) failed.add(owner);
  }
  if (!failed.size) throw new Tampered(UNEXPLAINED);
  return failed;
}
