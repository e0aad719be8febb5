// The five lines of an app: what a bundle of them weighs is the size of the core.
import { Client } from "../src/index.js";

const client = new Client("http://127.0.0.1:3000");
await client.register("grace@example.com", "correct horse battery staple");
const notes = (await client.vault("personal", { create: true })).collection("notes");
const note = await notes.create({ title: "Hello" });
await notes.replace(note, { title: "Hello again" });
for await (const { value } of notes) console.log(value);
