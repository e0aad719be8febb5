// Conditions of the format that no vector reaches: what programs pass, what keyrings refuse to become, what is damaged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid, Locked, Tampered, VaultAlreadyExists } from "../src/errors.js";
import * as account from "../src/format/account.js";
import { toContent, toValue } from "../src/format/content.js";
import { sealBox } from "../src/format/box.js";
import {
  checkedCursor, checkedInteger, checkedText, compare, fromBase64, fromUrl, isObject, items, join, splitItems, toBase64,
} from "../src/format/encoding.js";
import { Keyring, readHead } from "../src/format/keyring.js";
import { encodeBody } from "../src/format/keyringBody.js";
import { deriveKey } from "../src/format/keys.js";
import { pad, RAW } from "../src/format/padding.js";
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
const made = await account.register("ada@example.com", "correct horse battery staple");

test("bytes in a buffer of their own are bytes, and none within JSON", () => {
  const { buffer } = Uint8Array.of(1, 2);
  const content = toContent(buffer);
  assert.deepEqual([content.kind, toValue(content)], [RAW, Uint8Array.of(1, 2)]);
  new Uint8Array(buffer)[0] = 9;
  assert.deepEqual(toValue(content), Uint8Array.of(1, 2));
  assert.throws(() => toContent({ a: buffer }), (fault) => fault instanceof Invalid && /has bytes at \['a'\]/.test(fault.message));
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
  const bare = Keyring.of({ account: id, version, generation, previous, slots: new Uint8Array(0), digest: new Uint8Array(0) }, key, body);
  await assert.rejects(bare.seal(), Locked);
  const vaults = Array.from({ length: 600 }, (_, at) => ({
    uid: `${at}`.padStart(36, "0"), name: `${at}`.padEnd(255, "x"), sealed: true, made: true,
    keys: [{ generation: 1, key: toBase64(new Uint8Array(32)) }],
  }));
  const full = (sentence: RegExp) => (fault: unknown) => fault instanceof Invalid && sentence.test(fault.message);
  await assert.rejects(made.ring.next({ vaults }).seal(), full(/the directory of vaults is full/));
  // The same, made by a key holder who does not look at the bound.
  const { raw } = readHead(made.sealed);
  const sealing = await deriveKey(await key.key(), "HKDF", "keyring");
  const by = async (content: object): Promise<string> =>
    toBase64(join(raw, await sealBox(sealing, new Uint8Array(32), pad(encodeBody({ ...body, ...content })), items("keyring", raw))));
  assert.equal((await Keyring.reopen(await by({ vaults: vaults.slice(0, 100) }), key)).vaults.length, 100);
  await assert.rejects(Keyring.reopen(await by({ vaults }), key), Tampered);
});

test("a keyring follows on none of its own version or a later one, and takes the descriptor that it was sealed for", () => {
  const { ring, descriptor } = made;
  assert.equal(ring.followsOn(ring.version, ring.digest), false);
  assert.equal(ring.takes(descriptor), true);
  assert.equal(ring.takes({ ...descriptor, passes: descriptor.passes + 1 }), false);
});
