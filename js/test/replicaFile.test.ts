// The file of a replica under faults of the system.
import assert from "node:assert/strict";
import fs, { mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Invalid } from "../src/errors.js";
import { replicaFile } from "../src/node.js";

/** Run a task with the path of a file in a folder of its own. */
async function withPath(task: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "replica-"));
  try {
    await task(join(folder, "replica"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Run a task while no folder can be brought to disk. */
async function withoutFolders(task: () => Promise<void>): Promise<void> {
  const { fsyncSync } = fs;
  fs.fsyncSync = (file) => {
    if (fs.fstatSync(file).isDirectory()) throw Object.assign(new Error("no"), { code: "EIO" });
    fsyncSync(file);
  };
  syncBuiltinESMExports();
  try {
    await task();
  } finally {
    fs.fsyncSync = fsyncSync;
    syncBuiltinESMExports();
  }
}

test("a log that was written anew is the one that is written to, whatever fails after its move", () =>
  withPath(async (path) => {
    const storage = await replicaFile(path).open(true);
    const write = (value: string): Promise<void> => storage.write([[["facts", "one"], value]]);
    await withoutFolders(async () => {
      for (let number = 0; number < 4; number += 1) await write(`${number}`.repeat(1 << 20));
      assert.ok(fs.statSync(path).size < 4 << 20);
      await assert.rejects(write("refused"), (fault) => fault instanceof Invalid && fault.message.includes("EIO"));
      assert.equal((await storage.read([["facts", "one"]]))[0], "3".repeat(1 << 20));
    });
    await write("last");
    storage.close();
    const again = await replicaFile(path).open(false);
    assert.equal((await again.read([["facts", "one"]]))[0], "last");
    again.close();
  }));
