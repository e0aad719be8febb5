// What tests ask of items: the name of a question and its JSON are arguments, the answer is printed as JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { Client } from "../src/index.js";
import {
  field,
  FileRefused,
  findItem,
  fromStored,
  guessFormat,
  type Item,
  items,
  type Login,
  makePlan,
  Problem,
  type ReadFormat,
  readItems,
  strength,
  toStored,
  type WriteFormat,
  writeItems,
} from "../src/items.js";
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
  items: (given: unknown[]) =>
    given.map((raw) => {
      const item = fromStored(raw);
      return [item.type === "" ? item.problem : "", toStored(item)];
    }),
  edit,
  read: readFiles,
  write: writeFiles,
  plan: plans,
  guess: (given: [string, string][]) =>
    given.map(([name, head]) => guessFormat(name, Buffer.from(head, "base64")) ?? null),
  many: manyItems,
  work: async (given: { format: ReadFormat; paths: string[] }[]) => {
    const found: number[][] = [];
    for (const { format, paths } of given)
      found.push(
        await workFor(
          format,
          paths.map((path) => readFileSync(path)),
        ),
      );
    return found;
  },
  usage: async (given: { files: GivenFile[]; out: string }) => {
    const seconds = await processorTime(() => readFiles(given));
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf-8"))?.[1]; // KB
    return { peak: Number(peak), seconds, reference: await referenceTime() };
  },
};

/** The seconds of the processor that this process spends on some work. */
async function processorTime(work: () => unknown): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** The seconds of the processor in which 4 MiB of numbers are read as JSON: with them, other times are compared. */
async function referenceTime(): Promise<number> {
  const numbers = `[${"1,".repeat(2 << 20)}1]`;
  return processorTime(() => void JSON.parse(numbers));
}

/** What an import of each file would do. */
async function plans(given: { format: ReadFormat; path: string; present: [string, unknown][] }[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const { format, path, present } of given) {
    const counted: number[] = [];
    const rows = present.map(([uid, raw]) => ({ uid, value: fromStored(raw) }));
    const plan = await makePlan(readItems(format, readFileSync(path)), rows, (count) => counted.push(count));
    found.push([plan.new.map(toStored), plan.known, plan.problems, plan.counts, counted.at(-1)]);
  }
  return found;
}

/** How long a large file takes, and one of half its size, and whether others have their turn meanwhile. */
async function manyItems({ format, path, half }: { format: ReadFormat; path: string; half: string }): Promise<unknown> {
  let [turns, last] = [0, 0];
  let timer: ReturnType<typeof setInterval> | undefined;
  const planOf = (file: Uint8Array): Promise<Awaited<ReturnType<typeof makePlan>>> =>
    makePlan(readItems(format, file), [], (count) => {
      timer ??= setInterval(() => (turns += 1), 1);
      last = count;
    });
  const smaller = readFileSync(half);
  await planOf(smaller); // by now the code is compiled
  const halfSeconds = await processorTime(() => planOf(smaller));
  clearInterval(timer);
  [turns, timer] = [0, undefined];
  let plan: Awaited<ReturnType<typeof makePlan>> | undefined;
  const seconds = await processorTime(async () => (plan = await planOf(readFileSync(path))));
  clearInterval(timer);
  return {
    new: plan?.new.length,
    problems: plan?.problems.length,
    last,
    turns,
    seconds,
    halfSeconds,
    reference: await referenceTime(),
  };
}

/** The seconds of the processor for a small and a large file, in and out again, the least of some runs; the reference. */
async function workFor(format: ReadFormat, [small, large]: readonly Uint8Array[]): Promise<number[]> {
  const least = async (file: Uint8Array = new Uint8Array(0), rounds = 1): Promise<number> => {
    let found = Infinity;
    for (let round = 0; round < rounds; round += 1) {
      found = Math.min(found, await processorTime(() => inAndOut(format, file)));
    }
    return found;
  };
  return [await least(small, 4), await least(large), await referenceTime()];
}

async function inAndOut(format: ReadFormat, file: Uint8Array): Promise<void> {
  const rows: [string, Item][] = [];
  try {
    for await (const one of readItems(format, file))
      if (!(one instanceof Problem)) rows.push([`uid-${rows.length}`, one]);
  } catch (fault) {
    if (!(fault instanceof FileRefused)) throw fault; // with too many columns
  }
  if (format !== "cxf" && format !== "bitwarden") return;
  let again = 0;
  for await (const _ of readItems(format, await writeItems(format, rows, { now: 1 }))) again += 1;
  if (again !== rows.length) throw new Error(`${rows.length} items were written, and ${again} were read again`);
}

interface GivenFile {
  readonly format: ReadFormat;
  readonly path: string;
  readonly password: string | null;
}

/** What each file has, or why it is refused; it is written to a file, for it may be long. */
async function readFiles({ files, out }: { files: GivenFile[]; out: string }): Promise<number> {
  const results: unknown[] = [];
  for (const { format, path, password } of files) {
    const found: unknown[] = [];
    try {
      for await (const one of readItems(format, readFileSync(path), { password: password ?? undefined })) {
        found.push(one instanceof Problem ? { problem: one.sentence } : { item: toStored(one) });
      }
      results.push({ found });
    } catch (error) {
      if (!(error instanceof FileRefused)) throw new Error(`${path}: ${String(error)}`, { cause: error });
      results.push({ refused: error.name, sentence: error.message, found });
    }
  }
  writeFileSync(out, JSON.stringify(results));
  return results.length;
}

/** The files that items become, one for each list of them. */
async function writeFiles({ path, out }: { path: string; out: string }): Promise<number> {
  const given = JSON.parse(readFileSync(path, "utf-8")) as {
    format: WriteFormat;
    items: [string, unknown][];
    now: number;
  }[];
  const made = await Promise.all(
    given.map(async ({ format, items: all, now }) =>
      new TextDecoder().decode(
        await writeItems(
          format,
          all.map(([uid, raw]) => [uid, fromStored(raw)] as const),
          { now },
        ),
      ),
    ),
  );
  writeFileSync(out, JSON.stringify(made));
  return made.length;
}

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
  return {
    username: (await field(github.value, "username")).value,
    problem: odd.value.type === "" && odd.value.problem,
  };
}

hashCheaply();
const [, , name = "", given = "null"] = process.argv;
const told = given.startsWith("/") ? readFileSync(given, "utf-8") : given;
console.log(JSON.stringify(await questions[name]?.(JSON.parse(told) as never)));
