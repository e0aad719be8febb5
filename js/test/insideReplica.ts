// What tests look at inside a replica, which no program can.
import { localOf, type Replica } from "../src/replica/replica.js";

/** Perform a test's own operation on what is inside a replica. */
export async function perform(replica: Replica, name: string, values: unknown[]): Promise<unknown> {
  const { store } = localOf(replica);
  if (name === "epochs") return (await store.vaults()).map(({ epoch }) => epoch);
  if (name === "wasSent") return store.wasSent(String(values[0]), String(values[1]));
  if (name === "fact") return store.fact(String(values[0]));
  if (name === "uids") return (await store.heads(String(values[0]))).map(({ uid }) => uid);
  throw new Error(`there is no operation ${name}`);
}
