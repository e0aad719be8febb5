// What the vectors cannot show: values that are refused, secrets that nothing shows, work that blocks nothing.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { test } from "node:test";
import { argon2id } from "../src/argon2/argon2id.js";
import { Invalid, Locked, Tampered, Unsupported } from "../src/errors.js";
import * as account from "../src/format/account.js";
import { toContent, toValue } from "../src/format/content.js";
import { newPassword } from "../src/format/derive.js";
import { normalEmail } from "../src/format/descriptor.js";
import {
  type Bytes,
  checkedCursor,
  checkedName,
  checkedVersion,
  fromText,
  items,
  join,
  list,
  NONE,
  short,
  splitItems,
  text,
  toBase64,
  toUrl,
} from "../src/format/encoding.js";
import { Keyring } from "../src/format/keyring.js";
import { newest, vaultKeys } from "../src/format/keys.js";
import { collectionKeys, sealName } from "../src/format/names.js";
import { JSON_TEXT } from "../src/format/padding.js";
import { passkeyOfSlot, passkeySlot } from "../src/format/passkey.js";
import { passkeySecret } from "../src/format/passkeySecret.js";
import { primitives, usePrimitives, webCrypto } from "../src/format/primitives.js";
import { printRecoveryKey } from "../src/format/recovery.js";
import { requireGeneration, sealBlob, sealDocument } from "../src/format/seal.js";
import { Secret } from "../src/format/secret.js";
import { Sha256 } from "../src/format/sha256.js";
import { sealWithSlots, withoutRecovery } from "../src/format/keyringSlots.js";
import { hashCheaply } from "./cheapHashing.js";

const PASSWORD = "correct horse battery staple";
const deep = (levels: number): unknown => (levels ? [deep(levels - 1)] : 1);

test("a value that JSON in another language would change is refused, and the error shows no content", () => {
  const circle: unknown[] = [];
  circle.push(circle);
  const refused: [unknown, RegExp][] = [
    [{ a: [1, 2 ** 53] }, /integer beyond 2\^53 - 1 at \['a'\]\[1\]/],
    [1e20, /integer beyond/],
    [12n, /integer beyond/],
    [{ a: NaN }, /not finite at \['a'\]/],
    [[-Infinity], /not finite at \[0\]/],
    ["\ud800", /not valid Unicode/],
    [{ "secret \udfff": 1 }, /not valid Unicode/],
    [{ a: new Uint8Array(1) }, /has bytes at \['a'\]/],
    [new Map(), /has a Map, which/],
    [{ when: new Date() }, /has a Date at \['when'\]/],
    [[undefined], /has a undefined at \[0\]/],
    [undefined, /must be bytes/],
    [() => 1, /has a function/],
    [{ [Symbol("secret")]: 1 }, /a key that is not a text/],
    [circle, /nested too deeply, or holds itself/],
    [deep(600), /nested too deeply/],
    [{ "a secret key": { b: NaN } }, /at \['…'\]\['b'\]/],
  ];
  for (const [value, sentence] of refused)
    assert.throws(
      () => toContent(value),
      (fault) => fault instanceof Invalid && sentence.test(fault.message) && !/secret/.test(fault.message),
    );
});

test("a value comes back as it was", () => {
  const values = [
    null,
    true,
    0,
    -1.5,
    1e300,
    "text 🗝",
    [1, [2]],
    { a: { __proto__: null, b: 1 }, c: [] },
    JSON.parse('{"__proto__": {"x": 1}}'),
  ];
  for (const value of values) assert.deepEqual(toValue(toContent(value)), JSON.parse(JSON.stringify(value)));
  assert.deepEqual(toValue(toContent(Uint8Array.of(1, 2))), Uint8Array.of(1, 2));
  assert.deepEqual(toValue(toContent({ a: undefined })), {});
  const read = toValue(toContent(JSON.parse('{"__proto__": {"x": 1}}'))) as object;
  assert.ok(Object.hasOwn(read, "__proto__") && !("x" in read));
});

test("what is sealed as JSON and is none is refused", () => {
  for (const spelled of ["", "{", '"\\ud800"', "1e999", "\ufeff1", "[1,]"])
    assert.throws(() => toValue({ kind: JSON_TEXT, data: text(spelled) }), Tampered);
  assert.throws(() => toValue({ kind: JSON_TEXT, data: Uint8Array.of(34, 255, 34) }), Tampered);
  assert.equal(fromText(Uint8Array.of(0xed, 0xa0, 0x80)), null);
});

