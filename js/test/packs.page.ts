// Packs against a plain map: random writes, deletions, reads and lists, in a database of a browser.
import { listPacked, readPacked, result, writePacked } from "../src/replica/packs.js";

const opened = (): Promise<IDBDatabase> => {
  const request = indexedDB.open("packs", 1);
  request.onupgradeneeded = () => void request.result.createObjectStore("data");
  return result(request);
};

/** What differs after each of so many random transactions: nothing, where all is well; and how many records there were. */
export async function differences(rounds: number, seed: number): Promise<[string[], number]> {
  let state = seed;
  const random = (below: number): number => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
  const database = await opened();
  const model = new Map([
    ["v", new Map<string, unknown>()],
    ["w", new Map<string, unknown>()],
  ]);
  const found: string[] = [];
  let most = 0;
  for (let round = 0; round < rounds; round += 1) {
    const store = database.transaction("data", "readwrite").objectStore("data");
    for (const [vault, records] of model) {
      const [isRandom, isAll] = [random(2) === 0, random(12) === 0];
      const changes = new Map<string, unknown>();
      for (let number = random(150); number >= 0; number -= 1) {
        const uid = isRandom ? random(100_000).toString(36) : `${round}`.padStart(5, "0") + number;
        changes.set(uid, random(4) ? { uid, round } : random(3) ? "x".repeat(random(30_000)) : undefined);
      }
      if (isAll) for (const uid of records.keys()) changes.set(uid, undefined);
      await writePacked(store, vault, changes);
      for (const [uid, value] of changes) {
        if (value === undefined) records.delete(uid);
        else records.set(uid, value);
      }
      const uids = [...records.keys(), "not there"].filter(() => random(5) === 0);
      const read = await readPacked(store, vault, uids);
      for (const uid of uids) {
        if (JSON.stringify(read.get(uid)) !== JSON.stringify(records.get(uid))) found.push(`${round}: ${vault} ${uid}`);
      }
      const listed = JSON.stringify(await listPacked(store, vault));
      const expected = [...records].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);
      if (listed !== JSON.stringify(expected)) found.push(`${round}: the list of ${vault}`);
      most = Math.max(most, records.size);
    }
  }
  const left = database.transaction("data", "readwrite").objectStore("data");
  for (const [vault, records] of model)
    await writePacked(left, vault, new Map([...records.keys()].map((uid) => [uid, undefined])));
  if (await result(left.count())) found.push("empty packs are left");
  database.close();
  return [found, most];
}
