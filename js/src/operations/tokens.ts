// Tokens: an API key and the keys of a vault or a collection, for an agent or another program.
import { Invalid, Locked, Tampered, VaultNotFound } from "../errors.js";
import { checkedText } from "../format/encoding.js";
import { collectionSecret, derive, type Generation } from "../format/keys.js";
import { isSealed, openName } from "../format/names.js";
import { Secret } from "../format/secret.js";
import { readToken, SCOPES, spellToken, type Token, tokenKeys } from "../format/tokens.js";
import { makeKey } from "../net/requests/accounts.js";
import { get as getVault } from "../net/requests/vaults.js";
import type { Core } from "./core.js";
import { Scope } from "./documents.js";
import { type StatePlace, TokenState } from "./tokenState.js";
import type { ValueType } from "./valueTypes.js";
import * as vaults from "./vaults.js";

/** What a token may be allowed to do. */
export type Permission = "read" | "write" | "delete";

/** What a token may do, and until when. */
export interface TokenOptions {
  /** All by default. */
  readonly permissions?: readonly Permission[] | undefined;
  /** In milliseconds since 1970; never by default. */
  readonly expiresAt?: number | undefined;
  /**
   * Whether it also opens what was written before the last rotation and not again since: versions in the history, and
   * changes that wait in the replica of an agent. False by default.
   */
  readonly olderKeys?: boolean | undefined;
}

/** An API key that reaches a vault, together with the key that opens it. */
export async function vaultToken(
  core: Core,
  name: string,
  opened: vaults.OpenVault,
  options: TokenOptions = {},
): Promise<string> {
  const { uid, name: called, sealed } = await vaults.renewed(core, opened);
  const [keys, older] = carried(core, uid, options);
  const former = older.map(
    async ([generation, key]): Promise<Generation> => [generation, new Secret(await derive(await key.key(), "names"))],
  );
  return make(core, name, options, {
    scope: sealed ? SCOPES.vault : SCOPES.plainVault,
    vault: uid,
    name: called,
    keys,
    former: sealed ? await Promise.all(former) : [],
    collections: [],
  });
}

/** An API key that reaches one collection, together with the key that opens it. */
export async function collectionToken(
  core: Core,
  name: string,
  opened: Scope<unknown>,
  options: TokenOptions = {},
): Promise<string> {
  const scope = await opened.renewed(core);
  const { name: called, wires } = await scope.writeKeys();
  const keys = carried(core, scope.vault, options)[0].map(
    async ([generation, key]): Promise<Generation> => [generation, await collectionSecret(await key.key(), called)],
  );
  return make(core, name, options, {
    scope: SCOPES.collection,
    vault: scope.vault,
    name: called,
    keys: await Promise.all(keys),
    former: [],
    collections: wires,
  });
}

/** The keys of a vault that a token carries, and those that it does not. */
function carried(core: Core, vault: string, { olderKeys = false }: TokenOptions): [Generation[], Generation[]] {
  const [keys, floor] = [core.keyring().secrets(vault), core.keyring().entry(vault)?.floor ?? 1];
  const first = olderKeys ? 0 : keys.findIndex(([generation]) => generation >= floor);
  return [keys.slice(first), keys.slice(0, first)];
}

async function make(
  core: Core,
  name: string,
  { olderKeys: _, ...options }: TokenOptions,
  parts: Pick<Token, "scope" | "vault" | "name" | "keys" | "former" | "collections">,
): Promise<string> {
  const { vault, collections } = parts;
  const { account, version: keyring } = core.keyring();
  const floor = core.keyring().entry(vault)?.floor ?? 1;
  const scopes = { vaultUids: [vault], ...(collections.length && { collections }), ...options };
  const { key: apiKey } = await core.session.send(makeKey(checkedText(name, "name"), scopes));
  try {
    return await spellToken({ apiKey, account, floor, keyring, ...parts });
  } catch (refusal) {
    if (!(refusal instanceof Invalid)) throw refusal;
    throw new Tampered("The server gave an API key that no token can carry.");
  }
}

/** Use a token instead of a session. `state` is where what was seen earlier is saved. */
export async function useToken(core: Core, spelled: string, state?: StatePlace): Promise<void> {
  let token = await readToken(spelled);
  core.lock();
  if (state) {
    core.state = new TokenState(state, token);
    token = await core.state.use(core, token);
  }
  core.session.useKey(token.apiKey);
  core.token = { token, keys: await tokenKeys(token) };
}

/** The scope of the collection that a token opens. `type` is that of its values. */
export function tokenScope<T>({ token }: Core, type?: ValueType<T>): Scope<T> {
  if (!token || !("wires" in token.keys))
    throw new Locked("Only a token that was made for one collection opens one; open its vault first.");
  return new Scope<T>(token.keys, undefined, true, type);
}

/** The vault of the token, under the name that the server shows. */
export async function tokenVault(core: Core, wire: string): Promise<vaults.OpenVault> {
  const { token, keys } = core.token ?? {};
  if (!token || !keys || "wires" in keys) throw new Locked();
  const { vault: uid, name, scope } = token;
  return named({ uid, name, wire, sealed: scope === SCOPES.vault, keys, wires: [wire] }, wire);
}

/** Open a vault by its name, or the one of the token. */
export async function openVault(
  core: Core,
  name: string | undefined,
  create: boolean,
  sealed: boolean,
): Promise<vaults.OpenVault> {
  if (!core.token) {
    if (name === undefined) throw new Invalid({ name: "is required" });
    return vaults.openVault(core, name, create, sealed);
  }
  const { token, keys } = core.token;
  if ("wires" in keys) throw new Locked("This token opens one collection; use collection().");
  const mark = core.device.mark();
  const row = await core.session.send(getVault(token.vault));
  const opened = await tokenVault(core, row.name);
  await vaults.checkVault(core, opened, row, mark);
  // It may have been renamed since the token was made.
  if (name !== undefined && name !== token.name && name !== opened.name)
    throw new VaultNotFound("This token opens another vault.");
  return opened;
}

/**
 * The vault of a token under the name that the server shows, if a key holder gave it that name.
 *
 * Whether names are sealed is the token's word. A name in the clear is the server's.
 */
export async function named(vault: vaults.OpenVault, wire: string): Promise<vaults.OpenVault> {
  if (isSealed(wire) !== vault.sealed) {
    throw new Tampered("The server shows the name of a vault in another way than the one that it was made in.");
  }
  const name = vault.sealed ? await openName(vault.keys, "vault", wire) : wire;
  return { ...vault, name, wire, wires: [wire] };
}
