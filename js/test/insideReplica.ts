// What tests look at inside a replica, which no program can.
import { localOf, type Replica } from "../src/replica/replica.js";
import type { Table } from "../src/replica/storage.js";

/** Perform a test's own operation on what is inside a replica. */
export async function perform(replica: Replica, name: string, values: unknown[]): Promise<unknown> {
  const { store } = localOf(replica);
  if (name === "epochs") return (await store.vaults()).map(({ epoch }) => epoch);
  if (name === "wasSent") return store.wasSent(String(values[0]), String(values[1]));
  if (name === "fact") return store.fact(String(values[0]));
  if (name === "list") return store.storage.list(values[0] as Table);
  throw new Error(`there is no operation ${name}`);
}
