// The actor as a program: a question on each line of its input, an answer on each line of its output.
import { createInterface } from "node:readline";
import { act } from "./actor.js";

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await act(JSON.parse(line) as Parameters<typeof act>[0]))}\n`);
