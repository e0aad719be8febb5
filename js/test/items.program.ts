// What tests ask of items: the name of a question and its JSON are arguments, the answer is printed as JSON.
import { Client } from "../src/index.js";
import { field, findItem, fromStored, items, type Login, strength, toStored } from "../src/items.js";
import { replicaFile } from "../src/node.js";
import { openReplica } from "../src/replica.js";
import { hashCheaply } from "./cheapHashing.js";

interface Account {
  readonly url: string;
  readonly email: string;
  readonly password: string;
  /** The file of a replica; empty for none. */
  readonly replica: string;
}

const questions: Record<string, (given: never) => unknown> = {
  strength: (given: string[]) => given.map((one) => strength(one).bits),
  items: (given: unknown[]) => given.map((raw) => {
    const item = fromStored(raw);
    return [item.type === "" ? item.problem : "", toStored(item)];
  }),
  edit,
};

/** Change the item GitHub, and write another one again as it is; in the account or in a replica of it. */
async function edit({ url, email, password, replica: file }: Account): Promise<unknown> {
  const client = new Client(url);
  await client.login(email, password);
  const replica = file ? await openReplica(client, replicaFile(file)) : undefined;
  await replica?.sync();
  const vault = await (replica ?? client).vault("Personal");
  const found = items(vault);
  const [github, odd] = [await findItem("github", found), await findItem("odd", found)];
  await found.replace(github, { ...(github.value as Login), password: "new" });
  await found.replace(odd, odd.value);
  await replica?.sync();
  await replica?.close();
  await client.close();
  return { username: (await field(github.value, "username")).value, problem: odd.value.type === "" && odd.value.problem };
}

hashCheaply();
const [, , name = "", given = "null"] = process.argv;
console.log(JSON.stringify(await questions[name]?.(JSON.parse(given) as never)));
