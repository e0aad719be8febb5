// Opening a replica: its owner, its keys without a server, its vaults.
import { codeOf, InsufficientScope, Invalid, Locked, VaultNotFound } from "../errors.js";
import { sealBox } from "../format/box.js";
import { toValue } from "../format/content.js";
import { checkWork, kdfSalt, readDescriptor, spellDescriptor } from "../format/descriptor.js";
import { type Bytes, compare, digest, items, KEY, must, PARENT, text, toBase64, toUrl } from "../format/encoding.js";
import { digestOf, type Keyring, readHead } from "../format/keyring.js";
import { checkedVaultName } from "../format/names.js";
import { type Key, primitives } from "../format/primitives.js";
import { openKnownBlob } from "../format/past.js";
import { engine, rare } from "../lazyImports.js";
import { type Core, newUid } from "../operations/core.js";
import { Scope } from "../operations/documents.js";
import { countGap, requireDirectory } from "../operations/keyrings.js";
import { OLD_KEYS } from "../operations/rollback.js";
import { openEntry, openVaultWith, type OpenVault } from "../operations/vaults.js";
import { Local } from "./local.js";
import type { VaultRecord } from "./records.js";
import type { Storage } from "./storage.js";
import { Store, type Tables } from "./tables.js";
import * as vaultKeys from "./vaultKeys.js";

/** Open the replica in this storage, for the account or token in use. */
export async function openLocal(core: Core, storage: Storage): Promise<Local> {
  const store = new Store(storage);
  try {
    const owner = ownerOf(core);
    await store.transaction(async (tables) => {
      const found = await tables.fact("owner");
      if (found === undefined) tables.setFact("owner", owner);
      else if (found !== owner) throw new Invalid({ name: "is the replica of another account, or of another token" });
      await noteToken(core, tables);
      await storeKeys(core, tables);
      await vaultKeys.sealRenamed(tables, core);
    });
    const local = new Local(core, store);
    await local.limit.load(store);
    for (const { uid, epoch } of await store.vaults()) local.epochs.set(uid, epoch);
    // Another tab has compared everything with a restored server: this one goes on with that server too.
    store.listen((changed) => {
      if (changed.length || store.isClosed) return;
      const follow = async (): Promise<unknown> => (await engine()).updateDevice(local);
      store
        .open()
        .alone("sync", follow)
        .catch(() => undefined); // then the next sync does it
    });
    // A newer keyring is kept at once: after a restore, the keys in it may be nowhere else.
    core.onKeyring.push(async () => {
      if (!store.isClosed) await store.transaction((tables) => storeKeys(core, tables));
    });
    return local;
  } catch (fault) {
    store.close();
    throw fault;
  }
}

function ownerOf({ token, ring }: Core): string {
  if (token) {
    // The name on the wire that the collection had first: a rotation adds others, and its agents get new tokens.
    const scope = "wires" in token.keys ? (token.keys.wires.at(-1) ?? "") : "";
    return `token ${toUrl(token.keys.account)} ${token.keys.vault} ${scope}`.trim();
  }
  if (!ring) throw new Locked();
  return `account ${toUrl(ring.account)}`;
}

/** With another token for the same place, what the one before did not allow is tried again. */
async function noteToken({ token }: Core, tables: Tables): Promise<void> {
  if (!token) return;
  const known = toUrl((await digest(token.token.apiKey)).subarray(0, PARENT));
  if (known === (await tables.fact("token"))) return;
  tables.setFact("token", known);
  await tables.offerAgain([codeOf(InsufficientScope)]);
}

/**
 * Keep what opens the account without a server: its descriptor and its keyring, as the server has them.
 *
 * The email is kept sealed. What the slow step needs of it is its salt. A keyring is kept only if it was made knowing of
 * the one that is here.
 */
export async function storeKeys(core: Core, tables: Tables): Promise<void> {
  const { ring, sealed, descriptor, email } = core;
  const before = await tables.fact("keyring");
  if (!ring || sealed === undefined || !descriptor || email === undefined || sealed === before) return;
  const version = Number((await tables.fact("keyring version")) ?? 0);
  if (before !== undefined) {
    // It is newer, or neither follows on the other.
    const isOwn = version >= ring.version || ring.followsOn(version, await digestOf(before)) === false;
    if (isOwn) return (await engine()).useOwn(core, tables, before);
  }
  const [known, identities] = [await tables.fact("identity"), await ring.identityChecks()];
  must(known === undefined || identities.includes(known), OLD_KEYS);
  if (before !== undefined) {
    countGap(core, ring, version, await digestOf(before));
    if (readHead(before).generation === ring.generation) requireDirectory(await ring.reopened(before), ring);
  }
  const seen = await tables.fact("descriptor");
  if (seen !== undefined) checkWork(descriptor, readDescriptor(seen));
  tables.setFact("salt", toBase64(await kdfSalt(email, descriptor)));
  tables.setFact(
    "email",
    toBase64(await sealBox(await emailKey(ring), primitives().random(KEY), text(email), emailLabel(ring))),
  );
  tables.setFact("descriptor", JSON.stringify(spellDescriptor(descriptor)));
  tables.setFact("keyring", sealed);
  await vaultKeys.keepAll(tables, ring);
  tables.setFact("identity", identities.at(-1));
  tables.setFact("keyring version", `${ring.version}`);
  tables.setFact(
    "generations",
    JSON.stringify(Object.fromEntries(ring.vaults.map(({ uid, generation }) => [uid, generation]))),
  );
}

