// Items: shapes, fields, references, one-time codes, generators, differences and merges.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { Invalid } from "../src/errors.js";
import {
  type AmbiguousName,
  differences,
  field,
  fieldsAt,
  fieldsOf,
  findItem,
  fromStored,
  generatePassphrase,
  generatePassword,
  InvalidTotp,
  type Item,
  ItemNotFound,
  type Login,
  mainField,
  merge,
  parseTotp,
  strength,
  toStored,
  TYPES,
} from "../src/items.js";
import { itemDifferences } from "./itemVectors.js";

const VECTORS = process.env.ITEM_VECTORS ?? "../tests/items/vectors";
const CANARY = "quince-4711";

for (const file of readdirSync(VECTORS)) {
  test(`the vectors of ${file} hold`, async () => {
    const { cases } = JSON.parse(readFileSync(join(VECTORS, file), "utf-8")) as { cases: unknown[] };
    assert.ok(cases.length > 0);
    assert.deepEqual(await itemDifferences(file, cases), []);
  });
}

test("unknown members are kept at any depth, and empty ones are left out", () => {
  const raw = {
    type: "login",
    title: "GitHub",
    password: "old",
    extra: { a: 1 },
    novel: [1, { b: null }],
    __proto__x: 1,
    totp: { secret: "GE", novel: 1 },
    fields: [{ label: "x", value: "y", novel: true }],
    source: { format: "f", id: "1", novel: 2.5 },
  };
  const item = fromStored(raw) as Login;
  assert.deepEqual(toStored({ ...item, password: "new" }), { ...raw, password: "new" });
  const whole = fromStored({
    ...raw,
    urls: [],
    favorite: false,
    notes: "",
    username: null,
    subtitle: "",
    totp: { secret: "GE", digits: 6, algorithm: "sha1" },
  });
  assert.deepEqual(toStored(whole), { ...raw, totp: { secret: "GE" } });
  for (const type of TYPES) assert.deepEqual(toStored(fromStored({ type })), { type });
  const named = JSON.parse('{"type": "login", "__proto__": {"title": "x"}, "constructor": 1}') as unknown;
  assert.equal(fromStored(named).title, undefined);
  assert.deepEqual(JSON.stringify(toStored(fromStored(named))), JSON.stringify(named));
});

test("a type of tomorrow can be edited, and keeps what is not known", () => {
  const item = fromStored({ type: "starship", title: "Enterprise", tags: ["x"], warp: 9, problem: "p", document: "d" });
  assert.ok(item.type === "" && item.typeName === "starship" && item.problem === "");
  assert.deepEqual(toStored({ ...item, title: "Defiant", tags: [] }), {
    type: "starship",
    title: "Defiant",
    warp: 9,
    problem: "p",
    document: "d",
  });
});

test("what does not fit is told without its values, and written as it was", () => {
  const misfits: unknown[] = [
    { type: "login", title: "T", password: 5 },
    { type: "login", title: "T", fields: [{ label: 4 }] },
    { type: "login", title: "T", fields: { label: CANARY } },
    { type: "login", title: "T", totp: CANARY },
    { type: "file", title: "T", files: [{ name: "x", content: `!${CANARY}` }] },
    { type: "login", title: 5, tags: CANARY },
    { type: 5, title: "T" },
    { title: "T" },
    { type: null, title: "T" },
    {},
    [1],
    "text",
    null,
    3,
    new Uint8Array(1),
  ];
  for (const raw of misfits) {
    const item = fromStored(raw);
    assert.ok(item.type === "" && item.problem);
    assert.ok(!item.problem.includes(CANARY));
    assert.equal(toStored(item), raw);
    const { title } = Object(raw) as { title?: unknown };
    assert.equal(item.title, title === "T" ? "T" : undefined);
    assert.throws(
      () => toStored({ ...(fromStored({ type: "login" }) as Login), ...{ password: 5 as unknown as string } }),
      Invalid,
    );
  }
});

