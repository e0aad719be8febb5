// A replica as an app uses it, on the server at URL; tests/js/test_live.py starts that.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { coreOf } from "../src/client.js";
import { Client, Locked } from "../src/index.js";
import { replicaFile } from "../src/node.js";
import { openReplica, type Replica } from "../src/replica.js";
import { isContentOf } from "../src/replica/contents.js";
import type { Head } from "../src/replica/records.js";
import { localOf } from "../src/replica/replica.js";
import { openLocal } from "../src/replica/unlock.js";
import { hashCheaply } from "./cheapHashing.js";

const url = process.env.URL ?? "";
hashCheaply();

/** Run a task with a new account, and its replica in a file. */
async function withReplica(task: (replica: Replica, client: Client) => Promise<void>, at = url): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "replica-"));
  const client = new Client(at);
  try {
    await client.register(`person-${randomUUID()}@example.com`, "correct horse battery staple");
    await task(await openReplica(client, replicaFile(join(folder, "replica"))), client);
  } finally {
    await client.lock();
    rmSync(folder, { recursive: true });
  }
}

/** Wait until something is so; at most 5 seconds. */
async function until(isSo: () => boolean): Promise<void> {
  for (const end = Date.now() + 5000; !isSo(); ) {
    assert.ok(Date.now() < end, `it does not come: ${isSo}`);
    await new Promise((go) => setTimeout(go, 10));
  }
}

const notesOf = async (replica: Replica) => (await replica.vault("v", { create: true })).collection("notes");

test("a change is written even if the other tabs cannot be told", () =>
  withReplica(async (replica) => {
    const channel = new BroadcastChannel("closed");
    channel.close();
    const notes = await notesOf(replica);
    localOf(replica).store.storage.tell = (changed) => channel.postMessage(changed);
    const store = notes.live();
    store.subscribe(() => undefined);
    await until(() => store.getSnapshot().isReady);
    await notes.create("one");
    await until(() => store.getSnapshot().documents.length === 1);
  }));

test("a store of a vault follows every collection of it, and no other vault", () =>
  withReplica(async (replica) => {
    const vault = await replica.vault("v", { create: true });
    const store = vault.live();
    store.subscribe(() => undefined);
    const found = (): string =>
      store
        .getSnapshot()
        .documents.map(({ collection, raw }) => `${collection} ${String(raw)}`)
        .sort()
        .join();
    await until(() => store.getSnapshot().isReady);
    const one = await vault.collection("notes").create("one");
    await vault.collection("items").create("two");
    await (await replica.vault("other", { create: true })).collection("notes").create("three");
    await until(() => found() === "items two,notes one");
    await vault.collection("notes").delete(one);
    await until(() => found() === "items two");
  }));

test("a store shows what is read so far in steps that double, and never less than it has shown", () =>
  withReplica(async (replica) => {
    const notes = await notesOf(replica);
    await notes.createMany(Array.from({ length: 300 }, (_, at) => `note ${at}`));
    const local = localOf(replica);
    const parts = local.parts.bind(local);
    local.parts = async function* (scope) {
      const all = [];
      for await (const { documents } of parts(scope)) all.push(...documents);
      for (let at = 0; at < all.length; at += 10) yield { documents: all.slice(at, at + 10), isKept: false };
    };
    const store = notes.live();
    const shown: [number, boolean][] = [];
    const look = (): void => void shown.push([store.getSnapshot().documents.length, store.getSnapshot().isReady]);
    const stop = store.subscribe(look);
    await until(() => store.getSnapshot().isReady);
    assert.deepEqual(shown, [
      [100, false],
      [200, false],
      [300, true],
    ]);
    stop();
    store.subscribe(look); // everything is read again
    await until(() => shown.length > 3);
    assert.deepEqual(shown.slice(3), [[300, true]]);
  }));

test("a kept content is used for the row that it was opened from, and for no other", () => {
  const head: Head = {
    vault: "v",
    uid: "one",
    collection: "notes",
    hmac: "sr2.proof",
    version: 2,
    createdAt: 1,
    updatedAt: 2,
    deletedAt: null,
    deleted: false,
    mine: false,
  };
  assert.ok(isContentOf(["one", 2, "notes", "sr2.proof", "value"], head));
  assert.ok(isContentOf(["one", 2, "notes", "sr2.proof", "value"], { ...head, updatedAt: 3 })); // a time is the server's word
  for (const other of [
    { uid: "two" },
    { version: 3 },
    { collection: "other" },
    { hmac: "sr2.other" },
    { hmac: null },
    { deletedAt: 5 },
  ]) {
    assert.ok(!isContentOf(["one", 2, "notes", "sr2.proof", "value"], { ...head, ...other }), JSON.stringify(other));
  }
});

