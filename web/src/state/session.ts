/**
 * The session: the account on this device, locked or open.
 *
 * What views may use:
 *
 * - `session`: a store with the phase. In the phase "open" it has the `client`, the open `replica` and the `email`.
 * - `useOpen()`: the same, for components that are only shown while it is open.
 * - `vaults`: a store with the open vaults (`ReplicaVault`), in the order of their names; follows syncs and other tabs.
 * - `makeVault(name)`: a new vault, on this device at once, sent with the next sync.
 * - `saveAgain()`: call it after the keys, the password or a way into the account has changed.
 * - `vaultsChanged()`: call it after a vault was renamed or deleted by `client.vault(…)`, for this tab and the others.
 * - `syncStatus` of ./sync.ts: a store with what waits (`pending`), the progress of the first sync (`first`), and what keeps
 *   this device from syncing (`problem`, whose kinds ./syncProblem.ts explains). The shell shows all of it already.
 * - `replica.undecided`: conflicts and refused changes. `replica.state`: the state of the replica itself.
 * - `onLock(forget)`: every store that holds something decrypted, and every timer of the clipboard, registers itself here
 *   once, and forgets everything when it is called. Components need not: all of them are gone from the page by then.
 * - `syncNow()`, `lock()`.
 *
 * Rules. While it is open, the session is saved in IndexedDB so that a reload and the other tabs need no password. What is
 * saved opens only with a share that the server keeps. Locking deletes it, in all tabs, and ends the session on the server,
 * which deletes the share. What was not sent stays in the replica, encrypted. Logging out deletes the replica too.
 */
import {
  Client,
  Invalid,
  InvalidCredentials,
  InvalidRefreshToken,
  Locked,
  NotFound,
  Refusal,
  Unreachable,
  type User,
} from "@strongroom/client";
import { deleteReplica, openReplica, type Replica, type ReplicaVault, unlockReplica } from "@strongroom/client/replica";
import { texts } from "../texts/en.js";
import * as device from "./device.js";
import { askFactor, question } from "./factor.js";
import { dismissAll, tell } from "./notices.js";
import { confirmKey } from "./recoveryKey.js";
import { settings } from "./settings.js";
import { createStore, type Store, useStore } from "./store.js";
import { Syncing } from "./sync.js";
import { hearTabs, isAnyTabOpen, tellTabs } from "./tabs.js";

/** The account, open. */
export interface Open {
  readonly kind: "open";
  readonly client: Client;
  readonly replica: Replica;
  readonly email: string;
}

/**
 * Where the app stands. `away`: there is no account on this device. `unsupported`: this page cannot encrypt, or it
 * `isMisplaced`: below a path, where it would ask the wrong server.
 */
export type Phase =
  | { readonly kind: "starting" }
  | { readonly kind: "unsupported"; readonly isMisplaced: boolean }
  | { readonly kind: "away" }
  | { readonly kind: "locked"; readonly hasPasskey: boolean }
  | Open;

const phase = createStore<Phase>({ kind: "starting" });
const openVaults = createStore<readonly ReplicaVault[]>([]);
const forgetters = new Set<() => void>();
const IDLE_CHECK = 1000; // milliseconds
const GOODBYE = 3000; // milliseconds that somebody waits until the server has heard of a lock
const PATIENCE = 5000; // milliseconds that the server has to give its share; then the password is asked for
let syncing: Syncing | undefined;
let vaultsOf: Replica | undefined; // whose vaults are shown
let epoch = 0; // grows with each lock: what began before one opens nothing after it
let resuming: number | undefined; // the epoch of the resume that is under way
let putOffAt = 0;

/** Where the app stands. */
export const session: Store<Phase> = phase;
/** The vaults of the account, in the order of their names. */
export const vaults: Store<readonly ReplicaVault[]> = openVaults;

/** The open account, for components that are only shown while it is open. */
export function useOpen(): Open {
  const now = useStore(session);
  if (now.kind !== "open") throw new Error("The account is locked.");
  return now;
}

/** Forget something when the app is locked; what ends that. */
export function onLock(forget: () => void): () => void {
  forgetters.add(forget);
  return () => void forgetters.delete(forget);
}

/** A client of this server, called by its kind in the list of sessions. */
export const newClient = (server: string): Client => new Client(server, { deviceName: texts.common.deviceName });

