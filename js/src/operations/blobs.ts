// The blob of a vault: the one value that it may carry besides its documents.
import { Invalid, Tampered, TypeMismatch, VaultConflict } from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import { equal } from "../format/encoding.js";
import { newest } from "../format/keys.js";
import type { Content } from "../format/padding.js";
import { type Descent, follows, type Link, trace } from "../format/parents.js";
import { openKnownBlob } from "../format/past.js";
import { blobLineage, openBlob, parentAfterBlob, sealBlob, type SealedBlob } from "../format/seal.js";
import type { VaultRow } from "../net/decoders.js";
import * as requests from "../net/requests/vaults.js";
import type { Core } from "./core.js";
import * as keyrings from "./keyrings.js";
import { decode, type Typed, type ValueType } from "./valueTypes.js";
import { checkVault, currentRow, type OpenVault } from "./vaults.js";

export { openBlob };
export const NOT_KEPT = "The server did not keep what it was given for a vault.";
const OTHER_BLOB =
  "The vault has another blob than the one that this client has last read or written; read it with blob.get, merge, " +
  "and put again.";

/** A vault's blob. `version` is the vault's. */
export class Blob<T = unknown> {
  /** The uid of its vault. */
  readonly vault: string;
  readonly version: number;
  /** Whether the server's history no longer shows that this blob follows on the one that this client had seen. */
  readonly gap: boolean;
  readonly #raw: () => unknown; // the console of a browser shows texts in private members
  readonly #typed: Typed<T> | undefined;

  constructor(vault: string, raw: unknown, version: number, gap = false, typed?: Typed<T>) {
    this.vault = vault;
    this.version = version;
    this.gap = gap;
    this.#raw = () => raw;
    this.#typed = typed;
  }

  /** The value as it is stored, JSON or bytes. */
  get raw(): unknown {
    return this.#raw();
  }

  /** The value. If it does not fit the type of `typed`, that is a TypeMismatch; `raw` has it then. */
  get value(): T {
    const typed = this.#typed;
    if (!typed) return this.#raw() as T;
    if ("problem" in typed) throw new TypeMismatch(this.vault, typed.problem, "blob of the vault");
    return typed.value;
  }

  /** The same blob with its value as this type. */
  async typed<U>(type: ValueType<U>): Promise<Blob<U>> {
    return new Blob(this.vault, this.raw, this.version, this.gap, await decode(type, this.raw));
  }
}

/** Whether there is a key for a blob. */
export const isKnown = ({ keys }: OpenVault, data: string): boolean =>
  blobLineage(data).generation <= newest(keys).generation;

/** A blob without a value, for a server that takes no vault without one. */
export const firstBlob = ({ keys, wire }: OpenVault): Promise<SealedBlob> => sealBlob(keys, wire, 1, toContent(null));

/** Get the blob of a vault, if it has one. */
export async function getBlob(core: Core, opened: OpenVault): Promise<Blob | undefined> {
  const [vault, row, gap] = await currentRow(core, opened);
  const found = await toBlob(vault, row, gap);
  core.device.recordBlob(row);
  return found;
}

/** The blob of a vault's row, if it has one. */
export async function toBlob(vault: OpenVault, row: VaultRow, gap: boolean): Promise<Blob | undefined> {
  if (row.data === null) return undefined;
  return new Blob(vault.uid, toValue(await openBlob(vault.keys, row.name, row)), row.version, gap);
}

/** Another blob. `after` is the one that it follows on; without it, the one that was last read or written here. */
export async function putBlob(core: Core, vault: OpenVault, value: unknown, after?: Blob<unknown>): Promise<Blob> {
  if (after !== undefined) {
    if (!(after instanceof Blob)) {
      throw new Invalid({ after: `must be a Blob, as get and put return it, not ${typeof after}` });
    }
    if (after.vault !== vault.uid) throw new Invalid({ after: "must be a Blob of this vault, and is one of another" });
  }
  const content = toContent(value);
  const row = await keyrings.withNewest(core, () => putBlobOnce(core, vault, content, after));
  core.device.recordBlob(row);
  return new Blob(vault.uid, toValue(content), row.version);
}

async function putBlobOnce(core: Core, opened: OpenVault, content: Content, after?: Blob<unknown>): Promise<VaultRow> {
  const [vault, before] = await currentRow(core, opened);
  const { version, updatedAt } = before;
  if (after) {
    if (after.version !== version) throw new VaultConflict(version, updatedAt);
  } else if (before.data !== null && !(await mayReplace(core, vault, before, content))) {
    throw new VaultConflict(version, updatedAt, OTHER_BLOB);
  }
  const parent = await parentAfterBlob(before.data);
  const sealed = await sealBlob(vault.keys, before.name, version + 1, content, { parent });
  const mark = core.device.mark();
  const call = requests.put(vault.uid, { version }, sealed, vault.keys.keyring ?? undefined);
  const row = await core.session.send(call);
  await checkVault(core, vault, row, mark);
  if (row.version !== version + 1 || row.data !== sealed.data || row.salt !== sealed.salt) throw new Tampered(NOT_KEPT);
  return row;
}

/**
 * Whether the blob is the one that was last read or written here, or has the new content already.
 *
 * The contents are compared: a rename and a rotation seal the same content anew.
 */
async function mayReplace(core: Core, vault: OpenVault, before: VaultRow, content: Content): Promise<boolean> {
  const known = core.device.blob(vault.uid);
  if (known && known.data === before.data) return true;
  const there = await openBlob(vault.keys, before.name, before);
  if (isSame(there, content)) return true; // by an earlier attempt without a response, perhaps
  if (!known || known.data === null) return false;
  return isSame(await openKnownBlob(vault.keys, known.name, known), there);
}

const isSame = (one: Content, other: Content): boolean => one.kind === other.kind && equal(one.data, other.data);

/** Refuse a newer blob that was made without knowing of the one that was seen; whether none can tell. */
export async function requireBlobDescent(core: Core, row: VaultRow, known: Link): Promise<boolean> {
  const descent = await blobDescent(core, row, known);
  if (descent === "forked") {
    throw new Tampered("The server shows a newer blob whose writer did not know of what this device has seen.");
  }
  return descent === "gap";
}

/** How a newer blob stands to the one that was seen; a rename alone does not change it. */
export async function blobDescent(core: Core, row: VaultRow, known: Link): Promise<Descent> {
  const data = row.data ?? "";
  if (data === known[1] || (await follows(data, known[1], blobLineage))) return "follows";
  const { versions } = await core.session.send(requests.blobVersions(row.uid));
  const history: Link[] = [];
  for (const { version } of versions) {
    if (version <= known[0]) continue;
    const blob = await core.session.send(requests.blobVersion(row.uid, version));
    history.push([version, blob.data]);
  }
  return trace([row.version, data], known, history, blobLineage);
}
