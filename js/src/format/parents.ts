// Parents: whether a newer row knew of what this device has seen. Each row names, by a hash, the row that it follows
// on. What `hmac` (of blobs: `data`) spells alone proves the chain.
import { Tampered } from "../errors.js";
import { type Bytes, equal, isZero, short, toUrl } from "./encoding.js";

/** How a newer row stands to the one that was seen. */
export type Descent = "follows" | "forked" | "gap";
/** A version and its text: `hmac` of a document, `data` of a blob. */
export type Link = readonly [version: number, text: string];
/** The generation and the parent that a text names. */
export interface Lineage {
  readonly generation: number;
  readonly parent: Bytes;
}
/** Reads the lineage of a text. */
export type Reader = (text: string) => Lineage;

const hash = async (text: string): Promise<string> => toUrl(await short(text));

/** Whether a newer row follows on the one that was seen directly, and not under an older key. */
export async function follows(newest: string, seen: string, read: Reader): Promise<boolean> {
  const { generation, parent } = read(newest);
  return equal(parent, await short(seen)) && generation >= read(seen).generation;
}

/** The links by what names them. A text that spells nothing can be named by no row. */
async function known(history: Iterable<Link>): Promise<Map<string, Link>> {
  const found = new Map<string, Link>();
  for (const link of history) {
    try {
      found.set(await hash(link[1]), link);
    } catch (fault) {
      if (!(fault instanceof Tampered)) throw fault;
    }
  }
  return found;
}

/**
 * Follow the parents from a newer row down to the one that was seen, through what the server has kept.
 *
 * A text is believed only because the row after it names its hash. The versions of `history` are the server's word,
 * and only tell a gap from a fork. Whoever knew of a row had its key: an older one is somebody's who was shut out.
 */
export async function trace(newest: Link, seen: Link, history: Iterable<Link>, read: Reader): Promise<Descent> {
  let [lowest] = newest;
  let { generation, parent } = read(newest[1]);
  const [left, wanted] = [await known(history), await hash(seen[1])];
  if (newest[1] === seen[1]) return "follows"; // the tombstone of a notice that was seen: a proof is good for one version
  if (generation < read(seen[1]).generation) return "forked";
  for (let at = toUrl(parent); at !== wanted; at = toUrl(parent)) {
    if (isZero(parent) || lowest <= seen[0] + 1) return "forked";
    const link = left.get(at);
    if (!link) return "gap";
    left.delete(at);
    lowest = Math.min(lowest, link[0]);
    ({ parent } = read(link[1]));
  }
  return "follows";
}

/** What `trace` says of each link of a history, with one walk along the parents. */
export async function traceAll(newest: Link, history: readonly Link[], read: Reader): Promise<Descent[]> {
  let [lowest] = newest;
  const { generation, parent: first } = read(newest[1]);
  const [links, reached] = [await known(history), new Set([await hash(newest[1])])];
  let parent = first;
  for (let link = links.get(toUrl(parent)); link && !reached.has(toUrl(parent)); link = links.get(toUrl(parent))) {
    reached.add(toUrl(parent));
    lowest = Math.min(lowest, link[0]);
    ({ parent } = read(link[1]));
  }
  return Promise.all(
    history.map(async ([version, text]) => {
      if (read(text).generation > generation) return "forked";
      if (reached.has(await hash(text))) return "follows";
      return isZero(parent) || lowest <= version + 1 ? "forked" : "gap";
    }),
  );
}