test("a replica that is closed while it reads leaves no promise unhandled", async () => {
  const folder = mkdtempSync(join(tmpdir(), "replica-"));
  const client = new Client(url);
  const unhandled: unknown[] = [];
  const report = (fault: unknown): void => void unhandled.push(fault);
  process.on("unhandledRejection", report);
  try {
    await client.register(`person-${randomUUID()}@example.com`, "correct horse battery staple");
    let isWhole = false;
    for (let nth = 1; !isWhole; nth++) {
      const replica = await openReplica(client, replicaFile(join(folder, "replica")));
      const notes = await notesOf(replica);
      if (nth === 1) await notes.createMany(["one", "two"]);
      const { storage } = localOf(replica).store;
      let left = nth; // reads until it is closed
      const counted =
        <G extends unknown[], R>(read: (...given: G) => Promise<R>) =>
        async (...given: G): Promise<R> => {
          const found = await read.apply(storage, given);
          if (!--left) void replica.close();
          return found;
        };
      Object.assign(storage, { read: counted(storage.read), list: counted(storage.list) });
      const store = notes.live();
      const stop = store.subscribe(() => undefined);
      await until(() => store.getSnapshot().isReady || store.getSnapshot().error instanceof Locked);
      isWhole = store.getSnapshot().isReady;
      stop();
      await replica.close();
      await new Promise((go) => setImmediate(go)); // what is unhandled is told by now
      assert.deepEqual(unhandled, [], `closed after read ${nth}`);
      assert.ok(!isWhole || nth > 2, "it was never closed while it read");
    }
  } finally {
    process.off("unhandledRejection", report);
    await client.lock();
    rmSync(folder, { recursive: true });
  }
});

test("what is not sent can be read: new documents, changes and deletions, and nothing once it is sent", () =>
  withReplica(async (replica) => {
    const notes = await notesOf(replica);
    const [one, two] = await notes.createMany(["one", "two"]);
    assert.deepEqual((await replica.queued()).map(({ raw }) => raw).sort(), ["one", "two"]);
    await replica.sync();
    assert.deepEqual(await replica.queued(), []);
    await notes.replace(await notes.get(one?.uid ?? ""), "changed");
    await notes.delete(await notes.get(two?.uid ?? ""));
    const queued = (await replica.queued()).map(({ raw, deleted }) => `${String(raw)} ${deleted}`);
    assert.deepEqual(queued.sort(), ["changed false", "two true"]);
  }));

test("nothing that was decrypted is shown after the client is locked", () =>
  withReplica(async (replica, client) => {
    const notes = await notesOf(replica);
    const note = await notes.create("one");
    const [all, one, { undecided }] = [notes.live(), notes.liveDocument(note.uid), replica];
    let told = 0;
    all.subscribe(() => (told += 1));
    one.subscribe(() => undefined);
    undecided.subscribe(() => undefined);
    await until(() => all.getSnapshot().documents.length === 1 && one.getSnapshot().document !== undefined);
    const before = told;
    await client.lock();
    await until(() => all.getSnapshot().error instanceof Locked && one.getSnapshot().error instanceof Locked);
    assert.deepEqual([all.getSnapshot().documents, one.getSnapshot().document], [[], undefined]);
    assert.equal(told, before + 1);
  }));

test("a store that nobody follows any more forgets what it has shown when the client is locked", () =>
  withReplica(async (replica, client) => {
    const notes = await notesOf(replica);
    const note = await notes.create("one");
    const [all, one] = [notes.live(), notes.liveDocument(note.uid)];
    for (const store of [all, one]) {
      const stop = store.subscribe(() => undefined);
      await until(() => store.getSnapshot().isReady);
      stop();
    }
    assert.deepEqual([all.getSnapshot().documents[0]?.value, one.getSnapshot().document?.value], ["one", "one"]);
    // Another one reads, and nobody follows it, when the client is locked.
    const local = localOf(replica);
    const parts = local.parts.bind(local);
    local.parts = async function* (scope) {
      yield* parts(scope);
      await client.lock();
    };
    const late = notes.live();
    late.subscribe(() => undefined)();
    await until(() => [all, one, late].every((store) => store.getSnapshot().error instanceof Locked));
    assert.deepEqual(
      [all, late].map((store) => store.getSnapshot().documents),
      [[], []],
    );
    assert.equal(one.getSnapshot().document, undefined);
  }));

