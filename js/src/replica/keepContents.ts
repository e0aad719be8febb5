// Keeping the contents of documents that were opened, for the next time that they are shown: see contents.ts.
import { sealBox } from "../format/box.js";
import { digest, KEY, text, toUrl } from "../format/encoding.js";
import { JSON_TEXT, pad } from "../format/padding.js";
import { primitives } from "../format/primitives.js";
import type { Document, Scope } from "../operations/documents.js";
import { contentsKey, contentsLabel, type KeptContent, placeOf } from "./contents.js";
import type { Local } from "./local.js";
import type { Tables } from "./tables.js";

const MOST = 256; // contents of a box
const CHARACTERS = 1 << 18; // that a box should have at the most; one content alone may have more
const ALL = 50_000; // contents of a place
const TOGETHER = 8; // boxes that are written in one transaction

/**
 * Keep the contents of these documents, which are all of a place. Boxes whose documents are the same stay as they are.
 *
 * A box holds the contents of neighbouring uids, from the one in its key on, as a pack does.
 */
export async function keepContents(
  local: Local,
  given: Scope<unknown>,
  documents: readonly Document<unknown>[],
): Promise<void> {
  const { core, store } = local;
  const { ring } = core;
  if (!ring) return;
  const scope = await given.renewed(core);
  const { vault } = scope;
  const { generation } = ring;
  const [place, key] = [await placeOf(scope), await contentsKey(ring)];
  const before = new Map((await store.contents(vault, place)).map((record) => [record.uid, record]));
  let changes: ((tables: Tables) => void)[] = [];
  const write = async (least: number): Promise<void> => {
    if (changes.length < least) return;
    const now = changes;
    changes = [];
    await store.transaction(async (tables) => {
      if (await tables.vault(vault)) for (const change of now) change(tables); // it may be deleted by now
    });
  };
  for (const former of (await scope.own())?.wires.slice(1) ?? []) {
    // the names of the collection under keys of before a rotation
    for (const record of await store.contents(vault, former)) changes.push((tables) => tables.dropContents(record));
  }
  for (const [low, group] of groups(
    [...before.keys()],
    place,
    documents.filter((one) => local.isSmall(one)).slice(0, ALL),
  )) {
    const known = before.get(low);
    if (known && known.proofs === (await proofsOf(generation, group))) continue;
    if (known) changes.push((tables) => tables.dropContents(known));
    for (const part of parts(group)) {
      const at = { vault: store.contentsIn(vault), uid: part[0] === group[0] ? low : `${place}\n${part[0]?.uid}` };
      const content = { kind: JSON_TEXT, data: text(JSON.stringify(part.map(contentOf))) };
      const box = await sealBox(key, primitives().random(KEY), pad(content), contentsLabel(ring, at));
      const record = { ...at, proofs: await proofsOf(generation, part), box };
      changes.push((tables) => tables.putContents(record));
      await write(TOGETHER);
    }
  }
  await write(1);
}

const contentOf = ({ uid, version, wire, proof, raw }: Document<unknown>): KeptContent => [
  uid,
  version,
  wire,
  proof,
  raw,
];

/** What tells whether a box has the contents of these documents, under the newest key. */
const proofsOf = async (generation: number, documents: readonly Document<unknown>[]): Promise<string> =>
  toUrl(await digest(JSON.stringify([generation, ...documents.map(({ proof }) => proof)])));

/** The documents of each box, by its key, in the order of their uids. */
function groups(
  keys: readonly string[],
  place: string,
  documents: Document<unknown>[],
): Map<string, Document<unknown>[]> {
  const found = new Map<string, Document<unknown>[]>(keys.map((key) => [key, []]));
  let at = 0;
  for (const document of documents.sort((one, other) => (one.uid < other.uid ? -1 : 1))) {
    while (at + 1 < keys.length && (keys[at + 1] as string) <= `${place}\n${document.uid}`) at += 1;
    const key = keys[at] ?? `${place}\n`;
    const own = found.get(key);
    if (own) own.push(document);
    else found.set(key, [document]);
  }
  return found;
}

/** Documents in parts that fit into a box each. */
function parts(documents: readonly Document<unknown>[]): Document<unknown>[][] {
  const found: Document<unknown>[][] = [];
  let size = 0;
  for (const document of documents) {
    const own = JSON.stringify(document.raw).length;
    const last = found.at(-1);
    if (last && last.length < MOST && size + own <= CHARACTERS) last.push(document);
    else found.push([document]);
    size = found.at(-1)?.length === 1 ? own : size + own;
  }
  return found;
}