/** Every spelling in which bytes could be shown. */
const spellings = (raw: Bytes): string[] => [
  toBase64(raw),
  toUrl(raw),
  [...raw].join(","),
  [...raw].join(", "),
  Buffer.from(raw).toString("hex"),
];

test("no inspection, JSON or text of keys shows a part of them", async () => {
  hashCheaply();
  const made = await account.register("ada@example.com", PASSWORD);
  const ring = made.ring.withVault("v", "name of a vault", true);
  const secret = new Secret(Uint8Array.from({ length: 32 }, (_, at) => at + 100));
  const passkey = passkeySecret("localhost", Uint8Array.of(1), secret.reveal());
  const canaries = [
    made.password.auth,
    made.password.wrap,
    ring.reveal().key,
    secret,
    ...ring.secrets("v").map(([, key]) => key),
  ];
  const hidden = canaries.flatMap((one) => spellings(one.reveal()));
  for (const thing of [made, ring, secret, passkey, made.password, await ring.vaultKeys("v")])
    for (const shown of [
      inspect(thing, { depth: 20, showHidden: true, getters: true }),
      JSON.stringify(thing),
      String(thing),
    ])
      for (const canary of hidden) assert.ok(!shown.includes(canary));
});

test("a keyring that is opened with a key that cannot be extracted changes its vaults, and not its ways in", async () => {
  hashCheaply();
  const { sealed, ring, password } = await account.register("ada@example.com", PASSWORD);
  const held = await Keyring.reopen(sealed, new Secret(await ring.reveal().key.key()));
  assert.ok(held.reveal().key.isHeld);
  const { ring: next } = await held.withVault("v", "name", true).seal();
  assert.equal(next.vault("name")?.uid, "v");
  await assert.rejects(sealWithSlots(withoutRecovery(next), undefined, password), Locked);
});

test("what the machine seals wrongly is not handed out", async () => {
  hashCheaply();
  const right = primitives();
  const keys = await vaultKeys(new Uint8Array(16), "v", [[1, new Secret(new Uint8Array(32))]], 1);
  const writers: (() => Promise<unknown>)[] = [
    () => account.register("ada@example.com", PASSWORD),
    () => sealName(keys, newest(keys), "vault", "name"),
    () => sealBlob(keys, "name", 1, toContent("blob")),
    async () => sealDocument(await collectionKeys(keys, "notes", false), "uid", 1, "value"),
  ];
  for (const [at, write] of [
    [0, writers[0]],
    [1, writers[0]],
    ...writers.slice(1).map((one) => [0, one] as const),
  ] as const) {
    let count = 0;
    usePrimitives({
      ...right,
      async encrypt(key, plaintext, associated) {
        const wrong = plaintext.slice();
        if (count++ === at) wrong[wrong.length - 1]! ^= 1; // as a fault in memory does: the box itself is whole
        return right.encrypt(key, wrong, associated);
      },
    });
    await assert.rejects(async () => write?.(), Tampered);
    assert.ok(count > at);
  }
  usePrimitives(webCrypto);
});

test("a keyring whose head and body do not fit each other is refused, also where a key holder made it", async () => {
  hashCheaply();
  const { ring } = await account.register("ada@example.com", PASSWORD);
  const { key, body } = ring.reveal();
  const { account: id, generation, slots } = ring;
  const sealed = (version: number, previous: Bytes, past: string[]): Promise<unknown> =>
    Keyring.of({ account: id, version, generation, previous, slots, digest: NONE }, key, { ...body, past }).seal();
  await assert.rejects(sealed(1, new Uint8Array(32).fill(1), []), Tampered);
  await assert.rejects(sealed(2, new Uint8Array(32), [toBase64(new Uint8Array(16))]), Tampered);
  await sealed(1, new Uint8Array(32), []);
  assert.throws(() => text("\ud800"), Invalid);
  for (const version of [0, -1, 1.5, 2 ** 53, "1"]) assert.throws(() => checkedVersion(version), Invalid);
  for (const cursor of [-1, 1.5, 2 ** 53, null]) assert.throws(() => checkedCursor(cursor), Invalid);
});

