// Changes of a keyring's directory that few programs make.
import { checkedUid } from "./encoding.js";
import { byUid, type Keyring } from "./keyring.js";
import { type Gone, MOST_GONE } from "./keyringBody.js";

/** The vaults that were deleted last, as many as a keyring names, in ascending order of uid. */
export const latestGone = (gone: readonly Gone[]): Gone[] =>
  [...gone]
    .sort((one, other) => one.version - other.version || byUid(one, other))
    .slice(-MOST_GONE)
    .sort(byUid);

/** The next version, in which this vault is gone and its keys with it. */
export function withoutVault(ring: Keyring, uid: string): Keyring {
  const own = checkedUid(uid);
  const { vaults, gone } = ring.reveal().body;
  const { version } = ring.next({});
  return ring.next({
    vaults: vaults.filter((one) => one.uid !== own),
    gone: latestGone([...gone, { uid: own, version }]),
  });
}
