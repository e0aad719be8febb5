// What the client costs, measured where it runs: bench/javascript.py prints it.
import { Client } from "../src/client.js";
import { primitives } from "../src/format/primitives.js";
import { vaultKeys } from "../src/format/keys.js";
import { collectionKeys } from "../src/format/names.js";
import { toContent } from "../src/format/content.js";
import { DOCUMENT, openDocument, sealContent } from "../src/format/seal.js";
import { Secret } from "../src/format/secret.js";
import { newUid } from "../src/operations/core.js";
import { openReplica, type ReplicaPlace, unlockReplica } from "../src/replica.js";

const VALUE = { title: "A note", text: "x".repeat(1000) };

/** Microseconds that something takes, when nothing disturbs it. */
async function best(work: () => Promise<unknown>, number = 200, repeat = 15): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < repeat; round += 1) {
    const began = performance.now();
    for (let at = 0; at < number; at += 1) await work();
    least = Math.min(least, (performance.now() - began) / number);
  }
  return least * 1000;
}

/** Seal and open one document of about 1 KB, in microseconds. */
export async function sealing(): Promise<{ seal: number; open: number }> {
  const uid = newUid(0);
  const random = (length: number) => primitives().random(length);
  const keys = await collectionKeys(await vaultKeys(random(16), uid, [[1, new Secret(random(32))]], 1), "notes", true);
  const content = toContent(VALUE);
  const sealed = await sealContent(keys, DOCUMENT, uid, 1, content);
  const [collection] = keys.wires;
  const row = { uid, vaultUid: uid, collection, ...sealed, version: 1, createdAt: 0, updatedAt: 0, deletedAt: null };
  const seal = await best(() => sealContent(keys, DOCUMENT, uid, 1, content));
  return { seal, open: await best(() => openDocument(keys, row)) };
}

/** Milliseconds of a first sync, of reading everything from the device afterwards, and of an unlock without a server. */
export async function syncing(
  url: string,
  email: string,
  password: string,
  place: string | ReplicaPlace,
  count: number,
) {
  const client = new Client(url);
  await client.login(email, password);
  let replica = await openReplica(client, place);
  let began = performance.now();
  const { pulled } = await replica.sync();
  const sync = performance.now() - began;
  if (pulled !== count) throw new Error(`${pulled} documents came, and not ${count}`);
  began = performance.now();
  let read = 0;
  for await (const _ of await replica.vault("large")) read += 1;
  const all = performance.now() - began;
  if (read !== count) throw new Error(`${read} documents are here, and not ${count}`);
  await replica.close();
  const again = new Client(url);
  began = performance.now();
  await unlockReplica(again, place, password);
  const unlock = performance.now() - began;
  replica = await openReplica(again, place);
  await replica.close();
  return { sync, read: all, unlock };
}
