// Sync: pull, resolve conflicts, push, until nothing is left to do.
import {
  codeOf,
  DocumentConflict,
  DocumentNotFound,
  KeyringConflict,
  MethodNotAllowed,
  NotFound,
  RolledBack,
  Tampered,
  Unauthorized,
  UidTaken,
  VaultNotFound,
} from "../errors.js";
import { must } from "../format/encoding.js";
import { verifyDocument } from "../format/seal.js";
import { rare } from "../lazyImports.js";
import type { VaultRow } from "../net/decoders.js";
import { get as getDocument } from "../net/requests/documents.js";
import { health } from "../net/requests/server.js";
import { get as getVault } from "../net/requests/vaults.js";
import { Scope, WRONG_DOCUMENT } from "../operations/documents.js";
import { addVault, recreateVault } from "../operations/newVaults.js";
import { TWO_KEYRINGS } from "../operations/rollback.js";
import { listWithRows, updateWire } from "../operations/vaultChanges.js";
import type { OpenVault } from "../operations/vaults.js";
import { compareRows, updateDevice } from "./afterRestore.js";
import { recreateEntry, undecidedBlobs, undecidedConflicts } from "./conflicts.js";
import { isNew } from "./incoming.js";
import type { Local } from "./local.js";
import { isRefusal, nextBatch, push, PushResult, repeat } from "./outgoing.js";
import { hasChanges, pullVault, requireFloor } from "./pull.js";
import { isSameEntry } from "./records.js";
import { refusedChanges, refuseDeletedVault, TEMPORARY } from "./refused.js";
import { checkedResolver, type Resolver } from "./resolutions.js";
import { type Report, RunningReport, type SyncProgress } from "./report.js";
import { storeKeys } from "./unlock.js";
import { addRenamed, createdVaults, renamed } from "./vaultKeys.js";

const ROUNDS = 20;
const HIDDEN = "Your directory has a vault that this device has seen, and the server says that there is none.";
const UNSAID =
  "Your directory lacks a vault that this device has, and nobody who has the keys said that it was deleted.";
const REVOKED = "This token was revoked or has expired, or the account was deleted.";
const AWAY = "The vault of this token was deleted, or the token does not reach it any more.";
const STUCK = "The server refuses a change as out of date, and shows nothing newer.";

/** Run a sync until no entry is left that can be sent. */
export async function runSync(
  local: Local,
  resolver?: Resolver,
  progress?: (progress: SyncProgress) => void,
): Promise<Report> {
  const sync = new Sync(local, resolver && checkedResolver(resolver), progress);
  try {
    return await sync.run();
  } catch (refused) {
    const isAway = refused instanceof VaultNotFound;
    if (!local.core.token || !(isAway || refused instanceof Unauthorized)) throw refused;
    const waiting = (await local.store.entries()).length;
    const more = waiting
      ? ` Changes that wait in this replica: ${waiting}. Another token for the same place sends them.`
      : "";
    throw isAway ? new VaultNotFound(AWAY + more) : new Unauthorized(REVOKED + more);
  }
}

class Sync {
  readonly #local: Local;
  readonly #resolver: Resolver | undefined;
  readonly #running: RunningReport;
  #scopes = new Map<string, Scope>();
  readonly #deleted = new Set<string>();
  #epoch = "";

  constructor(local: Local, resolver: Resolver | undefined, progress: ((progress: SyncProgress) => void) | undefined) {
    this.#local = local;
    this.#resolver = resolver;
    this.#running = new RunningReport(progress);
  }

