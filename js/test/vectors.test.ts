// Every vector of the format, of readers and of writers, in Node.js.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Case, differences } from "./vectorOperations.js";

const folder = process.env.VECTORS ?? "../tests/vectors";
for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  test(`the vectors of ${file} hold`, async () => {
    const { cases } = JSON.parse(readFileSync(join(folder, file), "utf-8")) as { cases: Case[] };
    assert.ok(cases.length > 0);
    assert.deepEqual(await differences(cases), []);
  });
}
