// The storage of a replica in a file of Node.js, Deno or Bun: a log of changes, which is read into memory.
//
// Each line is one change of the whole: the checksum of a text of JSON, and that text. A line that was cut off by a kill
// at the end of the file is dropped; what was told as written is whole. When the log has grown, it is written again into
// another file, which takes its place; and so it is when keys were replaced in it that must not stay. One process has it
// open.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { Invalid, ReadOnlyReplica } from "../errors.js";
import { equal } from "../format/encoding.js";
import { readHead } from "../format/keyring.js";
import { Locks } from "../net/locks.js";
import {
  type Address,
  type Change,
  FORMAT,
  type ReplicaPlace,
  requireFormat,
  type Storage,
  type Table,
  TABLES,
} from "./storage.js";

const COMPACT = 4 << 20; // bytes that a log has at the least before it is written anew
const isWindows = process.platform === "win32";
const codeOf = (fault: unknown): string =>
  fault instanceof Error && "code" in fault ? String(fault.code) : "unknown error";
const spell = ([, ...key]: Address): string => JSON.stringify(key);
const sum = (line: string): string => createHash("sha256").update(line).digest("hex").slice(0, 16);
const lineOf = (changes: readonly Change[]): string => {
  const line = JSON.stringify(changes.map(([at, value]) => (value === undefined ? [at] : [at, value])));
  return `${sum(line)} ${line}\n`;
};

const OPEN = "Another process has this replica open, or another part of this one. Close it there.";
const BY_HAND =
  "This system does not tell whether a process of before still runs. If none has the replica open, delete ";
const isKeyring = ([table, name]: Address): boolean => table === "facts" && name === "keyring";
const FIRST = lineOf([[["facts", "format"], FORMAT]]);

/** A process as it is written into a lock: its number and, where the system tells, when it began. */
function spellProcess(id: number): string {
  try {
    if (!existsSync("/proc/self/stat")) return `${id} ${beginOf(id)}`.trim();
    // Fields are counted from behind the name, which may hold anything.
    const fields = readFileSync(`/proc/${id}/stat`, "latin1").split(") ").at(-1)?.split(" ") ?? [];
    return fields[0] === "Z" ? `${id} ended` : `${id} ${fields[19]}`;
  } catch {
    return `${id}`; // nothing here tells, or there is no such process
  }
}