  async run(): Promise<Report> {
    const [local, { core, store }, { report }] = [this.#local, this.#local, this.#running];
    await local.forgetTold();
    const spell = (vault: string, uid: string, kind: string): string => `${vault}\n${uid}\n${kind}`;
    const before = new Set((await store.refusals()).map(({ vault, uid, kind }) => spell(vault, uid, kind)));
    await store.transaction((tables) => tables.offerAgain(TEMPORARY));
    if (!local.limit.asked) await this.#askLimits();
    for (let round = 0, stuck = ""; round < ROUNDS; round += 1) {
      await this.#pull();
      await this.#resolveConflicts();
      const pushed = new PushResult();
      for (const scope of this.#scopes.values()) await this.#pushVault(scope, pushed);
      report.pushed += pushed.done;
      if (!pushed.stale.size) break;
      const stale = [...pushed.stale].sort().join("\n");
      must(stuck !== stale || pushed.done > 0, STUCK);
      stuck = stale;
    }
    if (await updateDevice(local)) store.tellOthers(); // their clients have seen the same
    report.keyringGaps = core.gaps.size - local.keyringGaps;
    local.keyringGaps = core.gaps.size;
    await this.#rememberEpoch();
    report.renamedVaults = await renamed(store, core);
    report.conflicts = await undecidedConflicts(local, this.#scopes);
    report.blobConflicts = await undecidedBlobs(local, this.#scopes);
    report.refused = await refusedChanges(local);
    report.newlyRefused = report.refused.filter(
      ({ vault, uid, reason }) => !before.has(spell(vault, uid, reason.kind)),
    ).length;
    local.reported = true;
    return report;
  }

  /** Ask once for each opened replica which requests the server accepts. */
  async #askLimits(): Promise<void> {
    const { core, limit, store } = this.#local;
    try {
      const { epoch, maxBodyBytes } = await core.session.send(health());
      this.#epoch ||= epoch;
      await store.transaction(async (tables) => {
        limit.learn(tables, maxBodyBytes);
        await tables.offerAgain([], limit.maxBytes);
      });
      limit.asked = true;
    } catch (refusal) {
      if (!(refusal instanceof NotFound || refusal instanceof MethodNotAllowed)) throw refusal;
    }
  }

  // Pulling

  async #pull(): Promise<void> {
    const rows = [...(await this.#vaults()).values()];
    const changed: VaultRow[] = [];
    for (const row of rows) if (await hasChanges(this.#local, row)) changed.push(row);
    const isCounted = changed.every(({ documents }) => documents !== null);
    this.#running.begin(isCounted ? changed.reduce((sum, { documents }) => sum + (documents ?? 0), 0) : undefined);
    for (const row of changed) await pullVault(this.#local, this.#running, this.#scope(row.uid), row);
    for (const scope of this.#scopes.values()) await requireFloor(this.#local, this.#running, scope);
    this.#local.timestamp = rows.reduce((last, { updatedAt }) => Math.max(last, updatedAt), 0);
  }

  #scope(uid: string): Scope {
    const scope = this.#scopes.get(uid);
    must(scope !== undefined);
    return scope;
  }

  /** The current rows of all vaults of this replica. */
  async #vaults(): Promise<Map<string, VaultRow>> {
    const { core, store } = this.#local;
    if (core.token) {
      const { keys } = core.token;
      const row = await core.session.send(getVault(keys.vault));
      must(row.uid === keys.vault);
      if (!("wires" in keys)) await (await rare()).tokens.tokenVault(core, row.name);
      this.#scopes = new Map([[row.uid, new Scope(keys)]]);
      return new Map([[row.uid, row]]);
    }
    let opened: [OpenVault, VaultRow][];
    try {
      must(!core.isForked, TWO_KEYRINGS);
      opened = await listWithRows(core);
    } catch (refusal) {
      const isOther = refusal instanceof RolledBack || refusal instanceof Tampered;
      if (!isOther || !(await this.#isRestored())) throw refusal;
      await (await rare()).credentials.restore(core);
      opened = await listWithRows(core);
    }
    if (await this.#makeVaults()) opened = await listWithRows(core);
    await store.transaction((tables) => storeKeys(core, tables));
    this.#scopes = new Map(opened.map(([{ uid, keys }]) => [uid, new Scope(keys)]));
    const found = new Map<string, VaultRow>();
    for (const [vault, shown] of opened) {
      let row = shown;
      const record = await store.vault(row.uid);
      if (!vault.wires.includes(row.name) && (!record || record.epoch === row.epoch)) {
        row = await updateWire(core, vault, record && [record.version, record.data ?? ""]); // an interrupted rename
      }
      found.set(row.uid, row);
    }
    await this.#checkMissing(found);
    return found;
  }

  /** Make the vaults on the server that were made on this device; whether there were any. */
  async #makeVaults(): Promise<boolean> {
    const [local, { core, store }] = [this.#local, this.#local];
    const created = await createdVaults(store, core.keyring());
    for (const vault of created) {
      const { uid } = vault;
      let made: OpenVault | undefined;
      try {
        made = await addVault(core, vault);
      } catch (refused) {
        if (!isRefusal(refused)) throw refused;
        await store.transaction(async (tables) => {
          for (const entry of await tables.entries(uid))
            tables.putRefusal({ vault: uid, uid: entry.uid, kind: refused.code });
        });
        continue;
      }
      await store.transaction(async (tables) => {
        for (const held of await tables.heldBack(uid)) tables.dropRefusal(uid, held);
        if (made && made.name !== vault.name)
          await addRenamed(tables, core, [{ uid, wanted: vault.name, name: made.name }]);
      });
      if (!made) await refuseDeletedVault(local, uid);
    }
    return created.length > 0;
  }

  /** Vaults that are not there: deleted by a key holder, lost in a restore, or hidden. */
  async #checkMissing(found: Map<string, VaultRow>): Promise<void> {
    const [local, { core, store }] = [this.#local, this.#local];
    const ring = core.keyring();
    const known = new Set((await store.vaults()).map(({ uid }) => uid));
    for (const uid of new Set([...known, ...(await store.entries()).map(({ vault }) => vault)])) {
      if (found.has(uid)) continue;
      if (ring.isGone(uid)) await refuseDeletedVault(local, uid);
      else if (known.has(uid) && !ring.entry(uid)) throw new RolledBack(UNSAID);
    }
    for (const entry of ring.vaults) {
      if (found.has(entry.uid) || !(entry.made || known.has(entry.uid))) continue;
      if (!(await this.#isRestored())) throw new RolledBack(HIDDEN);
      const [vault, row] = await recreateVault(core, entry);
      this.#scopes.set(entry.uid, new Scope(vault.keys));
      found.set(entry.uid, row);
    }
  }

  async #epochs(): Promise<Set<string>> {
    return new Set((await this.#local.store.vaults()).map(({ epoch }) => epoch));
  }

  /** Whether the server reports a new epoch. */
  async #isRestored(): Promise<boolean> {
    this.#epoch = (await this.#local.core.session.send(health())).epoch;
    const epochs = await this.#epochs();
    if (!epochs.size) epochs.add((await this.#local.store.fact("epoch")) ?? "");
    return this.#epoch !== "" && [...epochs].some((epoch) => epoch !== "" && epoch !== this.#epoch);
  }

  /** Remember the epoch: a replica without vaults has no other record of it. */
  async #rememberEpoch(): Promise<void> {
    const { store } = this.#local;
    const epochs = await this.#epochs();
    const [epoch = this.#epoch, ...more] = epochs;
    if (more.length || epoch === "" || epoch === (await store.fact("epoch"))) return;
    await store.transaction((tables) => tables.setFact("epoch", epoch));
  }

  // Deciding and pushing

  async #resolveConflicts(): Promise<void> {
    if (!this.#resolver) return;
    for (const conflict of await undecidedConflicts(this.#local, this.#scopes)) {
      if (conflict.needsManualResolution) continue;
      await conflict.resolve(this.#resolver).catch((refusal: unknown) => {
        if (!(refusal instanceof DocumentConflict)) throw refusal; // changed here meanwhile: it stays a conflict
      });
    }
  }

  /** Send again what a restored server has forgotten; where somebody was quicker, look at what is there now. */
  async #repeat(scope: Scope): Promise<void> {
    const local = this.#local;
    for (const uid of await repeat(local, scope)) {
      const row = await local.core.session.send(getDocument(scope.vault, uid));
      must(row.uid === uid && (await local.store.vault(scope.vault)) !== undefined, WRONG_DOCUMENT);
      await compareRows(local, scope, [row]);
    }
  }

  async #pushVault(scope: Scope, pushed: PushResult): Promise<void> {
    const { vault } = scope;
    try {
      await this.#repeat(scope);
      await this.#push(scope, pushed);
    } catch (refusal) {
      if (refusal instanceof VaultNotFound && !this.#local.core.token && !this.#deleted.has(vault)) {
        this.#deleted.add(vault); // since the pull: the next one shows what a key holder says about that
      } else if (!(refusal instanceof KeyringConflict)) {
        throw refusal; // after a KeyringConflict, the next pull takes the newer keyring, and seals anew by that
      }
      pushed.stale.add(vault);
    }
  }

  async #push(scope: Scope, pushed: PushResult): Promise<void> {
    const local = this.#local;
    this.#running.begin((await local.store.entries()).length);
    for (let after = 0; ; ) {
      const batch = await nextBatch(local, scope, after);
      const last = batch.at(-1);
      if (!last) break;
      after = last.entry.seq;
      const before = pushed.done;
      await push(local, scope, batch, pushed);
      this.#running.add("push", pushed.done - before);
    }
    for (const uid of pushed.missing) await this.#recreateMissing(scope, uid);
    for (const uid of pushed.taken) await this.#refuseTaken(scope, uid);
  }

  /** Record that a new document has the uid of one in another vault or collection, or out of reach. */
  async #refuseTaken({ vault }: Scope, uid: string): Promise<void> {
    const { core, store } = this.#local;
    const entry = await store.entry(vault, uid);
    if (!entry) return;
    try {
      const { collection } = await core.session.send(getDocument(vault, uid));
      if (collection === entry.collection) return; // the next pull brings it
    } catch (refusal) {
      if (!(refusal instanceof DocumentNotFound)) throw refusal;
    }
    await store.transaction((tables) => {
      tables.putRefusal({ vault, uid, kind: codeOf(UidTaken) });
      tables.forgetSent(vault, uid);
    });
  }

  /** Turn a change whose base was purged from the server's trash into a new document. */
  async #recreateMissing(scope: Scope, uid: string): Promise<void> {
    const [local, { core, store }, { vault }] = [this.#local, this.#local, scope];
    const entry = await store.entry(vault, uid);
    if (!entry) return;
    const row = await core.session.send(getDocument(vault, uid)).catch((refusal: unknown) => {
      throw refusal instanceof DocumentNotFound ? new RolledBack() : refusal;
    });
    const made = await verifyDocument(await scope.key(row.collection), row);
    if (row.uid !== uid) throw new Tampered(WRONG_DOCUMENT);
    isNew(await store.head(vault, uid), row);
    if (!made.purged || row.version !== entry.base) return; // a deletion that is not known here yet: it is pulled
    await store.transaction(async (tables) => {
      if (!isSameEntry(await tables.entry(vault, uid), entry)) return; // changed meanwhile: the next round meets it
      await tables.putRows(vault, [[row, true]]);
      await recreateEntry(local, tables, scope, entry);
    });
  }
}