/** The name of the replica of an account. */
export const replicaName = ({ id }: User): string => `strongroom-web ${id}`;

/** Begin: open what is saved, unless it is time to lock. */
export async function start(): Promise<void> {
  if (device.isMisplaced()) return phase.set({ kind: "unsupported", isMisplaced: true });
  if (!globalThis.isSecureContext || !globalThis.crypto?.subtle)
    return phase.set({ kind: "unsupported", isMisplaced: false });
  hearTabs((message) => {
    if (message.kind === "locked") void close(message.isLoggedOut);
    else if (message.kind === "opened") void resume();
    else if (message.kind === "changed") void readVaults();
    else if (message.kind === "trouble") syncing?.hear(message.trouble);
    else if (message.kind === "sync") syncing?.retry();
    else if (message.kind === "who" && phase.getSnapshot().kind === "open") tellTabs({ kind: "here" });
  });
  watchInput();
  const isReload = device.noteTab();
  if (!device.remembered()) {
    void deleteLeft().catch(() => undefined); // tried again at the next start
    return phase.set({ kind: "away" });
  }
  const isLeft = !settings.getSnapshot().lockMinutes && !isReload && !(await isAnyTabOpen());
  if (device.isLocked() || device.isDue() || isLeft) return forgetSaved();
  await resume();
}

/** Go on with the session that is saved; without one, it is locked. */
async function resume(): Promise<void> {
  const known = device.remembered();
  if (!known) return phase.set({ kind: "away" });
  const mine = epoch;
  if (resuming === mine || device.isLocked()) return;
  resuming = mine;
  try {
    await enter(await resumed(), known.replica, mine, { isSaved: true });
  } catch (fault) {
    if (mine !== epoch) return;
    await close(false);
    if (fault instanceof Unreachable) return void tell(texts.unlock.offline);
    const hasEnded = fault instanceof Locked || fault instanceof InvalidRefreshToken;
    const isKnown = hasEnded || (fault instanceof Invalid && (await abandon()));
    if (!isKnown) tell(texts.errors.other, { kind: "fault" });
  } finally {
    if (resuming === mine) resuming = undefined;
  }
}

/** A client of the session that is saved, if the server gives its share of the key in time. */
async function resumed(): Promise<Client> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((end) => (timer = setTimeout(end, PATIENCE, undefined)));
  const opening = Client.resume(device.SESSION, { deviceName: texts.common.deviceName });
  const client = await Promise.race([opening, late]).finally(() => clearTimeout(timer));
  if (client) return client;
  void opening.then(
    (found) => found.close(),
    () => undefined,
  );
  throw new Unreachable();
}

/** Delete the saved session; whether that was possible. Where it was not, the mark of the lock keeps it shut. */
const forget = (): Promise<boolean> =>
  Client.forget(device.SESSION).then(
    () => true,
    () => false,
  );

/** Delete the saved session, and end it on the server as soon as that can be reached; whether it could be deleted. */
const abandon = (): Promise<boolean> =>
  Client.forget(device.SESSION).then(
    (end) => {
      void end();
      return true;
    },
    () => false,
  );

/** Whether it was locked since this epoch. */
const isStale = (mine: number): boolean => mine !== epoch || device.isLocked();

/** Save the session for the other tabs, unless it is locked meanwhile: then nothing stays. */
async function save(client: Client, mine: number): Promise<void> {
  try {
    await client.saveSession(device.SESSION);
  } catch (fault) {
    if (!(fault instanceof NotFound)) throw fault; // a server of an older release: the next start asks for the password
  }
  if (!isStale(mine)) return;
  await forget();
  client.close();
  throw new Locked();
}

/** Delete a session that was left open, and end it on the server if that can be reached. */
async function forgetSaved(): Promise<void> {
  device.noteLocked();
  const isForgotten = await abandon();
  showLocked();
  if (!isForgotten) tell(texts.errors.other, { kind: "fault" });
}

const showLocked = (): void => phase.set({ kind: "locked", hasPasskey: device.remembered()?.hasPasskey ?? false });