test("a recovery key with a typo is refused, and the error says where", async () => {
  const { readRecoveryKey } = await import("../src/format/recovery.js");
  const printed = await printRecoveryKey(new Secret(new Uint8Array(20).fill(7)));
  const typed = (at: number, sign: string): string => printed.slice(0, at) + sign + printed.slice(at + 1);
  const fault = async (given: string): Promise<string> =>
    readRecoveryKey(given).then(
      () => "",
      (refusal: unknown) => (refusal instanceof Invalid ? refusal.message : "another error"),
    );
  assert.match(await fault(typed(10, printed[10] === "A" ? "B" : "A")), /most likely in group 2/);
  assert.match(await fault(typed(10, "U")), /sign 2 of group 2 is in no recovery key/);
  assert.match(await fault(printed.slice(0, -1)), /group 9 has 3 signs/);
  assert.match(await fault("srv_abc"), /use it with withToken/);
  assert.equal(await fault(printed.toLowerCase().replaceAll("-", " ")), "");
});

test("Argon2id runs beside the program, which goes on meanwhile", async () => {
  let ticks = 0;
  const ticking = setInterval(() => (ticks += 1), 5);
  const made = await argon2id(text("password"), new Uint8Array(16), 65536, 3);
  clearInterval(ticking);
  assert.equal(made.length, 32);
  assert.ok(ticks >= 5, `${ticks} ticks`);
});

test("Argon2id that cannot run is an error that says what it needs", async () => {
  await assert.rejects(argon2id(text("password"), new Uint8Array(16), 2 ** 32, 3), Unsupported);
});

test("SHA-256 in pieces of any length is that of the whole", () => {
  const hash = new Sha256();
  const whole = createHash("sha256");
  for (let length = 0; length < 300; length += 7) {
    const piece = randomBytes(length);
    hash.update(piece);
    whole.update(piece);
    assert.equal(hash.hex, whole.copy().digest("hex"));
  }
  assert.equal(new Sha256().hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

test("what is no associated data of a passkey's slot names no passkey", () => {
  const [own, credential] = [new Uint8Array(16).fill(1), Uint8Array.of(1, 2, 3)];
  const good = passkeySlot(own, { rpId: "example.com", credential });
  assert.deepEqual(passkeyOfSlot(good, own), { rpId: "example.com", credential });
  const label = "slot-passkey";
  const parts = splitItems(good) ?? [];
  const bad: Bytes[] = [
    NONE,
    good.slice(0, -1),
    join(good, NONE, list(NONE)),
    list(...parts, Uint8Array.of(1)),
    list(...parts.slice(0, 3)),
    list(...parts.slice(0, 2)),
    list(...parts.slice(0, 1)),
    items(`${label}s`, own, "example.com", credential),
    items(label, own, "example.com", NONE),
    items(label, own, "", credential),
    items(label, own, "example.com", new Uint8Array(1024)),
    items(label, own, Uint8Array.of(255), credential),
  ];
  for (const one of bad) assert.equal(passkeyOfSlot(one, own), null);
  assert.equal(passkeyOfSlot(good, new Uint8Array(16)), null);
});

test("a lone surrogate is in no email, password, name or item", async () => {
  const lone = "a\ud800@b";
  assert.throws(() => normalEmail(lone), Invalid);
  assert.throws(() => newPassword(`${lone} battery staple`), Invalid);
  assert.throws(() => checkedName(lone, "name"), Invalid);
  assert.throws(() => items("seal", lone), Invalid);
});

test("a proof under an older key is refused where it follows on one under a newer key", async () => {
  const keys = async (...generations: number[]) =>
    collectionKeys(
      await vaultKeys(
        new Uint8Array(16),
        "v",
        generations.map((one) => [one, new Secret(new Uint8Array(32).fill(one))]),
        1,
      ),
      "c",
      true,
    );
  const [old, both] = [await keys(1), await keys(1, 2)];
  const seen = await sealDocument(both, "u", 1, "seen");
  const parent = await short(seen.hmac);
  await requireGeneration(seen.hmac, (await sealDocument(both, "u", 2, "newer", { parent })).hmac);
  await requireGeneration(seen.hmac, (await sealDocument(old, "u", 2, "follows on another")).hmac);
  const forged = await sealDocument(old, "u", 2, "forged", { parent });
  await assert.rejects(requireGeneration(seen.hmac, forged.hmac), Tampered);
});
