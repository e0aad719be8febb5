// The client as an app uses it, on the server at URL; tests/js/test_live.py starts that.
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  Client,
  type Collection,
  type Document,
  DocumentConflict,
  Invalid,
  Locked,
  type StandardSchema,
  TypeMismatch,
} from "../src/index.js";
import { hashCheaply } from "./cheapHashing.js";

const url = process.env.URL ?? "";
const PASSWORD = "correct horse battery staple";
const CANARY = "KANARIENVOGEL";
const newEmail = (): string => `person-${randomUUID()}@example.com`;

async function person(): Promise<Client> {
  const client = new Client(url);
  await client.register(newEmail(), PASSWORD);
  return client;
}

/** Everything that a console, a report in JSON or a text shows of something. */
const shown = (thing: unknown): string =>
  [inspect(thing, { depth: 9, showHidden: true }), JSON.stringify(thing), String(thing), `${[thing]}`].join("\n");

/** The one-time code of a secret in base32, now: RFC 6238. */
function oneTimeCode(secret: string): string {
  const bits = [...secret]
    .map((sign) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(sign).toString(2).padStart(5, "0"))
    .join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const digest = createHmac("sha1", key).update(step).digest();
  return String((digest.readUInt32BE((digest[19] ?? 0) & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

async function all<T>(many: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of many) found.push(one);
  return found;
}

interface Note {
  readonly title: string;
  readonly lines?: readonly string[];
}

const parse = (value: unknown): Note => {
  if (typeof value !== "object" || value === null || !("title" in value) || typeof value.title !== "string") {
    throw new TypeError(`not a note: ${JSON.stringify(value)}`);
  }
  return { title: value.title };
};

test("the five lines, with Argon2id in a worker", async () => {
  const email = newEmail();
  const client = new Client(url);
  await client.register(email, PASSWORD);
  const notes = (await client.vault("personal", { create: true })).collection("notes");
  let note = await notes.create({ title: "Hello" });
  note = await notes.replace(note, { title: "Hello again" });
  const values: unknown[] = [];
  for await (const found of notes) values.push(found.value);
  assert.deepEqual(values, [{ title: "Hello again" }]);
  assert.equal(note.version, 2);
  await client.logout();
  await assert.rejects(notes.create("late"), Locked);
  const again = new Client(url);
  await again.login(email, PASSWORD);
  assert.deepEqual(
    (await all((await again.vault("personal")).collection("notes"))).map((one) => one.uid),
    [note.uid],
  );
});

test("a collection has a type, by a function or by any validator of Standard Schema", async () => {
  hashCheaply();
  const vault = await (await person()).vault("v", { create: true });
  const schema: StandardSchema<Note> = {
    "~standard": {
      version: 1,
      async validate(value) {
        try {
          return { value: parse(value) };
        } catch {
          return { issues: [{ message: `quotes ${JSON.stringify(value)}` }] };
        }
      },
    },
  };
  const untyped = vault.collection("notes");
  for (const type of [{ parse }, schema]) {
    const notes: Collection<Note> = vault.collection<Note>("notes", type);
    const note = await notes.create({ title: "tea", lines: ["a"] });
    assert.deepEqual([note.value, note.raw], [{ title: "tea" }, { title: "tea", lines: ["a"] }]);
    assert.deepEqual((await notes.get(note.uid)).value, { title: "tea" });
    // @ts-expect-error: a value of the wrong type is refused by the compiler too
    const refused = notes.create({ name: CANARY });
    await assert.rejects(refused, (error) => error instanceof Invalid && !inspect(error).includes(CANARY));
    const strange = await untyped.create({ name: CANARY });
    const read = await notes.get(strange.uid);
    assert.deepEqual(read.raw, { name: CANARY });
    assert.throws(
      () => read.value,
      (error) => error instanceof TypeMismatch && error.uid === strange.uid && !inspect(error).includes(CANARY),
    );
    assert.equal((await all(notes)).length, 2);
    const mended = await notes.replace(read, { title: "mended" });
    assert.deepEqual(mended.value, { title: "mended" });
    assert.deepEqual((await strange.typed({ parse: (value) => inspect(value) })).value, inspect({ name: CANARY }));
    await notes.deleteMany(await all(notes));
  }
  // @ts-expect-error: neither a function nor a validator
  assert.throws(() => vault.collection("notes", {}), Invalid);
});

test("many writes are done when they are iterated, or when they are awaited", async () => {
  const notes = (await (await person()).vault("v", { create: true })).collection("notes");
  const idle = notes.createMany([1, 2, 3]);
  assert.equal((await all(notes)).length, 0);
  assert.deepEqual(
    (await idle).map((result) => result.document.value),
    [1, 2, 3],
  );
  const results = await notes.replaceMany((await all(notes)).map((note): [Document, number] => [note, 0]));
  assert.deepEqual(
    results.map((result) => [result.index, result.document.version]),
    [
      [0, 2],
      [1, 2],
      [2, 2],
    ],
  );
});

test("tasks that write at the same time are told of each other, and nothing is lost", async () => {
  const client = await person();
  const notes = (await client.vault("v", { create: true })).collection("notes");
  const note = await notes.create(0);
  const outcomes = await Promise.allSettled(Array.from({ length: 6 }, (_, number) => notes.replace(note, number)));
  const [done, ...others] = outcomes.filter((one) => one.status === "fulfilled");
  assert.ok(done && !others.length);
  for (const one of outcomes)
    if (one.status === "rejected") assert.ok(one.reason instanceof DocumentConflict, inspect(one.reason));
  const [first, second] = await Promise.all([client.vault("a", { create: true }), client.vault("b", { create: true })]);
  const read = Array.from({ length: 10 }, () => notes.get(note.uid));
  assert.deepEqual(new Set((await Promise.all(read)).map((one) => one.value)), new Set([done.value.value]));
  assert.deepEqual(
    (await client.vaults()).map((vault) => vault.uid).sort(),
    [first.uid, second.uid, (await client.vault("v")).uid].sort(),
  );
});

test("neither a console nor JSON shows a value, a key or a token", async () => {
  const client = await person();
  const vault = await client.vault(`${CANARY} vault`, { create: true });
  const notes = vault.collection(`${CANARY} notes`);
  const note = await notes.create(`${CANARY} value`);
  await vault.blob.put(`${CANARY} blob`);
  const blob = await vault.blob.get();
  const things = [
    client,
    vault,
    notes,
    vault.blob,
    blob,
    client.secondFactor,
    client.passkeys,
    notes.since(0),
    notes.trash,
    notes.createMany([]),
  ];
  for (const thing of things) {
    assert.ok(!shown(thing).includes(CANARY) && !/Bearer|ey[A-Za-z0-9]{20}/.test(shown(thing)), shown(thing));
  }
  const { collection, ...rest } = JSON.parse(JSON.stringify(note));
  assert.ok(!JSON.stringify(rest).includes(CANARY));
  assert.ok(!inspect(note, { showHidden: true }).includes(`${CANARY} value`));
  assert.equal(collection, notes.name);
  assert.equal(note.value, `${CANARY} value`);
});

test("neither a console nor JSON shows what an enrolment, recovery codes or a client of a token hold", async () => {
  const client = await person();
  const vault = await client.vault("v", { create: true });
  const token = await vault.token("agent");
  const agent = await Client.withToken(url, token);
  assert.ok(!shown([agent, await agent.vault()]).includes(token.slice(4, 20)));
  const enrolment = await client.secondFactor.enrol(PASSWORD);
  assert.match(enrolment.uri, new RegExp(enrolment.secret));
  assert.ok(!shown(enrolment).includes(enrolment.secret), shown(enrolment));
  const codes = await client.secondFactor.confirm(oneTimeCode(enrolment.secret));
  const texts = [...codes];
  assert.deepEqual([texts.length, codes.length], [10, 10]);
  for (const text of texts) assert.ok(!shown({ codes }).includes(text) && !shown(codes).includes(text));
  const more = await client.secondFactor.newRecoveryCodes(PASSWORD, { code: texts[0] });
  for (const text of more) assert.ok(!shown(more).includes(text) && !texts.includes(text));
});
