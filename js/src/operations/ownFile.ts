// Files of Node.js that only their owner can read, that programs share, and that are replaced in one step. A file that
// others can read or replace is refused.
import { constants } from "node:fs";
import { type FileHandle, open, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { Invalid } from "../errors.js";

const TURN = 60_000; // milliseconds to wait for another program that uses the file
const PAUSE = 20;
const isWindows = process.platform === "win32";

const codeOf = (fault: unknown): string =>
  fault instanceof Error && "code" in fault ? String(fault.code) : "unknown error";
/** A path that is refused. */
export const wrong = (why: string, path: string): Invalid => new Invalid({ path: `${why}: ${basename(path)}` });

/** Refuse a folder in which others could replace the file. */
export async function checkFolder(path: string): Promise<void> {
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
async function openOwn(path: string, advice: string): Promise<FileHandle | undefined> {
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
          ? `can be read by others (mode ${mode.toString(8)})${advice}`
          : undefined;
  if (fault === undefined) return file;
  await file.close();
  throw wrong(fault, path);
}

/** The text of a file, if only its owner can read it; undefined if there is none. `advice`: what to do otherwise. */
export async function read(path: string, advice: string): Promise<string | undefined> {
  const file = await openOwn(path, advice);
  return file?.readFile("utf-8").finally(() => file.close());
}

/** Replace a file in one step, if that is still wanted when the new one is on disk. */
export async function replace(path: string, data: string, isWanted = async () => true): Promise<void> {
  const part = `${path}.part`;
  try {
    await unlink(part).catch(() => undefined); // of a process that was killed
    const file = await open(part, "wx", 0o600);
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    if (!(await isWanted())) return void (await unlink(part));
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
export async function alone<T>(path: string, task: () => Promise<T>): Promise<T> {
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
