// The merge of two keyrings of one account that were made without knowing of each other (docs/format.md).
//
// Every rule treats both alike, so that two devices that merge the same two come to the same content.
import { compare, equal, isObject, must } from "./encoding.js";
import { freeName } from "./freeName.js";
import { byUid, type Keyring, shortOf } from "./keyring.js";
import { type Body, type Gone, type MergedKeyring, MOST_PAST, type Vault } from "./keyringBody.js";
import { latestGone } from "./keyringDirectory.js";

const SAME = ["account", "slots", "recovery", "identity", "storage"] as const; // in both
const KNOWN = new Set<string>([...SAME, "vaults", "gone", "past", "merged", "must"]);
const MERGED = "merged"; // a member that has to be understood where it is used

/** JSON with all members in one order. */
const spelled = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => compare(one, other))) : inner,
  );
/** Whether two values are the same in JSON, where a list is no object. */
const isSame = (one: unknown, other: unknown): boolean => spelled(one) === spelled(other);
const hex = (digest: Uint8Array): string => [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** The keyring after both, not sealed yet; Tampered where no rule decides between them. */
export function mergeKeyrings(one: Keyring, other: Keyring): Keyring {
  const isFirst = one.version === other.version ? hex(one.digest) < hex(other.digest) : one.version > other.version;
  const [first, second] = isFirst ? [one, other] : [other, one];
  const [mine, theirs] = [first.reveal().body, second.reveal().body];
  must(first.generation === second.generation && equal(first.slots, second.slots));
  for (const name of SAME) must(isSame(mine[name], theirs[name]));
  const gone = mergedGone(mine.gone, theirs.gone);
  const deleted = new Set(gone.map(({ uid }) => uid));
  const vaults = new Map(theirs.vaults.map((vault) => [vault.uid, vault]));
  for (const vault of mine.vaults) {
    const before = vaults.get(vault.uid);
    vaults.set(vault.uid, before ? mergedVault(vault, before) : vault);
  }
  const kept = [...vaults.values()].filter(({ uid }) => !deleted.has(uid)).sort(byUid);
  const needed = [...new Set([...mine.must, ...theirs.must, MERGED])].sort(compare);
  const made = first.next({ ...both(unknownOf(theirs), unknownOf(mine)), vaults: named(kept), gone, must: needed });
  return made.next({ merged: branches(made, first, second) });
}

/** The members of a body that this client does not know. */
const unknownOf = (body: Body): object => Object.fromEntries(Object.entries(body).filter(([name]) => !KNOWN.has(name)));

/** The members of both, where those that both have do not differ. */
function both<T extends object>(one: T, other: T): T {
  const [mine, theirs] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  for (const [name, value] of mine) must(!theirs.has(name) || isSame(theirs.get(name), value));
  return { ...one, ...other };
}

/** What either says was deleted is deleted, at the higher of two versions. */
function mergedGone(one: readonly Gone[], other: readonly Gone[]): Gone[] {
  const found = new Map(other.map((gone) => [gone.uid, gone]));
  for (const gone of one) {
    const before = found.get(gone.uid) ?? gone;
    const version = Math.max(gone.version, before.version);
    found.set(gone.uid, both({ ...gone, version }, { ...before, version }));
  }
  return latestGone([...found.values()]);
}

/** The keys of both, which must agree on each generation; the higher of two names, and of two floors. */
function mergedVault(one: Vault, other: Vault): Vault {
  const keys = new Map(other.keys.map((key) => [key.generation, key]));
  for (const key of one.keys) keys.set(key.generation, both(key, keys.get(key.generation) ?? key));
  const known = {
    name: compare(one.name, other.name) > 0 ? one.name : other.name,
    made: one.made || other.made,
    floor: Math.max(one.floor, other.floor),
    keys: [...keys.values()].sort((a, b) => a.generation - b.generation),
  };
  return both({ ...one, ...known }, { ...other, ...known });
}

/** Names that stand once: of two vaults with one name, the one with the higher uid gets a number. */
function named(vaults: readonly Vault[]): Vault[] {
  const wanted = new Set(vaults.map(({ name }) => name));
  const taken = new Set<string>();
  return vaults.map((vault) => {
    const name = taken.has(vault.name)
      ? freeName(vault.name, (free) => taken.has(free) || wanted.has(free) || undefined)
      : vault.name;
    taken.add(name);
    return { ...vault, name };
  });
}

/** The keyrings of both pasts that the merged one does not name in its past. */
function branches(made: Keyring, first: Keyring, second: Keyring): MergedKeyring[] {
  const [mine, theirs] = [first.reveal().body, second.reveal().body];
  const { past } = made.reveal().body;
  const line: MergedKeyring[] = [{ version: second.version, digest: shortOf(second.digest) }];
  theirs.past.forEach((digest, at) => {
    line.push({ version: second.version - theirs.past.length + at, digest });
  });
  const found = new Map<string, MergedKeyring>();
  for (const one of [...line, ...theirs.merged, ...mine.merged]) {
    const place = `${one.version} ${one.digest}`;
    found.set(place, both(one, found.get(place) ?? one));
  }
  return [...found.values()]
    .filter(({ version, digest }) => version >= made.version - MOST_PAST && past.at(version - made.version) !== digest)
    .sort((one, other) => one.version - other.version || compare(one.digest, other.digest))
    .slice(-MOST_PAST);
}
