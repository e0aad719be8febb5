// Runs operations of the vectors, one for each line of JSON that it is given, and writes a line with what each comes to.
import { createInterface } from "node:readline";
import { outcomeOf } from "./vectorOperations.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { does, given } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await outcomeOf(does, given))}\n`);
}
