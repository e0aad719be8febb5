// An app with a replica: what its page loads before the first sync. js/build.js weighs it.
import { Client } from "../src/index.js";
import { openReplica } from "../src/replica.js";
import { indexedDbPlace } from "../src/replica/indexedDb.js";

const client = new Client("https://vault.example.com");
await client.login("ada@example.com", "correct horse battery staple");
const replica = await openReplica(client, indexedDbPlace("notes"));
const notes = (await replica.vault("personal", { create: true })).collection("notes");
let note = await notes.create({ title: "Hello" });
note = await notes.replace(note, { title: "Hello again" });
const store = notes.live({ search: "hello" });
store.subscribe(() => console.log(store.getSnapshot().documents.map(({ value }) => value)));
