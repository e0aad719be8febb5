// The file of a replica under faults of the system, and in two threads of one process.
import assert from "node:assert/strict";
import fs, { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { Invalid, ReadOnlyReplica } from "../src/errors.js";
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

/** What another thread meets, with a copy of the modules of its own, that opens the file: "" where it opens. */
const inThread = (path: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const program = `
      const { parentPort, workerData } = require("node:worker_threads");
      import(workerData.program)
        .then(({ replicaFile }) => replicaFile(workerData.path).open(true))
        .then((storage) => storage.close())
        .then(() => parentPort.postMessage(""), (fault) => parentPort.postMessage(fault.name));`;
    const worker = new Worker(program, {
      eval: true,
      workerData: { program: new URL("nodeDoor.program.js", import.meta.url).href, path },
    });
    worker.once("message", resolve);
    worker.once("error", reject);
  });

test("one thread of a process has a file open", () =>
  withPath(async (path) => {
    const storage = await replicaFile(path).open(true);
    assert.equal(await inThread(path), "ReadOnlyReplica");
    assert.ok(existsSync(`${path}.lock`));
    await assert.rejects(replicaFile(path).open(true), ReadOnlyReplica);
    storage.close();
    assert.equal(await inThread(path), "");
  }));

test("the lock of an ended process with the number of this one is left over if it began at another time", () =>
  withPath(async (path) => {
    writeFileSync(`${path}.lock`, `${process.pid}`); // of a system that does not tell when
    await assert.rejects(replicaFile(path).open(true), ReadOnlyReplica);
    if (!existsSync("/proc/self/stat")) return;
    writeFileSync(`${path}.lock`, `${process.pid} 1`);
    (await replicaFile(path).open(true)).close();
  }));

/** Run a task as on a system without /proc, whose program `ps` prints this, or which has none. */
async function withoutProc(printed: string | undefined, task: () => Promise<void>): Promise<void> {
  const { existsSync: exists } = fs;
  const { PATH } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "programs-"));
  if (printed !== undefined) writeFileSync(join(folder, "ps"), `#!/bin/sh\necho "${printed}"\n`, { mode: 0o700 });
  process.env.PATH = folder;
  fs.existsSync = (path) => path !== "/proc/self/stat" && exists(path);
  syncBuiltinESMExports();
  try {
    await task();
  } finally {
    process.env.PATH = PATH;
    fs.existsSync = exists;
    syncBuiltinESMExports();
    rmSync(folder, { recursive: true });
  }
}

test("without /proc, a lock whose process number is used again is left over if that process began later", () =>
  withPath((path) =>
    withoutProc("Tue Nov 17 10:00:00 2026", async () => {
      writeFileSync(`${path}.lock`, `${process.pid} Mon Nov 16 10:00:00 2026`);
      const storage = await replicaFile(path).open(true);
      assert.equal(fs.readFileSync(`${path}.lock`, "utf-8"), `${process.pid} Tue Nov 17 10:00:00 2026`);
      await assert.rejects(
        replicaFile(path).open(true),
        (fault) => fault instanceof ReadOnlyReplica && !/delete/.test(fault.message),
      );
      storage.close();
    }),
  ));

test("where nothing tells when a process began, the refusal says what to delete", () =>
  withPath((path) =>
    withoutProc(undefined, async () => {
      writeFileSync(`${path}.lock`, "999999999"); // no such process: this the system does tell
      (await replicaFile(path).open(true)).close();
      writeFileSync(`${path}.lock`, `${process.pid}`);
      await assert.rejects(
        replicaFile(path).open(true),
        (fault) => fault instanceof ReadOnlyReplica && fault.message.endsWith("delete replica.lock."),
      );
    }),
  ));
