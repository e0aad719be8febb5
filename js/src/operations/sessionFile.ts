// A saved session in a file of Node.js, which only its owner can read. Its key lies in it, so nothing but the file's
// permissions protects it, unless the server keeps a share. A file that others can read or replace is refused.
import { unlink } from "node:fs/promises";
import { resolve } from "node:path";
import * as ownFile from "./ownFile.js";
import type { SessionPlace, SessionRecord } from "./savedSessions.js";

const FORMAT = "strongroom JavaScript session 2";
const COPIED = ", who may have copied it: end that session, delete the file, and log in again";

async function read(path: string): Promise<SessionRecord | undefined> {
  const raw = await ownFile.read(path, COPIED);
  if (raw === undefined) return undefined;
  const found = parsed(raw);
  if (found?.format !== FORMAT) throw ownFile.wrong("is not a session file, or was cut off; it was not changed", path);
  const { id, sealing, tokens, sealed } = found;
  if (typeof id !== "string" || typeof tokens !== "string" || typeof sealed !== "string" || !isObject(sealing))
    throw ownFile.wrong("is damaged, or was changed", path);
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

/** Replace the file in one step; with `over`, only the session of that id. */
async function write(path: string, { id, sealing, tokens, sealed }: SessionRecord, over?: string): Promise<void> {
  const boxes = { tokens: spell(tokens), sealed: spell(sealed) };
  const isWanted = async () => over === undefined || (await read(path))?.id === over; // it may be deleted meanwhile
  await ownFile.replace(path, JSON.stringify({ format: FORMAT, id, sealing, ...boxes }), isWanted);
}

/** A file, by its path. With `needsServer` it opens only with a share that the server keeps while the session is open. */
export async function sessionFile(given: string, { needsServer = false } = {}): Promise<SessionPlace> {
  const path = resolve(given);
  await ownFile.checkFolder(path);
  return {
    keepsKeys: false,
    needsServer,
    read: () => read(path),
    write: (record, over) => write(path, record, over),
    delete: () => unlink(path).catch(() => undefined),
    alone: (task) => ownFile.alone(path, task),
  };
}