/** Show the account, unless it was locked since the epoch `mine`. */
async function enter(client: Client, name: string, mine: number, { isSaved }: { isSaved: boolean }): Promise<void> {
  const replica = await openReplica(client, name);
  if (isStale(mine)) {
    client.close();
    await replica.close();
    throw new Locked();
  }
  const before = phase.getSnapshot();
  if (replica.isNew)
    device.remember({ ...(device.remembered() ?? { server: device.defaultServer() }), replica: name, isWhole: false });
  device.putOff();
  syncing?.end();
  phase.set({ kind: "open", client, replica, email: client.email ?? "" });
  await readVaults();
  if (mine === epoch) syncing = new Syncing(client, replica, isSaved, () => void readVaults());
  if (before.kind !== "open") return;
  await before.replica.close();
  before.client.close();
}

/** Log in with this client, which has logged in or registered: open its replica, and save the session. */
async function begin(client: Client, server: string, user: User, mine: number, hasPasskey = false): Promise<void> {
  const name = replicaName(user);
  const known = device.remembered();
  if (known && known.replica !== name) {
    await client.logout().catch(() => undefined);
    throw new Refusal(texts.errors.otherAccount);
  }
  open(client, mine);
  await deleteLeft();
  device.remember({ replica: name, server, ...(hasPasskey && { hasPasskey }) });
  await abandon();
  await save(client, mine);
  await enter(client, name, mine, { isSaved: true });
  tellTabs({ kind: "opened" });
}

/** A password or a passkey has opened the account: take the mark of the lock away, unless it was locked again meanwhile. */
function open(client: Client, mine: number): void {
  if (mine === epoch) return device.noteOpened();
  client.close();
  throw new Locked();
}

/** Log in. The account of this device, if there is one, must be the same. */
export async function logIn(server: string, email: string, password: string): Promise<void> {
  const mine = epoch;
  const client = newClient(server);
  await begin(client, server, await client.login(email, password, { code: askFactor }), mine);
}

/** Log in, or unlock, with a passkey that opens the account. */
export async function logInWithPasskey(server: string): Promise<void> {
  const mine = epoch;
  const { browserAuthenticator } = await import("@strongroom/client/passkeys");
  const client = newClient(server);
  await begin(client, server, await client.loginWithPasskey(browserAuthenticator), mine, true);
}

/** Go on with an account that was just registered, or recovered. */
export const enterNew = (client: Client, server: string, user: User): Promise<void> =>
  begin(client, server, user, epoch);

/** Unlock the account of this device with its password: without the server, which is asked as soon as it can be. */
export async function unlock(password: string): Promise<void> {
  const known = device.remembered();
  if (!known) return phase.set({ kind: "away" });
  const mine = epoch;
  const client = newClient(known.server);
  try {
    await unlockReplica(client, known.replica, password, { code: askFactor });
  } catch (fault) {
    if (!(fault instanceof Invalid || fault instanceof Locked)) throw fault;
    if (!/is not there|holds no keys/.test(fault.message)) throw new Refusal(texts.unlock.notOpened);
    // The browser has deleted the replica, to make room: begin as on a new device.
    device.forgetAccount();
    phase.set({ kind: "away" });
    return void tell(texts.unlock.gone, { kind: "fault" });
  }
  open(client, mine);
  await enter(client, known.replica, mine, { isSaved: false });
}

/** Log in again, because the session has ended. What waits to be sent stays in the replica. */
export async function logInAgain(password: string): Promise<void> {
  const now = phase.getSnapshot();
  const known = device.remembered();
  if (now.kind !== "open" || !known) return;
  const mine = epoch;
  const client = newClient(known.server);
  try {
    await unlockReplica(client, known.replica, password, { code: askFactor });
  } catch (fault) {
    if (!(fault instanceof InvalidCredentials) || mine !== epoch) throw fault;
    return logIn(known.server, now.email, password); // it was changed on another device
  }
  await save(client, mine); // logs in
  await enter(client, known.replica, mine, { isSaved: true });
  tellTabs({ kind: "opened" });
}

/** Save the session again, after the keys or the ways into the account have changed; other tabs open it anew. */
export async function saveAgain(): Promise<void> {
  const now = phase.getSnapshot();
  if (now.kind !== "open") return;
  await save(now.client, epoch);
  tellTabs({ kind: "opened" });
}

/** Lock: by hand, or because nobody has used the app for some time. */
export async function lock(): Promise<void> {
  const before = phase.getSnapshot();
  if (before.kind !== "open") return;
  device.noteLocked(); // before anything that can wait
  tellTabs({ kind: "locked", isLoggedOut: false });
  await Promise.all([close(false, true), forget(), endSession(before.client)]);
}

