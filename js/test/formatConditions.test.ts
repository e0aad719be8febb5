// Conditions of the format that no vector reaches: what programs pass, what keyrings refuse to become, what is damaged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid, Locked, Tampered, Unsupported, VaultAlreadyExists } from "../src/errors.js";
import * as account from "../src/format/account.js";
import { toContent, toValue } from "../src/format/content.js";
import { sealBox } from "../src/format/box.js";
import {
  type Bytes,
  checkedCursor,
  checkedInteger,
  checkedText,
  compare,
  fromBase64,
  fromUrl,
  isObject,
  items,
  join,
  short,
  splitItems,
  text,
  toBase64,
} from "../src/format/encoding.js";
import { Keyring, readHead } from "../src/format/keyring.js";
import { type Body, encodeBody } from "../src/format/keyringBody.js";
import { deriveKey, newest, vaultKeys } from "../src/format/keys.js";
import { collectionKeys } from "../src/format/names.js";
import { JSON_TEXT, pad, RAW } from "../src/format/padding.js";
import { follows, traceAll } from "../src/format/parents.js";
import { usePrimitives, webCrypto } from "../src/format/primitives.js";
import { keyPair, openSealed, sealTo } from "../src/format/publicBox.js";
import { printRecoveryKey, readRecoveryKey } from "../src/format/recovery.js";
import { blobLineage, noticeVersion, readProof, sealDeletion, sealDocument } from "../src/format/seal.js";
import { Secret } from "../src/format/secret.js";
import { readToken, spellToken } from "../src/format/tokens.js";
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
const made = await account.register("ada@example.com", "correct horse battery staple");

test("bytes in a buffer of their own are bytes, and none within JSON", () => {
  const { buffer } = Uint8Array.of(1, 2);
  const content = toContent(buffer);
  assert.deepEqual([content.kind, toValue(content)], [RAW, Uint8Array.of(1, 2)]);
  new Uint8Array(buffer)[0] = 9;
  assert.deepEqual(toValue(content), Uint8Array.of(1, 2));
  assert.throws(
    () => toContent({ a: buffer }),
    (fault) => fault instanceof Invalid && /has bytes at \['a'\]/.test(fault.message),
  );
});

test("half of a surrogate pair is in no text of JSON, however it is spelled", () => {
  for (const spelled of ['"\\udbff"', '{"\\uDABC":1}', '["\\udfff\\udbff"]'])
    assert.throws(() => toValue({ kind: JSON_TEXT, data: text(spelled) }), Tampered);
  assert.equal(toValue({ kind: JSON_TEXT, data: text('"\\udbff\\udfff"') }), "\u{10ffff}");
});

test("what is of another type than it must be is refused", () => {
  for (const one of [5, null, undefined, {}]) {
    assert.throws(() => fromUrl(one), Tampered);
    assert.throws(() => fromBase64(one), Tampered);
    assert.throws(() => checkedText(one, "name"), Invalid);
  }
  for (const one of ["1", 1.5, NaN, null, undefined]) assert.throws(() => checkedInteger(one, "limit"), Invalid);
  assert.deepEqual([checkedInteger(-5, "limit"), checkedCursor(0), checkedCursor(7)], [-5, 0, 7]);
  for (const one of [[], null, "text", 1]) assert.equal(isObject(one), false);
  assert.equal(isObject({}), true);
});

test("numbers are compared as numbers, and texts by their code points", () => {
  assert.ok(compare(9, 10) < 0 && compare(10, 9) > 0 && compare(3, 3) === 0);
  assert.ok(compare("\u{ffff}", "\u{10000}") < 0); // by units of UTF-16 it is the other way round
});

test("a list whose last item is cut off is none", () => {
  assert.equal(splitItems(Uint8Array.of(0, 0, 0, 2, 1)), null);
  assert.equal(splitItems(Uint8Array.of(0, 0, 0)), null);
  assert.deepEqual(splitItems(Uint8Array.of(0, 0, 0, 1, 1)), [Uint8Array.of(1)]);
});

test("the directory has each name and each uid once, and changes only what is in it", () => {
  const ring = made.ring.withVault("u", "name", true);
  assert.throws(() => ring.withVault("other", "name", true), VaultAlreadyExists);
  assert.throws(() => ring.withVault("u", "other", true), VaultAlreadyExists);
  assert.throws(() => ring.withEntry("other", { made: true }), Invalid);
  assert.equal(ring.entry("u")?.name, "name");
});

