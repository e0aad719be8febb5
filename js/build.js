// Builds the package: `node build.js` checks the types, writes dist/ and holds the sizes against their budget.
// `node build.js --tests FOLDER` bundles the tests instead: *.test.js and *.program.js for Node.js, *.page.js for a browser.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
// KB after gzip. The core is an app of five lines, as one bundle; what is loaded later is not counted. Nor does what the
// core has count again for the others. The replica is what such an app loads more to open one in IndexedDB, to read, write
// and follow it; syncs and conflicts are loaded when they are first used, and are the rest of "replica with sync".
const BUDGET = { "five lines": 26, argon2: 15, replica: 12, "replica with sync": 29, items: 12, react: 3 };
const SHARED = {
  absWorkingDir: HERE,
  bundle: true,
  format: "esm",
  target: "es2022",
  splitting: true,
  external: ["node:*", "react"],
  logLevel: "warning",
};
// A worker is a file of its own beside the file that starts it.
const WORKER = { ...SHARED, splitting: false, minify: true, entryPoints: ["src/argon2/worker.ts"] };
const present = (paths) => paths.filter((path) => existsSync(join(HERE, path)));

const tests = process.argv[2] === "--tests" ? process.argv[3] : undefined;
if (tests !== undefined) {
  const files = readdirSync(join(HERE, "test")).filter((name) => /\.(test|page|program)\.ts$/.test(name));
  await build({
    ...SHARED,
    external: ["node:*"],
    entryPoints: files.map((name) => `test/${name}`),
    outdir: tests,
    sourcemap: "inline",
  });
  await build({ ...WORKER, outfile: join(tests, "argon2-worker.js") });
  writeFileSync(join(tests, "package.json"), '{"type": "module"}\n');
} else {
  rmSync(join(HERE, "dist"), { recursive: true, force: true });
  run("--noEmit");
  run(
    "--noEmit",
    "false",
    "--declaration",
    "--emitDeclarationOnly",
    "--rootDir",
    "src",
    "--outDir",
    "dist/types",
    "-p",
    "tsconfig.dist.json",
  );
  const entryPoints = present(
    ["index", "replica", "items", "react", "argon2", "passkeys", "node"].map((name) => `src/${name}.ts`),
  );
  const { metafile } = await build({
    ...SHARED,
    minify: true,
    entryPoints,
    outdir: "dist",
    metafile: true,
    sourcemap: true,
  });
  const worker = await build({ ...WORKER, outfile: "dist/argon2-worker.js", metafile: true });
  copyFileSync(join(HERE, "../LICENSE"), join(HERE, "LICENSE"));
  writeFileSync(join(HERE, "dist/THIRD-PARTY-LICENSES"), licences({ ...metafile.inputs, ...worker.metafile.inputs }));
  const core = await app("fiveLines");
  const good = [
    tell("five lines", core),
    tell("replica", (await app("replicaLines")) - core),
    tell("replica with sync", (await app("replicaLines", /\/engine\.js$/)) - core),
    weigh(metafile.outputs),
  ];
  process.exitCode = good.every(Boolean) ? 0 : 1;
}

/** The licences of the packages of which something is in the files that were built. */
function licences(inputs) {
  const names = Object.keys(inputs).flatMap((path) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []);
  return [...new Set(names)]
    .sort()
    .map((name) => {
      const folder = join(HERE, "node_modules", name);
      const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf-8"));
      const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
      if (file === undefined) throw new Error(`${name} comes without the text of its licence`);
      return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf-8").trim()}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

/** Run the compiler; end with its exit code if it finds a fault. */
function run(...options) {
  const done = spawnSync(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), ...options], {
    cwd: HERE,
    stdio: "inherit",
  });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

/** The bytes of a small app, after gzip: without what it loads later, but for what matches. */
async function app(name, wanted = /^$/) {
  const isLater = ({ kind, path }) =>
    kind === "dynamic-import" && !wanted.test(path) ? { path, external: true } : undefined;
  const later = { name: "later", setup: ({ onResolve }) => onResolve({ filter: /./ }, isLater) };
  const { outputFiles } = await build({
    ...SHARED,
    splitting: false,
    minify: true,
    entryPoints: [`test/${name}.ts`],
    plugins: [later],
    write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

/** Print the size of each other entry; whether all are within the budget. */
function weigh(outputs) {
  const gzipped = (path) => gzipSync(readFileSync(join(HERE, path)), { level: 9 }).length;
  const needed = (path, found = new Set()) => {
    if (!found.has(path)) {
      found.add(path);
      for (const { path: next, kind, external } of outputs[path].imports)
        if (!external && kind === "import-statement") needed(next, found);
    }
    return found;
  };
  const core = needed("dist/index.js");
  const replica = needed("dist/replica.js");
  let good = true;
  for (const [path, { entryPoint }] of Object.entries(outputs)) {
    if (!entryPoint || !path.endsWith(".js")) continue;
    const name = basename(path, ".js");
    if (name === "index" || name === "replica") continue;
    const files = [...needed(path)].filter(
      (file) => !core.has(file) && !(/^(react|engine|indexedDb)/.test(name) && replica.has(file)),
    );
    if (name === "argon2") files.push("dist/argon2-worker.js");
    good =
      tell(
        name,
        files.reduce((sum, file) => sum + gzipped(file), 0),
      ) && good;
  }
  return good;
}

/** Print a size; whether it is within its budget. */
function tell(name, bytes) {
  const most = BUDGET[name];
  console.log(
    `${name.padEnd(24)} ${(bytes / 1000).toFixed(1).padStart(6)} KB gz${most === undefined ? "" : ` of ${most}`}`,
  );
  return most === undefined || bytes <= most * 1000;
}
