// What a device has seen: saved and remembered, and compared again after a restore.
import { Locked } from "../errors.js";
import type { Device, KnownDocument, KnownVault, Memory } from "./device.js";

/** The newest of everything that either has seen. */
export function merged(one: Memory, other: Memory): Memory {
  const vaults = new Map(one.vaults);
  for (const [uid, known] of other.vaults) {
    const mine = vaults.get(uid);
    if (!mine || known.version > mine.version || (known.version === mine.version && known.clock >= mine.clock)) {
      vaults.set(uid, known);
    }
  }
  const rows = new Map(one.rows.map(([vault, known]) => [vault, new Map(known)]));
  for (const [vault, known] of other.rows) {
    const mine = rows.get(vault) ?? new Map<string, KnownDocument>();
    for (const [uid, row] of known) if (row.version >= (mine.get(uid)?.version ?? 0)) mine.set(uid, row);
    rows.set(vault, mine);
  }
  const account = other.account.version > one.account.version ? other.account : one.account;
  return { account, vaults: [...vaults], rows: [...rows].map(([vault, known]) => [vault, [...known]]) };
}

/** What was seen of an account, and of these vaults of it. */
export function memoryOf({ accounts, vaults, allRows }: Device, email: string, wanted: ReadonlySet<string>): Memory {
  const account = accounts.get(email);
  if (!account) throw new Locked();
  return {
    account,
    vaults: [...vaults].filter(([uid]) => wanted.has(uid)),
    rows: [...allRows].filter(([uid]) => wanted.has(uid)).map(([uid, rows]) => [uid, [...rows]]),
  };
}

/** Begin with what was seen earlier: every response from now on is held against it. */
export function remember(device: Device, email: string, { account, vaults, rows }: Memory): void {
  device.accounts.set(email, account);
  for (const [uid, known] of vaults) device.vaults.set(uid, { ...known, order: 0 });
  for (const [uid, known] of rows) {
    device.allRows.set(uid, new Map(known.map(([row, seen]) => [row, { ...seen, order: 0 }])));
  }
}

/** Remember a vault, and these of its documents, as a restored server has them; a replica has compared them. */
export function replaceVault(
  device: Device,
  uid: string,
  vault: Omit<KnownVault, "order">,
  documents: Map<string, Omit<KnownDocument, "order">>,
): void {
  device.order += 1;
  const { order } = device;
  if (device.vaults.has(uid)) device.vaults.set(uid, { ...vault, order });
  const rows = device.allRows.get(uid);
  for (const [key, known] of documents) if (rows?.has(key)) rows.set(key, { ...known, order });
}