test("a replica does not keep a store in memory that nobody follows any more", () =>
  withReplica(async (replica) => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const notes = await notesOf(replica);
    const made = (): WeakRef<object> => {
      const store = notes.live();
      store.subscribe(() => undefined)();
      return new WeakRef(store);
    };
    const left = made();
    await until(() => {
      collect();
      return left.deref() === undefined;
    });
  }));

test("a listener that throws is reported, and the others are called", () =>
  withReplica(async (replica) => {
    const notes = await notesOf(replica);
    const store = notes.live();
    const reported: unknown[] = [];
    const fault = new Error("of a listener");
    const report = (met: unknown): void => void reported.push(met);
    process.setUncaughtExceptionCaptureCallback(report);
    process.on("unhandledRejection", report);
    const stop = store.subscribe(() => {
      throw fault;
    });
    try {
      let told = 0;
      store.subscribe(() => (told += 1));
      await until(() => told === 1);
      await notes.create("one");
      await until(() => told === 2 && reported.length === 2);
      assert.deepEqual(reported, [fault, fault]);
    } finally {
      stop();
      process.setUncaughtExceptionCaptureCallback(null);
      process.off("unhandledRejection", report);
    }
  }));

test("the stream of events is closed as soon as nobody watches", async () => {
  let open = 0;
  let isReady = false;
  const proxy = createServer((asked, answer) => {
    const isStream = asked.headers.accept === "text/event-stream";
    if (isStream) open += 1;
    const passed = request(
      new URL(asked.url ?? "", url),
      { method: asked.method, headers: asked.headers },
      (answered) => {
        answer.writeHead(answered.statusCode ?? 500, answered.headers);
        answered.pipe(answer);
        if (isStream) answered.on("data", (sent) => (isReady ||= `${sent}`.includes("event: ready")));
      },
    );
    answer.on("close", () => {
      if (isStream) open -= 1;
      passed.destroy();
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  try {
    await withReplica(
      async (replica) => {
        const ended = new AbortController();
        const watching = (async () => {
          for await (const _ of replica.watch(undefined, { signal: ended.signal }));
        })();
        await until(() => open === 1 && isReady); // it waits for the first change
        ended.abort();
        await watching;
        await until(() => open === 0);
      },
      `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    );
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test("names that an earlier release has kept in the clear are sealed, and told", () =>
  withReplica(async (replica, client) => {
    const told = [{ uid: "u", wanted: "KANARIENVOGEL", name: "KANARIENVOGEL (2)" }];
    const { store } = localOf(replica);
    await store.transaction((tables) => tables.setFact("renamed vaults", JSON.stringify(told)));
    await openLocal(coreOf(client), store.storage);
    assert.deepEqual((await replica.sync()).renamedVaults, told);
    assert.ok(!JSON.stringify(await store.storage.list("facts")).includes("KANARIENVOGEL"));
    assert.deepEqual((await replica.sync()).renamedVaults, []); // a program has had the report
  }));

test("what needs a person follows the blobs of a conflict", () =>
  withReplica(async (replica, client) => {
    const vault = await client.vault("v", { create: true });
    await vault.blob.put("mine");
    await replica.sync();
    const { store } = localOf(replica);
    const [record] = await store.vaults();
    assert.ok(record);
    await vault.blob.put("theirs", { after: await vault.blob.get() });
    await replica.sync();
    const { undecided } = replica;
    const shown = (): unknown[] => undecided.getSnapshot().blobConflicts.map(({ mine, theirs }) => [mine, theirs]);
    undecided.subscribe(() => undefined);
    await store.transaction((tables) => tables.putBlobAside(record)); // as after a restore of the server
    await until(() => shown().length === 1);
    assert.deepEqual(shown(), [["mine", "theirs"]]);
    await vault.blob.put("later", { after: await vault.blob.get() });
    await replica.sync();
    await until(() => JSON.stringify(shown()) === '[["mine","later"]]');
    await undecided.getSnapshot().blobConflicts[0]?.discard();
    await until(() => shown().length === 0);
  }));
