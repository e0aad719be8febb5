import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import * as errors from "../src/errors.js";
import { DocumentConflict, Invalid, Refusal, Tampered, Unreachable } from "../src/errors.js";

test("an error says its code, and in its message what a person can do", () => {
  assert.equal(new Tampered().code, "tampered");
  assert.match(new Tampered().message, /changed, moved or forged/);
  assert.equal(new Invalid({ email: "must have an @" }).message, "email must have an @.");
  assert.equal(new Invalid({}).message, Invalid.sentence);
  assert.deepEqual(new DocumentConflict(3, 17).details, { version: 3, updatedAt: 17 });
  assert.equal(new Unreachable("Gone.", "dns").reason, "dns");
});

test("every class has its own name, which no minifier changes, and a sentence", () => {
  const names = new Map<string, string>();
  for (const [name, kind] of Object.entries(errors)) {
    if (!("kind" in kind)) continue;
    assert.equal(kind.prototype.name, name);
    assert.ok((kind.prototype instanceof Error && kind.prototype instanceof Refusal) || kind === Refusal);
    if (["Refusal", "Taken", "Later", "Conflict"].includes(name)) continue;
    assert.ok(!names.has(kind.prototype.code), kind.prototype.code);
    names.set(kind.prototype.code, name);
    assert.match(kind.sentence, /\.$/, name);
  }
  assert.equal(names.get("validation_error"), "Invalid");
  assert.equal(names.get("api_key_not_found"), "ApiKeyNotFound");
});

test("an error in JSON, as text and in a console is its name, code, message and details", () => {
  const error = new Tampered("Not so.", { uid: "x" });
  assert.deepEqual(JSON.parse(JSON.stringify(error)), {
    name: "Tampered",
    code: "tampered",
    message: "Not so.",
    details: { uid: "x" },
  });
  assert.equal(String(error), "Tampered: Not so.");
  assert.match(inspect(error), /^Tampered: Not so\.\n/);
});