/** Forget everything that is decrypted, and show that it is locked. `keepClient`: its session is still to be ended. */
async function close(isLoggedOut: boolean, keepClient = false): Promise<void> {
  const before = phase.getSnapshot();
  epoch++;
  if (before.kind === "open") {
    syncing?.end();
    syncing = undefined;
    vaultsOf = undefined;
    openVaults.set([]);
    dismissAll();
    question.getSnapshot()?.cancel();
    for (const forget of [...forgetters]) forget();
  }
  if (isLoggedOut) phase.set({ kind: "away" });
  else if (before.kind !== "away") showLocked();
  if (before.kind !== "open") return;
  const closing = before.replica.close();
  if (!keepClient) before.client.close();
  await closing;
}

/** End the session on the server, as soon as that can be reached; whether it was soon. Every key is forgotten at once. */
async function endSession(client: Client): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((end) => (timer = setTimeout(end, GOODBYE, false)));
  const told = client.leave().catch(() => false);
  const isTold = await Promise.race([told, late]);
  clearTimeout(timer);
  return isTold;
}

/** Log out: the session ends, and everything of the account is deleted from this device. Whether the server has heard. */
export async function logOut(): Promise<boolean> {
  const before = phase.getSnapshot();
  device.noteLocked();
  device.leaveAccount();
  confirmKey();
  tellTabs({ kind: "locked", isLoggedOut: true });
  const telling = before.kind === "open" ? endSession(before.client) : false;
  await Promise.all([close(true, true), before.kind === "open" ? forget() : abandon()]);
  await deleteLeft();
  return telling;
}

/** Delete the replica of an account that was logged out, if it is still there. */
async function deleteLeft(): Promise<void> {
  const left = device.leftReplica();
  if (left === undefined) return;
  await deleteReplica(left);
  device.noteDeleted();
}

/** Sync now, also after something that kept this device from it. */
export function syncNow(): void {
  syncing?.retry();
  tellTabs({ kind: "sync" }); // another tab may be the one that syncs for all
}

/** Read the vaults again. */
async function readVaults(): Promise<void> {
  const now = phase.getSnapshot();
  if (now.kind !== "open") return;
  try {
    const found = await now.replica.vaults();
    const isSame = (one: ReplicaVault, other: ReplicaVault | undefined): boolean =>
      one.uid === other?.uid && one.name === other.name;
    found.sort((one, other) => one.name.localeCompare(other.name) || (one.uid < other.uid ? -1 : 1));
    const before = openVaults.getSnapshot();
    if (phase.getSnapshot() !== now) return;
    if (vaultsOf === now.replica && found.length === before.length && found.every((one, at) => isSame(one, before[at])))
      return;
    vaultsOf = now.replica;
    openVaults.set(found);
  } catch (fault) {
    if (!(fault instanceof Locked)) throw fault; // it was locked meanwhile
  }
}

/** A vault was made, renamed or deleted. */
export async function vaultsChanged(): Promise<void> {
  await readVaults();
  tellTabs({ kind: "changed" });
}

/** A new vault, on this device at once, and sent as soon as the server can be reached. */
export async function makeVault(name: string): Promise<ReplicaVault> {
  const now = phase.getSnapshot();
  if (now.kind !== "open") throw new Locked();
  const made = await now.replica.vault(name, { create: true });
  await vaultsChanged();
  void now.replica.sync().catch(() => undefined); // the state of the replica says why, if it fails
  return made;
}

/** Lock when nobody has used any tab for the chosen time. */
function watchInput(): void {
  const used = (): void => {
    if (phase.getSnapshot().kind !== "open" || device.isDue()) return; // due: the next look locks
    if (Date.now() - putOffAt < IDLE_CHECK) return;
    putOffAt = Date.now();
    device.putOff();
  };
  for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart"]) {
    addEventListener(name, used, { capture: true, passive: true });
  }
  const look = (): void => {
    if (phase.getSnapshot().kind !== "open") return;
    if (device.isLocked())
      void close(false); // in another tab
    else if (device.isDue()) void lock();
  };
  setInterval(look, IDLE_CHECK);
  addEventListener("storage", look);
  addEventListener("pageshow", look); // it may come back as it was left
  document.addEventListener("visibilitychange", look); // timers of a tab in the background are late
}
