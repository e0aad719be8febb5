import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid, Tampered } from "../src/errors.js";

test("an error says its code, and in its message what a person can do", () => {
  assert.equal(new Tampered().code, "tampered");
  assert.match(new Tampered().message, /changed, moved or forged/);
  assert.equal(new Invalid({ email: "must have an @" }).message, "email must have an @.");
});
