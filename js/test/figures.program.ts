// What the client costs in Node.js: prints figures as JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { replicaFile } from "../src/node.js";
import { sealing, syncing } from "./figures.js";

const [url = "", email = "", password = "", path = "", count = ""] = process.argv.slice(2);
const held = (name: string): number =>
  Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf-8"))?.[1]);

const sealed = await sealing();
writeFileSync("/proc/self/clear_refs", "5"); // the peak counts anew
const before = held("VmRSS");
const synced = await syncing(url, email, password, replicaFile(path), Number(count));
console.log(JSON.stringify({ ...sealed, ...synced, peak: held("VmHWM") - before }));
