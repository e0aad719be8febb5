// The size of requests: what a document needs, and what the server accepts.
import { PayloadTooLarge } from "../errors.js";
import { MOST_VERSION } from "../format/encoding.js";
import type { Sealed } from "../format/seal.js";
import type { Operation } from "../net/requests/documents.js";
import type { Tables } from "./tables.js";

const FACT = "max body bytes";
const LEAST = 1024; // no server has a lower limit
const AROUND = 4096; // bytes of a request besides the data of one document, at most
const DELETION = 100; // bytes of the operation that follows on a notice of deletion, at most

/** The size of a batch's body, in bytes. */
export const sizeOf = (operations: readonly Operation[]): number =>
  new TextEncoder().encode(JSON.stringify({ operations })).length;

/** The size of a batch with one document alone, in the longest form that it can take. */
function singleSize(uid: string, collection: string, { data, hmac }: Sealed): number {
  const [version, newVersion] = [MOST_VERSION, MOST_VERSION];
  const create: Operation = { op: "create", collection, data: "", hmac, uid, newVersion };
  const put: Operation = { op: "put", uid, data: "", hmac, version, newVersion };
  return data.length + Math.max(sizeOf([create]), sizeOf([put]));
}

/** The largest request that the server accepts, as far as this replica knows. */
export class RequestLimit {
  maxBytes: number | undefined;
  /** Whether the server was asked since the replica was opened. */
  asked = false;

  /** What the replica remembers. */
  async load(tables: Tables): Promise<void> {
    const known = await tables.fact(FACT);
    this.maxBytes = known === undefined ? undefined : Number(known);
  }

  /** Remember what the server says, unless no server has such a limit. */
  learn(tables: Tables, maxBytes: unknown): void {
    if (!Number.isSafeInteger(maxBytes) || (maxBytes as number) < LEAST || maxBytes === this.maxBytes) return;
    this.maxBytes = maxBytes as number;
    tables.setFact(FACT, `${this.maxBytes}`);
  }

  /** Refuse a document that the server would not accept for its size. */
  require(uid: string, wire: string, sealed: Sealed): void {
    const limit = this.maxBytes;
    if (limit === undefined || sealed.data.length + AROUND <= limit) return;
    const size = singleSize(uid, wire, sealed);
    if (size > limit) throw new PayloadTooLarge(tooLarge(size, limit), { limit, size });
  }

  /** Whether the server accepts a notice of deletion, as far as its size goes. */
  takesDeletion(uid: string, wire: string, sealed: Sealed): boolean {
    return this.maxBytes === undefined || singleSize(uid, wire, sealed) + DELETION <= this.maxBytes;
  }
}

const spelled = (count: number): string => count.toLocaleString("en-US");

/** The sentence for a value that the server does not accept for its size. */
export const tooLarge = (size: number, limit: number): string =>
  `This document needs a request of ${spelled(size)} bytes, encrypted and padded, and the server accepts at most ` +
  `${spelled(limit)}. Make it smaller, or split it.`;
