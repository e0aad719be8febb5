// A saved session in a file of Node.js, which only its owner can read. Its key lies in it, so nothing but the file's
// permissions protects it, unless the server keeps a share. A file that others can read or replace is refused.
import { constants } from "node:fs";
import { type FileHandle, open, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { Invalid } from "../errors.js";
import type { SessionPlace, SessionRecord } from "./savedSessions.js";

const FORMAT = "strongroom JavaScript session 2";
const TURN = 60_000; // milliseconds to wait for another program that refreshes the session
const PAUSE = 20;
const isWindows = process.platform === "win32";

const codeOf = (fault: unknown): string =>
  fault instanceof Error && "code" in fault ? String(fault.code) : "unknown error";
const wrong = (why: string, path: string): Invalid => new Invalid({ path: `${why}: ${basename(path)}` });

/** Refuse a folder in which others could replace the file. */
async function checkFolder(path: string): Promise<void> {
  const folder = dirname(path);
  const found = await stat(folder).catch((fault: unknown) => {
    throw new Invalid({ path: `is in a folder that cannot be used: ${folder}: ${codeOf(fault)}` });
  });
  if (isWindows) return;
  const isShared = (found.mode & 0o022) !== 0 && (found.mode & 0o1000) === 0;
  if (isShared || (found.uid !== 0 && found.uid !== process.geteuid?.()))
    throw new Invalid({ path: `is in a folder in which others can replace it: ${folder}; use one of your own` });
}

/** Open the file, if only its owner can read it; undefined if there is none. */
async function openOwn(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (fault) {
    const code = codeOf(fault);
    if (code === "ENOENT") return undefined;
    throw code === "ELOOP"
      ? wrong("is a symbolic link; name the file itself", path)
      : wrong(`cannot be opened (${code})`, path);
  }
  const found = await file.stat();
  const mode = found.mode & 0o777;
  const fault = !found.isFile()
    ? "is a folder or another thing that is not a file"
    : isWindows
      ? undefined
      : found.uid !== process.geteuid?.()
        ? "belongs to another user of this machine"
        : mode & 0o077
          ? `can be read by others (mode ${mode.toString(8)}), who may have copied it: end that session, delete the file, and log in again`
          : undefined;
  if (fault === undefined) return file;
  await file.close();
  throw wrong(fault, path);
}

async function read(path: string): Promise<SessionRecord | undefined> {
  const file = await openOwn(path);
  if (!file) return undefined;
  let raw: Buffer;
  try {
    raw = await file.readFile();
  } finally {
    await file.close();
  }
  const found = parsed(raw.toString("utf-8"));
  if (found?.format !== FORMAT) throw wrong("is not a session file, or was cut off; it was not changed", path);
  const { id, sealing, tokens, sealed } = found;
  if (typeof id !== "string" || typeof tokens !== "string" || typeof sealed !== "string" || !isObject(sealing))
    throw wrong("is damaged, or was changed", path);
  return { id, sealing, tokens: bytesOf(tokens), sealed: bytesOf(sealed) };
}

const bytesOf = (spelled: string) => Uint8Array.from(Buffer.from(spelled, "base64"));
const spell = (data: Uint8Array): string => Buffer.from(data).toString("base64");
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function parsed(spelled: string): Record<string, unknown> | undefined {
  try {
    const found: unknown = JSON.parse(spelled);
    return isObject(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** Replace the file in one step. */
async function write(path: string, { id, sealing, tokens, sealed }: SessionRecord, over?: string): Promise<void> {
  const part = `${path}.part`;
  try {
    await unlink(part).catch(() => undefined); // of a process that was killed
    const file = await open(part, "wx", 0o600);
    try {
      const boxes = { tokens: spell(tokens), sealed: spell(sealed) };
      await file.writeFile(JSON.stringify({ format: FORMAT, id, sealing, ...boxes }));
      await file.sync();
    } finally {
      await file.close();
    }
    if (over !== undefined && (await read(path))?.id !== over) return void (await unlink(part)); // it was deleted meanwhile
    await rename(part, path);
    if (isWindows) return;
    const folder = await open(dirname(path), "r");
    await folder.sync().finally(() => folder.close());
  } catch (fault) {
    await unlink(part).catch(() => undefined);
    throw wrong(`cannot be written (${codeOf(fault)})`, path);
  }
}

/** Whether the process that has made a lock has ended. */
async function isLeft(lock: string): Promise<boolean> {
  const file = await open(lock, "r").catch(() => undefined);
  if (!file) return false;
  const owner = Number(await file.readFile("utf-8").finally(() => file.close()));
  if (!owner) return Date.now() - (await stat(lock).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs > TURN;
  try {
    process.kill(owner, 0);
    return false;
  } catch (fault) {
    return codeOf(fault) === "ESRCH";
  }
}

/** Run a task while no other program uses the file: each makes a file beside it, which only one can. */
async function alone<T>(path: string, task: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  for (const begun = Date.now(); ; await new Promise((go) => setTimeout(go, PAUSE))) {
    try {
      const file = await open(lock, "wx", 0o600);
      await file.writeFile(String(process.pid)).finally(() => file.close());
      break;
    } catch (fault) {
      if (codeOf(fault) !== "EEXIST") throw wrong(`cannot be locked (${codeOf(fault)})`, path);
      if (await isLeft(lock)) await unlink(lock).catch(() => undefined);
      else if (Date.now() - begun > TURN) throw wrong("is in use by another program for too long", path);
    }
  }
  try {
    return await task();
  } finally {
    await unlink(lock).catch(() => undefined);
  }
}

/** A file, by its path. With `needsServer` it opens only with a share that the server keeps while the session is open. */
export async function sessionFile(given: string, { needsServer = false } = {}): Promise<SessionPlace> {
  const path = resolve(given);
  await checkFolder(path);
  return {
    keepsKeys: false,
    needsServer,
    read: () => read(path),
    write: (record, over) => write(path, record, over),
    delete: () => unlink(path).catch(() => undefined),
    alone: (task) => alone(path, task),
  };
}