/** The key that seals the account's email. */
export const emailKey = (ring: Keyring): Promise<Key> => vaultKeys.storageKey(ring, "replica-email");
/** What the email is sealed for. */
export const emailLabel = ({ account }: Keyring): Bytes => items("replica-email", account);

/** The vaults of a replica, those included that were made here and are not sent yet. */
export async function openVaults(local: Local, tables: Tables = local.store): Promise<OpenVault[]> {
  await local.followKeys(tables);
  const { core } = local;
  const known = new Map((await tables.vaults()).map((vault) => [vault.uid, vault]));
  if (core.token) {
    const record = known.get(core.token.keys.vault);
    if (!record || "wires" in core.token.keys) return [];
    return [await (await rare()).tokens.tokenVault(core, record.wire)];
  }
  const ring = core.keyring();
  const created = new Map((await vaultKeys.createdVaults(tables, ring)).map((vault) => [vault.uid, vault]));
  const found = [...created.values()].filter(({ uid }) => !ring.entry(uid)).map((vault) => openCreated(ring, vault));
  for (const entry of ring.vaults)
    if (known.has(entry.uid) || created.has(entry.uid)) found.push(openEntry(core, entry));
  return (await Promise.all(found)).sort((one, other) => compare(one.uid, other.uid));
}

const openCreated = async (ring: Keyring, vault: vaultKeys.KeptVault): Promise<OpenVault> =>
  openVaultWith(await vaultKeys.keysOf(ring, vault), vault);

/** One vault of a replica. With `create` it is made here, if there is none of this name; the next sync sends it. */
export async function openVault(
  local: Local,
  name: string | undefined,
  create: boolean,
  sealed: boolean,
): Promise<OpenVault> {
  const { token } = local.core;
  if (token && "wires" in token.keys) throw new Locked("This token opens one collection; use collection().");
  if (name === undefined && !token) throw new Invalid({ name: "is required" });
  const find = async (tables: Tables): Promise<OpenVault | undefined> =>
    (await openVaults(local, tables)).find((opened) => name === undefined || opened.name === name);
  const found = await find(local.store);
  if (found) return found;
  if (!create || name === undefined || token || local.core.keyring().vault(name)) {
    throw new VaultNotFound("There is no such vault in this replica; sync first, if it is new.");
  }
  return local.store.transaction(async (tables) => {
    const ring = local.core.keyring();
    const meanwhile = await find(tables);
    if (meanwhile) return meanwhile;
    return openCreated(
      ring,
      await vaultKeys.createVault(tables, ring, newUid(), checkedVaultName(name, sealed), sealed),
    );
  });
}

/** The scopes of all vaults of a replica, by uid. */
export async function scopesOf(local: Local, opened?: OpenVault[]): Promise<Map<string, Scope>> {
  const { token } = local.core;
  if (token) return new Map([[token.keys.vault, new Scope(token.keys)]]);
  const scopes = new Map<string, Scope>();
  for (const { uid, keys } of opened ?? (await openVaults(local))) {
    scopes.set(uid, await local.writable(local.store, new Scope(keys)));
  }
  return scopes;
}

/** The blob of a vault, as last received; undefined where there is none. */
export async function blobOf({ store, core }: Local, { uid, keys }: OpenVault): Promise<unknown> {
  const record = (await store.blobAside(uid)) ?? (await store.vault(uid));
  if (!record || record.data === null) return undefined;
  const found = toValue(await openKnownBlob(keys, record.wire, record));
  core.device.recordBlob(vaultRow(record));
  return found;
}

/** A vault as the server shows it. */
const vaultRow = ({ uid, wire, version, clock, epoch, data, salt }: VaultRecord) => ({
  uid,
  name: wire,
  version,
  updatedAt: clock,
  epoch,
  data,
  salt,
  documents: null,
  bytes: null,
});