const LOGIN: Item = {
  type: "login",
  title: "GitHub",
  username: "ada",
  password: "hunter2",
  notes: "a note",
  urls: ["https://github.com/", "https://gist.github.com/"],
  totp: { secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" },
  fields: [
    { label: "PIN", value: "1234", type: "concealed-string" },
    { label: "answer", value: "blue", section: "First" },
    { label: "answer", value: "red", section: "Second" },
    { label: "twice", value: "1" },
    { label: "twice", value: "2" },
    { label: "username", value: "custom" },
    { label: "future", value: "x", type: "retina-scan" },
    { label: "empty", value: "" },
  ],
  files: [
    { name: "key.bin", content: "//4=" },
    { name: "a.txt", content: "w7w=" },
  ],
  credentials: [{ type: "passkey", rpId: "github.com", key: "c2VjcmV0" }],
};

test("a field is found by its name: members first, then fields, then credentials", async () => {
  const wanted: [string, string, string][] = [
    ["", "", "hunter2"],
    ["username", "", "ada"],
    ["User Name", "", "ada"],
    ["PASSWORD", "", "hunter2"],
    ["url", "", "https://github.com/"],
    ["url2", "", "https://gist.github.com/"],
    ["pin", "", "1234"],
    ["answer", "First", "blue"],
    ["answer", "second", "red"],
    ["code", "", "287082"],
    ["a.txt", "", "ü"],
    ["rpId", "", "github.com"],
    ["key", "passkey", "c2VjcmV0"],
  ];
  for (const [name, section, value] of wanted)
    assert.equal((await field(LOGIN, name, { section, now: 59 })).value, value);
  const secret = (await fieldsAt(LOGIN, 59)).filter(({ concealed }) => concealed).map(({ path }) => path);
  assert.deepEqual(secret.sort(), [
    "PIN",
    "code",
    "files/a.txt",
    "files/key.bin",
    "future",
    "passkey/key",
    "password",
    "totp",
  ]);
  assert.ok(!fieldsOf(LOGIN).some(({ name }) => name === "code"));
  const file = await field(LOGIN, "key.bin");
  assert.deepEqual([...file.data], [255, 254]);
  assert.throws(() => file.value, /files\/key\.bin is not text/);
  assert.ok(!inspect(fieldsOf(LOGIN), { depth: 9, showHidden: true }).includes("hunter2"));
  assert.deepEqual(
    TYPES.map((type) => mainField({ type } as Item)),
    ["password", "notes", "number", "", "value", "privateKey", "code", "key", "file"],
  );
});

test("a field that is not there, or several, are sentences without values", async () => {
  const refused = async (made: Promise<unknown>): Promise<string> =>
    made.then(
      () => "",
      (error: Error) => `${error.name}: ${error.message}`,
    );
  assert.match(await refused(field(LOGIN, "answer")), /^AmbiguousName: .*First\/answer, Second\/answer/);
  assert.match(await refused(field(LOGIN, "twice")), /^AmbiguousName: .*different names/);
  for (const name of ["empty", "nothing", "title"])
    assert.match(await refused(field(LOGIN, name)), new RegExp(`^FieldNotFound: .*'${name}'`));
  const broken: Item = { type: "login", password: "p", totp: { secret: "!!" } };
  assert.equal((await field(broken, "password")).value, "p");
  assert.match(await refused(field(broken, "code")), /cannot be made/);
  assert.match(await refused(field({ type: "identity", name: { given: "Ada" } })), /Say which field/);
});

test("an item is found by uid, by title, and without regard to capitals", async () => {
  const row = (uid: string, title: string) => ({ uid, value: { type: "login", title } as Login });
  const rows = [row("u1", "GitHub"), row("u2", "github"), row("u3", "u1"), row("u4", "  STRASSE Σίσυφος ")];
  assert.equal((await findItem("u1", rows)).uid, "u1");
  assert.equal((await findItem("github", rows)).uid, "u2");
  assert.equal((await findItem("straße ΣΊΣΥΦΟΣ", rows)).uid, "u4");
  await assert.rejects(
    findItem("GITHUB", rows),
    (error: AmbiguousName) =>
      /2 items are named 'GITHUB'.*\(u1\).*\(u2\)/.test(error.message) && error.candidates.join() === "u1,u2",
  );
  await assert.rejects(
    findItem("no 'thing'", rows),
    (error) => error instanceof ItemNotFound && error.message.includes(`"no 'thing'"`),
  );
  const many = Array.from({ length: 1000 }, (_, at) => row(`u${at}`, "x"));
  await assert.rejects(
    findItem("x", many),
    (error: Error) => error.message.length < 500 && /and 990 more/.test(error.message),
  );
});

test("passwords have every kind, passphrases their words, and both the bits that they say", () => {
  const kinds = [/[a-z]/, /[A-Z]/, /[0-9]/, /[!#$%&*+\-./:;=?@^_~]/];
  for (const length of [8, 20, 256]) {
    for (let turn = 0; turn < 50; turn += 1) {
      const { value } = generatePassword(length);
      assert.ok(value.length === length && kinds.every((kind) => kind.test(value)));
      assert.match(generatePassword(length, { symbols: false }).value, /^[A-Za-z0-9]+$/);
    }
  }
  assert.ok(Math.abs(generatePassword(20).bits - 126.0) < 1);
  assert.ok(Math.abs(generatePassphrase(5).bits - 5 * Math.log2(17 * 5 * 17 * 5 * 17)) < 1e-9);
  assert.deepEqual(
    generatePassphrase(6, { separator: " " })
      .value.split(" ")
      .map(({ length }) => length),
    [5, 5, 5, 5, 5, 5],
  );
  assert.equal(new Set(Array.from({ length: 200 }, () => generatePassphrase().value)).size, 200);
  for (const length of [0, 7, 257, 8.5]) assert.throws(() => generatePassword(length), /8 to 256 characters/);
  assert.throws(() => generatePassphrase(2), /3 to 32 words/);
});

test("a secret of other letters than those of base32 is refused", () => {
  for (const secret of ["0189ABCD", "ÄÖÜABCDE", "A", "ABC"]) assert.throws(() => parseTotp(secret), InvalidTotp);
});

test("every letter is as likely as any other", () => {
  const counts = new Map<string, number>();
  for (let turn = 0; turn < 400; turn += 1)
    for (const sign of generatePassword(256).value) counts.set(sign, (counts.get(sign) ?? 0) + 1);
  const expected = (400 * 256) / 80;
  assert.equal(counts.size, 80);
  const distance = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  assert.ok(distance < 140, `${distance}`); // 79 degrees of freedom: once in 30,000 runs by chance
});

test("a password that a person chose is rated", () => {
  assert.deepEqual(
    ["password1", "correct horse battery staple", generatePassphrase(5).value].map((one) => strength(one).level),
    ["weak", "fair", "fair"],
  );
  assert.equal(strength(generatePassword(20).value).level, "strong");
  assert.equal(strength("").bits, 0);
});

const told = (before: Item, after: Item): string[] =>
  differences(before, after).map(
    ({ path, concealed, before: one, after: other }) =>
      `${path}${concealed ? "*" : ""}: ${one?.value ?? "-"} > ${other?.value ?? "-"}`,
  );

test("differences are told field by field", () => {
  const after: Item = {
    ...(LOGIN as Login),
    title: "Hub",
    password: "hunter3",
    urls: ["https://github.com/"],
    favorite: true,
    files: [{ name: "a.txt", content: "w7w=" }],
    totp: { secret: "GEZDGNBVGY3TQOJQ" },
    fields: [{ label: "PIN", value: "9", type: "concealed-string" }, ...(LOGIN.fields ?? []).slice(1)],
  };
  const files = differences(LOGIN, after).filter(({ section }) => section === "files");
  assert.deepEqual(
    files.map(({ path, before, after: now }) => [path, before?.data.length, now]),
    [["files/key.bin", 2, undefined]],
  );
  assert.deepEqual(told({ ...(LOGIN as Login), files: [] }, { ...after, files: [] }), [
    "title: GitHub > Hub",
    "favorite: - > true",
    "PIN*: 1234 > 9",
    "password*: hunter2 > hunter3",
    "totp*: otpauth://totp/?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ > otpauth://totp/?secret=GEZDGNBVGY3TQOJQ",
    "urls: https://gist.github.com/ > -",
  ]);
  assert.deepEqual(told(LOGIN, LOGIN), []);
  const novel = { type: "login", novel: { a: CANARY } };
  assert.deepEqual(told(fromStored({ type: "login" }), fromStored(novel)), [`novel*: - > {"a":"${CANARY}"}`]);
  assert.deepEqual(told({ type: "identity", name: { given: "Ada" } }, { type: "identity", name: { given: "Ida" } }), [
    "name/given: Ada > Ida",
  ]);
  assert.deepEqual(told({ type: "note" }, { type: "secret" }), ["type: note > secret"]);
});

test("two that changed at the same time become one, and what clashes is told", () => {
  const base = fromStored({
    type: "login",
    title: "A",
    username: "ada",
    password: "p",
    tags: ["x", "y"],
    novel: { a: 1 },
    fields: [{ label: "PIN", value: "1" }],
  });
  const mine = {
    ...(base as Login),
    username: "eve",
    password: "m",
    tags: ["y", "m"],
    fields: [...(base.fields ?? []), { label: "own", value: "1" }],
  };
  const theirs = {
    ...(base as Login),
    title: "B",
    password: "t",
    tags: ["x", "y", "t"],
    fields: [
      { label: "PIN", value: "2" },
      { label: "new", value: "3" },
    ],
    later: true,
  } as Item;
  const { item, clashes } = merge(base, mine, theirs);
  assert.deepEqual(
    clashes.map(({ path, base: was, mine: one, theirs: other }) => [path, was?.value, one?.value, other?.value]),
    [["password", "p", "m", "t"]],
  );
  assert.deepEqual(toStored(item), {
    type: "login",
    title: "B",
    tags: ["y", "m", "t"],
    fields: [
      { label: "PIN", value: "2" },
      { label: "own", value: "1" },
      { label: "new", value: "3" },
    ],
    username: "eve",
    password: "m",
    novel: { a: 1 },
    later: true,
  });
  const chosen = merge(base, mine, theirs, () => "theirs").item as Login;
  assert.equal(chosen.password, "t");
  assert.deepEqual(merge(base, mine, mine).clashes, []);
  assert.deepEqual(toStored(merge(base, base, theirs).item), toStored(theirs));
  assert.deepEqual(toStored(merge(base, mine, base).item), toStored(mine));
  const gone = merge(base, { ...mine, password: "" }, theirs);
  assert.deepEqual(
    gone.clashes.map(({ mine: one, theirs: other }) => [one, other?.value]),
    [[undefined, "t"]],
  );
  assert.equal((gone.item as Login).password, undefined);
  assert.deepEqual(
    merge(undefined, mine, theirs)
      .clashes.map(({ path }) => path)
      .sort(),
    ["PIN", "password", "title", "username"],
  );
});

test("fields of one path are told apart, and many of them take little time", () => {
  const twice = (one: string, other: string): Item => ({
    type: "login",
    fields: [
      { label: "PIN", value: one },
      { label: "PIN", value: other },
    ],
  });
  const { clashes } = merge(twice("1", "2"), twice("3", "4"), twice("5", "6"));
  assert.deepEqual(
    clashes.map(({ path }) => path),
    ["PIN", "PIN"],
  );
  const second = clashes[1]?.key;
  const { item } = merge(twice("1", "2"), twice("3", "4"), twice("5", "6"), ({ key }) =>
    key === second ? "theirs" : "mine",
  );
  assert.deepEqual(
    item.fields?.map(({ value }) => value),
    ["3", "6"],
  );
  assert.deepEqual(
    differences(twice("1", "2"), twice("1", "3")).map(({ key }) => key),
    [second],
  );
  const many = (value: string): Item => ({
    type: "login",
    fields: Array.from({ length: 20_000 }, () => ({ label: "x", value })),
  });
  const start = process.cpuUsage();
  assert.equal(differences(many("1"), many("2")).length, 20_000);
  assert.ok(process.cpuUsage(start).user < 5_000_000);
});

test("items of different types, and those that do not fit, are taken as a whole", () => {
  const [note, secret]: Item[] = [
    { type: "note", notes: "n" },
    { type: "secret", value: "s" },
  ];
  const misfit = fromStored({ type: "login", password: 5 });
  for (const [mine, theirs] of [
    [note, secret],
    [note, misfit],
    [misfit, secret],
  ] as [Item, Item][]) {
    const found = merge(note, mine, theirs);
    const isClash: boolean = mine !== note;
    assert.equal(found.clashes.length, isClash ? 1 : 0);
    assert.deepEqual(toStored(found.item), toStored(isClash ? mine : theirs));
  }
  const identity = merge(
    { type: "identity", name: { given: "a" } },
    { type: "identity", name: { given: "b" } },
    { type: "identity", name: { given: "a", surname: "c" } },
  );
  assert.deepEqual(toStored(identity.item), { type: "identity", name: { given: "b", surname: "c" } });
});
