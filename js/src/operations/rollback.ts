// Rollback detection: refuses anything older than what this device has seen.
//
// A proof shows that a key holder made something, not that it is current. So a device records, for each document, its
// collection, the newest version and its proof; for an account, its id, the newest keyring and the strongest key derivation.
import { RolledBack, Tampered } from "../errors.js";
import { checkWork, type Descriptor, type Floor } from "../format/descriptor.js";
import { digest, fromUrl, must, toUrl } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import type { Row } from "../format/seal.js";

export const OLDER_KEYRING = "The server sent an older keyring than this device has seen.";
export const TWO_KEYRINGS =
  "The server shows a keyring that was made without knowing of the one that this device has seen.";
export const OLD_KEYS = "The server shows a newer keyring that was made without the keys that this device has seen.";
export const TWO_CONTENTS = "The server shows two contents for one version; one of them was withheld from this device.";

/** The newest version of a document that this device has seen, its proof, and the collection that it is in for good. */
export type SeenRow = readonly [version: number, proof: string, collection: string];

/** Refuse a document that is shown in another collection: whoever has the keys of that one has none of this. */
export const requireCollection = (seen: string, { collection }: Pick<Row, "collection">): void =>
  must(collection === seen, "The server shows a document in another collection than the one that it was created in.");

/** The record after a row was opened. Refuses another collection, an older version, other content of the same. */
export function nextRow(seen: SeenRow | null, row: Pick<Row, "version" | "hmac" | "collection">): SeenRow {
  const now: SeenRow = [row.version, row.hmac ?? "", row.collection];
  if (!seen) return now;
  requireCollection(seen[2], row);
  if (now[0] > seen[0]) return now;
  if (now[0] < seen[0]) throw new RolledBack();
  must(now[1] === seen[1], TWO_CONTENTS);
  return seen;
}

/** The digest of a blob, for comparison. */
export const seenBlob = async (data: string | null): Promise<string | null> =>
  data === null ? null : toUrl(await digest(data));

/** Refuse another blob for a version that was seen, and a vault without the blob that it had. */
export function checkBlob(version: number, blob: string | null, newVersion: number, newBlob: string | null): void {
  must(blob === null || newBlob !== null, "The server shows a vault without the blob that this device has seen in it.");
  must(version !== newVersion || blob === newBlob, TWO_CONTENTS);
}

/** The newest state of an account that this device has seen. Holds no secret. */
export interface SeenAccount extends Floor {
  readonly account: string;
  readonly version: number;
  readonly digest: string;
  /** `Keyring.identityChecks` of the newest generation. */
  readonly identity: string;
}

/**
 * Whether a keyring does not say if it follows on one that was seen, by its version and digest: too long ago.
 *
 * One that says that it follows on another is refused.
 */
export function isGap(keyring: Keyring, version: number, seen: Uint8Array): boolean {
  const follows = keyring.version === version || keyring.followsOn(version, seen);
  if (follows === false) throw new Tampered(TWO_KEYRINGS);
  return follows === null;
}

/** What to remember after a keyring that was opened. Another account's, or an older one, is refused. */
export async function nextAccount(
  seen: SeenAccount | null,
  keyring: Keyring,
  { memory, passes }: Descriptor,
): Promise<SeenAccount> {
  const identities = await keyring.identityChecks();
  const now: SeenAccount = {
    account: toUrl(keyring.account),
    version: keyring.version,
    digest: toUrl(keyring.digest),
    identity: identities.at(-1) ?? "",
    memory,
    passes,
  };
  if (!seen) return now;
  must(now.account === seen.account, "The server sent the keyring of another account.");
  if (now.version < seen.version) throw new RolledBack(OLDER_KEYRING);
  must(now.version !== seen.version || now.digest === seen.digest, TWO_KEYRINGS);
  isGap(keyring, seen.version, fromUrl(seen.digest));
  must(identities.includes(seen.identity), OLD_KEYS);
  checkWork(now, seen);
  return now;
}