test("a keyring is sealed with its slots, and within its bound", async () => {
  const { key, body } = made.ring.reveal();
  const { account: id, version, generation, previous } = made.ring;
  const bare = Keyring.of(
    { account: id, version, generation, previous, slots: new Uint8Array(0), digest: new Uint8Array(0) },
    key,
    body,
  );
  await assert.rejects(bare.seal(), Locked);
  const vaults = Array.from({ length: 600 }, (_, at) => ({
    uid: `${at}`.padStart(36, "0"),
    name: `${at}`.padEnd(255, "x"),
    sealed: true,
    made: true,
    floor: 1,
    keys: [{ generation: 1, key: toBase64(new Uint8Array(32)) }],
  }));
  const full = (sentence: RegExp) => (fault: unknown) => fault instanceof Invalid && sentence.test(fault.message);
  await assert.rejects(made.ring.next({ vaults }).seal(), full(/the directory of vaults is full/));
  // The same, made by a key holder who does not look at the bound.
  const { raw } = readHead(made.sealed);
  const sealing = await deriveKey(await key.key(), "HKDF", "keyring");
  const by = async (content: object): Promise<string> =>
    toBase64(
      join(
        raw,
        await sealBox(sealing, new Uint8Array(32), pad(encodeBody({ ...body, ...content })), items("keyring", raw)),
      ),
    );
  assert.equal((await Keyring.reopen(await by({ vaults: vaults.slice(0, 100) }), key)).vaults.length, 100);
  await assert.rejects(Keyring.reopen(await by({ vaults }), key), Tampered);
});

test("a keyring that lacks something is not sent", async () => {
  const id = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6";
  const ring = made.ring.withVault(id, "personal", true);
  assert.equal((await ring.seal()).ring.entry(id)?.name, "personal");
  // An encoder that loses a part, and damages nothing: the box opens, and what is in it is well formed.
  const { stringify } = JSON;
  const without = (lost: (body: Body) => Partial<Body>) => (value: unknown) =>
    stringify(isObject(value) && "vaults" in value ? { ...value, ...lost(value as unknown as Body) } : value);
  const losses: ((body: Body) => Partial<Body>)[] = [
    () => ({ vaults: [] }),
    ({ vaults }) => ({ vaults: vaults.map((vault) => ({ ...vault, name: "person" })) }),
    ({ vaults }) => ({
      vaults: vaults.map(({ uid, name, sealed, floor, keys }) => ({ uid, name, sealed, floor, keys, made: true })),
    }),
    () => ({ slots: [] }),
  ];
  for (const lost of losses) {
    JSON.stringify = without(lost);
    try {
      await assert.rejects(ring.seal(), (fault) => fault instanceof Tampered && /nothing was sent/.test(fault.message));
    } finally {
      JSON.stringify = stringify;
    }
  }
});

test("a keyring follows on none of its own version or a later one, and takes the descriptor that it was sealed for", () => {
  const { ring, descriptor } = made;
  assert.equal(ring.followsOn(ring.version, ring.digest), false);
  assert.equal(ring.takes(descriptor), true);
  assert.equal(ring.takes({ ...descriptor, passes: descriptor.passes + 1 }), false);
});

test("there are no newest keys where there are none", () => {
  assert.throws(() => newest({ keys: [] }), Locked);
});

test("a keyring that is cut off before its body is unreadable", () => {
  for (const length of [0, 1, 2, 18, 62, 64, 65, 1249, 1328])
    assert.throws(() => readHead(toBase64(fromBase64(made.sealed).slice(0, length))), Tampered);
});