/** When a process began, where there is no /proc: as on macOS and the BSDs. Windows does not tell. */
function beginOf(id: number): string {
  const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
  return execFileSync("ps", ["-o", "lstart=", "-p", `${id}`], {
    env,
    encoding: "utf-8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
}

/** Take the lock of the one process that has the replica open; what releases it. */
function takeLock(path: string): () => void {
  const lock = `${path}.lock`;
  for (let tries = 0; ; tries += 1) {
    try {
      const file = openSync(lock, "wx", 0o600);
      writeSync(file, spellProcess(process.pid));
      closeSync(file);
      return () => rmSync(lock, { force: true });
    } catch (fault) {
      if (codeOf(fault) !== "EEXIST")
        throw new Invalid({ path: `cannot be locked: ${basename(lock)}: ${codeOf(fault)}` });
      if (tries === 3 || !removeLeft(lock))
        throw new ReadOnlyReplica(OPEN + (tells() ? "" : ` ${BY_HAND}${basename(lock)}.`));
    }
  }
}

/** Whether the system tells when a process began. */
const tells = (): boolean => spellProcess(process.pid).includes(" ");

/** Remove a lock if the process that has made it has ended; whether it is gone. */
function removeLeft(lock: string): boolean {
  const aside = `${lock}.${process.pid}`;
  try {
    const owner = readFileSync(lock, "utf-8");
    if (!isLeft(owner)) return false;
    renameSync(lock, aside);
    const isSame = readFileSync(aside, "utf-8") === owner;
    if (isSame) unlinkSync(aside);
    else renameSync(aside, lock); // another process was quicker, and has made its own
    return isSame;
  } catch (fault) {
    return codeOf(fault) === "ENOENT"; // it was released meanwhile
  }
}

/** Whether the process that has made a lock has ended. */
function isLeft(owner: string): boolean {
  const id = Number.parseInt(owner, 10);
  if (!id) return false; // it is being written
  try {
    process.kill(id, 0);
  } catch (fault) {
    if (codeOf(fault) === "ESRCH") return true;
  }
  // A number is used again, after a restart of the machine or of a container at the latest. It may be that of this process:
  // where the system does not tell when that began, another thread or another copy of this module may have made the lock.
  const now = spellProcess(id);
  return owner.includes(" ") && now.includes(" ") && now !== owner;
}

function syncFolder(path: string): void {
  if (isWindows) return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** The file, which only its owner can read; what was in it, and whether it was made now. */
function openOwn(path: string, create: boolean): { file: number; isNew: boolean } {
  let isNew = false;
  let file: number;
  const flags = constants.O_RDWR | constants.O_APPEND | (isWindows ? 0 : constants.O_NOFOLLOW);
  try {
    file = openSync(path, flags);
  } catch (fault) {
    if (codeOf(fault) !== "ENOENT" || !create)
      throw new Invalid({ path: `cannot be opened: ${basename(path)}: ${codeOf(fault)}` });
    try {
      file = openSync(path, flags | constants.O_CREAT | constants.O_EXCL, 0o600);
      isNew = true;
    } catch (other) {
      throw new Invalid({ path: `cannot be made: ${basename(path)}: ${codeOf(other)}` });
    }
  }
  const found = fstatSync(file);
  const others = !isWindows && (found.uid !== process.geteuid?.() || (found.mode & 0o077) !== 0);
  if (found.isFile() && !others) return { file, isNew };
  closeSync(file);
  throw new Invalid({ path: `is not a file of yours alone: ${basename(path)}` });
}

/** The replica in the file at this path; made if there is none, unless `create` is false. */
async function openFile(path: string, create: boolean): Promise<Storage> {
  const release = takeLock(path);
  try {
    return new File(path, create, release);
  } catch (fault) {
    release();
    throw fault;
  }
}

/** Delete the replica in the file at this path, if no process has it open. */
async function deleteFile(path: string): Promise<void> {
  const release = takeLock(path);
  try {
    rmSync(path, { force: true });
  } finally {
    release();
  }
}

/** A file as the place of a replica, by its path. One process at a time has it open. */
export function replicaFile(given: string): ReplicaPlace {
  const path = resolve(given);
  return { open: (create) => openFile(path, create), delete: () => deleteFile(path) };
}

class File implements Storage {
  readonly isNew: boolean;
  readonly isPersistent = true;
  readonly keepsContents = false;
  lost: string | undefined;
  onTold = (): void => undefined;
  readonly #path: string;
  readonly #tables = new Map<Table, Map<string, unknown>>(TABLES.map((table) => [table, new Map()]));
  readonly #locks = new Locks();
  readonly #release: () => void;
  #file: number;
  #size: number;
  #whole = 0; // bytes that the log had when it was last written anew
  #erases = false; // keys were replaced or deleted that are still in the log
  #isMoved = false; // it was written anew, and the folder may not tell so on disk yet
  #closed = false;

  constructor(path: string, create: boolean, release: () => void) {
    this.#path = path;
    this.#release = release;
    const { file, isNew } = openOwn(path, create);
    this.#file = file;
    try {
      this.#size = this.#load(readFileSync(file));
      this.isNew = this.#size === 0;
      if (this.isNew) {
        this.#append([[["facts", "format"], FORMAT]]);
        syncFolder(path);
      }
      requireFormat(this.#table("facts").get('["format"]'), basename(path));
      if (this.#erases) this.#compact(); // the process of before was killed
    } catch (fault) {
      closeSync(file);
      if (isNew) unlinkSync(path);
      throw fault;
    }
  }

  #table(table: Table): Map<string, unknown> {
    return this.#tables.get(table) ?? new Map<string, unknown>();
  }

  /** Read the log; how many bytes of it are whole. */
  #load(raw: Buffer): number {
    let at = 0;
    for (let end = raw.indexOf(10); end >= 0; end = raw.indexOf(10, at)) {
      const line = raw.toString("utf-8", at, end);
      if (sum(line.slice(17)) !== line.slice(0, 16)) {
        // Of what was cut off, nothing follows.
        if (raw.indexOf(10, end + 1) >= 0 || at === 0) requireFormat(undefined, basename(this.#path));
        break;
      }
      this.#apply(JSON.parse(line.slice(17)) as Change[]);
      at = end + 1;
    }
    if (at === 0 && !FIRST.startsWith(raw.toString("latin1"))) requireFormat(undefined, basename(this.#path));
    if (at < raw.length) ftruncateSync(this.#file, at);
    this.#whole = at;
    return at;
  }

  /** Whether a change takes the place of keys that must not stay: another way into the account, or a deleted vault's. */
  #replacesKeys([at, value]: Change): boolean {
    const before = this.#table(at[0]).get(spell(at));
    if (before === undefined || value === before) return false;
    if (!isKeyring(at)) return at[0] === "keys" && value === undefined;
    return value === undefined || !equal(readHead(String(before)).slots, readHead(String(value)).slots);
  }

  #apply(changes: readonly Change[]): void {
    for (const change of changes) {
      const [at, value] = change;
      this.#erases ||= this.#replacesKeys(change);
      if (value === undefined) this.#table(at[0]).delete(spell(at));
      else this.#table(at[0]).set(spell(at), value);
    }
  }

  #append(changes: readonly Change[]): void {
    const line = Buffer.from(lineOf(changes));
    try {
      for (let at = 0; at < line.length; ) at += writeSync(this.#file, line, at);
      fsyncSync(this.#file);
    } catch (fault) {
      ftruncateSync(this.#file, this.#size);
      throw new Invalid({ path: `cannot be written: ${basename(this.#path)}: ${codeOf(fault)}` });
    }
    this.#size += line.length;
    this.#apply(changes);
  }

  async read(wanted: readonly Address[]): Promise<unknown[]> {
    return wanted.map((at) => this.#table(at[0]).get(spell(at)));
  }

  async list(table: Table, first?: string): Promise<unknown[]> {
    const start = first === undefined ? "[" : `${JSON.stringify([first]).slice(0, -1)},`;
    const found = [...this.#table(table)].filter(([key]) => key.startsWith(start));
    return found.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);
  }

  async write(changes: readonly Change[]): Promise<void> {
    this.#syncMove();
    this.#append(changes);
    if (this.#erases || this.#size > Math.max(COMPACT, 2 * this.#whole)) this.#compact();
  }

  /** Write the log again, without what was replaced in it. */
  #compact(): void {
    const part = `${this.#path}.part`;
    const changes = [...this.#tables].flatMap(([table, records]) =>
      [...records].map(([key, value]): Change => [[table, ...(JSON.parse(key) as string[])], value]),
    );
    let file = -1;
    let size = 0;
    try {
      rmSync(part, { force: true });
      file = openSync(part, "ax", 0o600);
      for (let at = 0; at < changes.length; at += 1000) {
        const line = Buffer.from(lineOf(changes.slice(at, at + 1000)));
        for (let done = 0; done < line.length; ) done += writeSync(file, line, done);
        size += line.length;
      }
      fsyncSync(file);
      renameSync(part, this.#path);
    } catch {
      if (file >= 0) closeSync(file);
      this.#whole = this.#size; // the log stays as it is, and is tried again when it has grown further
      return;
    }
    // From here on the log of before has no name: nothing more may be written to it.
    const before = this.#file;
    this.#file = file;
    this.#size = this.#whole = size;
    this.#isMoved = true;
    this.#erases = false;
    try {
      closeSync(before);
      this.#syncMove();
    } catch {
      // What was written until now is in both logs. The next write tries again first, and is refused if it cannot.
    }
  }

  /** After the log was written anew, have the folder on disk: otherwise a crash could bring back the log of before. */
  #syncMove(): void {
    if (!this.#isMoved) return;
    try {
      syncFolder(this.#path);
    } catch (fault) {
      throw new Invalid({ path: `cannot be written: ${basename(this.#path)}: ${codeOf(fault)}` });
    }
    this.#isMoved = false;
  }

  alone<T>(name: string, task: () => Promise<T>): Promise<T> {
    return this.#locks.run(name, task);
  }

  async lead(): Promise<() => void> {
    return () => undefined;
  }

  tell(): void {
    // No other process has it open.
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#file);
    this.#release();
  }
}