test("a proof follows on the one that it names, and not under an older key", async () => {
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
  const seen = (await sealDocument(both, "u", 1, "seen")).hmac;
  const parent = await short(seen);
  const [next, other, forged] = [
    (await sealDocument(both, "u", 2, "next", { parent })).hmac,
    (await sealDocument(both, "u", 2, "of another")).hmac,
    (await sealDocument(old, "u", 2, "forged", { parent })).hmac,
  ];
  assert.deepEqual(
    [
      await follows(next, seen, readProof),
      await follows(other, seen, readProof),
      await follows(forged, seen, readProof),
    ],
    [true, false, false],
  );
  assert.deepEqual(await traceAll([2, next], [[1, seen]], readProof), ["follows"]);
  assert.deepEqual(await traceAll([2, other], [[1, seen]], readProof), ["forked"]);
  assert.deepEqual(await traceAll([2, forged], [[1, seen]], readProof), ["forked"]);
  const deletion = (await sealDeletion(both, "u", 2, toContent("last"), { parent })).hmac;
  const versions = [
    noticeVersion(both, both.wires[0], "u", 2, deletion),
    noticeVersion(both, both.wires[0], "u", 3, deletion),
  ];
  assert.deepEqual(await Promise.all(versions), [2, 2]);
  assert.equal(await noticeVersion(both, both.wires[0], "u", 4, deletion), null);
  assert.equal(await noticeVersion(both, both.wires[0], "u", 2, next), null);
  assert.equal(await noticeVersion(both, both.wires[0], "u", 0, deletion), null);
});

test("a fault of the platform is not taken for a wrong tag, and its absence is told", async () => {
  await assert.rejects(webCrypto.decrypt(new Uint8Array(32), undefined as never, new Uint8Array(0)), TypeError);
  assert.equal(await webCrypto.decrypt(new Uint8Array(32), new Uint8Array(5), new Uint8Array(0)), null);
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto") as PropertyDescriptor;
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  try {
    assert.throws(() => webCrypto.sha256(new Uint8Array(1)), Unsupported);
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
});

test("a box is sealed to no point of a small order, and opened from none", async () => {
  const pair = await keyPair(new Secret(new Uint8Array(32).fill(1)));
  const [plain, none] = [Uint8Array.of(1), new Uint8Array(0)];
  const random = (length: number) => webCrypto.random(length);
  await assert.rejects(sealTo(new Uint8Array(32), plain, none, random), Tampered);
  const sealed = await sealTo(pair.public, plain, none, random);
  assert.deepEqual(await openSealed(pair, sealed, none), plain);
  await assert.rejects(openSealed(pair, join(new Uint8Array(32), sealed.slice(32)), none), Tampered);
  await assert.rejects(openSealed(pair, sealed.slice(0, 31), none), Tampered);
  usePrimitives({
    ...webCrypto,
    encrypt: (key, plaintext, associated) =>
      webCrypto.encrypt(
        key,
        plaintext.map((byte) => byte ^ 1),
        associated,
      ),
  });
  await assert.rejects(sealTo(pair.public, plain, none, random), Tampered); // as a fault in memory does
  usePrimitives(webCrypto);
});

test("more than a gibibyte is not sealed", () => {
  assert.throws(() => pad({ kind: RAW, data: { length: 2 ** 30 + 1 } as Bytes }), Invalid);
});

test("what is wrong with a recovery key is told by what it has, and not where it has too much", async () => {
  const printed = await printRecoveryKey(new Secret(new Uint8Array(20).fill(7)));
  const fault = async (given: string): Promise<string> =>
    readRecoveryKey(given).then(
      () => "",
      (refusal: Error) => refusal.message,
    );
  assert.match(await fault(`${printed}U`), /group 9 has 5 signs/);
  assert.match(await fault(`${printed.slice(0, 3)}-U${printed.slice(4)}-AAAA`), /instead of 36/);
  assert.match(await fault(`${printed}-AAAA`), /it has 40 instead of 36/);
  assert.match(await fault(`${printed}-A`), /it has 37 instead of 36/);
});

test("a token carries no part that is too long and no more than 255 keys, and is a text", async () => {
  const token = {
    apiKey: "key",
    account: new Uint8Array(16),
    scope: 3,
    vault: "v",
    name: "",
    floor: 1,
    keyring: 1,
    keys: [[1, new Secret(new Uint8Array(32))]] as const,
    former: [],
    collections: [],
  };
  assert.equal((await readToken(await spellToken(token))).vault, "v");
  await assert.rejects(spellToken({ ...token, apiKey: "k".repeat(65_537) }), Invalid);
  const keys = Array.from({ length: 256 }, (_, at) => [at + 1, new Secret(new Uint8Array(32))] as const);
  await assert.rejects(
    spellToken({ ...token, keys }),
    (fault) => fault instanceof Invalid && /rotated too often/.test(fault.message),
  );
  await assert.rejects(readToken(5), Invalid);
});

test("a blob that is cut off before its parent names none", () => {
  assert.throws(() => blobLineage(toBase64(Uint8Array.of(2, 3, 0, 0, 0, 1, 7))), Tampered);
});
