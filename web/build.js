// Builds the web app: `node build.js` writes the folder that the server serves, and holds the sizes against their budget.
//   --out FOLDER     another folder
//   --server URL     for a copy that is hosted apart from the server: the server's address, shown in a field at log-in;
//                    such a copy has no operator's page
//   --inject FILE    a module that runs before the app; the tests hash cheaply with it
//   --check          check the types first, and fail if the first load is above its budget
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const BUDGET = 120; // KB after gzip: all that signing up, logging in, unlocking, the list and syncs need
// The policy of every page, as src/strongroom/web_release.py sends it: a page has it in its text too.
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "font-src 'none'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types strongroom strongroom-service-worker",
];
const SHARED = {
  absWorkingDir: HERE,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  alias: { "@strongroom/client": join(HERE, "../js/src"), ...ownPackages("hash-wasm") },
  metafile: true,
  write: false,
  logLevel: "warning",
};

const { values: options } = parseArgs({
  options: {
    out: { type: "string" },
    server: { type: "string", default: "" },
    inject: { type: "string" },
    check: { type: "boolean" },
  },
});
if (options.server && !/^https?:\/\/[^/?#]+$/.test(options.server)) {
  console.error("--server takes an origin, such as https://vault.example.com");
  process.exit(2);
}
const out = resolve(options.out ?? join(HERE, "../src/strongroom/server/web/static"));
if (options.check) check();

const hasOperator = !options.server; // the page reads figures of its own origin
const files = new Map(); // the content of each file, by its name under /app/
const inputs = {};

const worker = await bundle({ entryPoints: { "argon2-worker": "../js/src/argon2/worker.ts" } });
const workerName = worker.named["argon2-worker.js"];
const app = await bundle({
  entryPoints: { app: "src/main.tsx" },
  splitting: true,
  plugins: [
    { name: "worker", setup: nameWorker },
    { name: "eager imports", setup: loadEagerly },
    { name: "later", setup: followFirst },
    { name: "texts", setup: splitTexts },
  ],
  inject: options.inject ? [resolve(options.inject)] : [],
});
const operator = hasOperator ? await bundle({ entryPoints: { operator: "src/operator/main.tsx" } }) : undefined;
const texts = await textsOf("src/texts/en.ts");
const icon = add(
  hashed("assets/icon.svg", readFileSync(join(HERE, "src/icon.svg"))),
  readFileSync(join(HERE, "src/icon.svg")),
);
add("index.html", page("src/index.html", app, "app", ""));
if (operator) add("operator/index.html", page("src/operator/index.html", operator, "operator", "../"));
add("app.webmanifest", `${JSON.stringify(webManifest(), null, 2)}\n`);
add("licences.txt", licences());
add("service-worker.js", await serviceWorker());
add("manifest.json", manifest());

const fresh = `${out}.new`;
rmSync(fresh, { recursive: true, force: true });
for (const [name, content] of files) {
  mkdirSync(dirname(join(fresh, name)), { recursive: true });
  writeFileSync(join(fresh, name), content);
}
rmSync(out, { recursive: true, force: true });
renameSync(fresh, out);
if (!weigh() && options.check) process.exitCode = 1;

/** Where packages of web/ are, for the sources of js/, which may have none of their own. */
function ownPackages(...names) {
  return Object.fromEntries(names.map((name) => [name, join(HERE, "node_modules", name)]));
}

/** Check the types; end with the compiler's exit code if it finds a fault. */
function check() {
  for (const project of ["tsconfig.json", "tsconfig.worker.json"]) {
    const done = spawnSync(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), "-p", project], {
      cwd: HERE,
      stdio: "inherit",
    });
    if (done.status !== 0) process.exit(done.status ?? 1);
  }
}

function add(name, content) {
  files.set(name, Buffer.from(content));
  return name;
}

function hashed(name, content) {
  return name.replace(/(\.\w+)$/, `-${createHash("sha256").update(content).digest("hex").slice(0, 10)}$1`);
}

/** Bundle entry points into files with hashed names; esbuild's description of them, and the name of each entry's files. */
async function bundle(more) {
  const made = await build({
    ...SHARED,
    outdir: out,
    entryNames: "assets/[name]-[hash]",
    chunkNames: "assets/part-[hash]",
    assetNames: "assets/[name]-[hash]",
    loader: { ".svg": "file" },
    ...more,
  });
  for (const { path, contents } of made.outputFiles) add(relative(out, path), contents);
  Object.assign(inputs, made.metafile.inputs);
  const outputs = Object.fromEntries(
    Object.entries(made.metafile.outputs).map(([path, value]) => [relative(out, join(HERE, path)), value]),
  );
  const named = {};
  for (const [path, { entryPoint, cssBundle }] of Object.entries(outputs)) {
    const entry = Object.keys(more.entryPoints).find((name) => entryPoint === more.entryPoints[name]);
    if (!entry) continue;
    named[`${entry}.js`] = path;
    if (cssBundle) named[`${entry}.css`] = relative(out, join(HERE, cssBundle));
  }
  const styles = Object.keys(outputs).filter((path) => path.endsWith(".css") && !Object.values(named).includes(path));
  if (styles.length)
    throw new Error(
      "Style sheets are imported by src/main.tsx and src/operator/main.tsx only: no browser loads those of later parts.",
    );
  return { outputs, named };
}

/** Put the hashed name of the Argon2 worker where the client names its file. */
function nameWorker({ onLoad }) {
  onLoad({ filter: /\/argon2id\.ts$/, namespace: "file" }, ({ path }) => {
    const [before, after, ...more] = readFileSync(path, "utf-8").split('"./argon2-worker.js"');
    if (after === undefined || more.length) throw new Error(`${path} does not name ./argon2-worker.js once`);
    return { contents: before + JSON.stringify(`./${workerName.replace("assets/", "")}`) + after, loader: "ts" };
  });
}

/** Load with the first load what the client would load when it is first used. */
function loadEagerly({ onResolve }) {
  const places = new Map(
    [
      ["lazyImports.js", "eagerImports.ts"],
      ["lazyBasicImports.js", "eagerBasicImports.ts"],
    ].map(([name, own]) => [join(HERE, "../js/src", name), join(HERE, "src", own)]),
  );
  onResolve({ filter: /\/lazy(Basic)?Imports\.js$/ }, ({ path, resolveDir }) => {
    const own = places.get(join(resolveDir, path));
    return own && { path: own };
  });
}

/**
 * Let every part that is loaded later import the first load, which is there by then.
 *
 * So all parts share all of the first load, and esbuild leaves it in one file. Otherwise it makes a file of each set of
 * modules that the same parts share: some thirty, which compress badly.
 */
function followFirst({ onResolve, onLoad, resolve: find }) {
  const FOUND = Symbol();
  onResolve({ filter: /./ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
    if (kind !== "dynamic-import" || pluginData === FOUND) return undefined;
    const found = await find(path, { kind, importer, resolveDir, pluginData: FOUND });
    return found.errors.length ? found : { path: relative(HERE, found.path), namespace: "later" }; // the same in every folder
  });
  onLoad({ filter: /./, namespace: "later" }, ({ path }) => ({
    contents: `import ${JSON.stringify(join(HERE, "src/app.tsx"))};\nexport * from ${JSON.stringify(join(HERE, path))};`,
    resolveDir: HERE,
  }));
}

/** Take src/texts/en.ts once for each file beside it, so that every part of it is loaded only where it is used. */
function splitTexts({ onResolve }) {
  onResolve({ filter: /^\.\/en\.js$/ }, ({ importer, resolveDir }) => ({
    path: join(resolveDir, "en.ts"),
    suffix: `?${basename(importer)}`,
  }));
}

/** The texts of the app, for pages that show something before any script runs. */
async function textsOf(path) {
  const { outputFiles } = await build({ ...SHARED, entryPoints: [path], metafile: false });
  return (await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`)).texts;
}

/** A page from its template: names of files, and texts. `up` leads from the page to the app's folder. */
function page(template, { named, outputs }, entry, up) {
  const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const links = [];
  if (named[`${entry}.css`]) links.push(`<link rel="stylesheet" href="${up}${named[`${entry}.css`]}">`);
  for (const part of needed(outputs, named[`${entry}.js`]))
    if (part !== named[`${entry}.js`]) links.push(`<link rel="modulepreload" href="${up}${part}">`);
  links.push(`<script type="module" src="${up}${named[`${entry}.js`]}"></script>`);
  const values = {
    ...texts.page,
    icon: up + icon,
    manifest: `${up}app.webmanifest`,
    server: options.server,
    policy: pagePolicy(),
  };
  return readFileSync(join(HERE, template), "utf-8")
    .replace(/^( *)<!-- files -->$/m, (_, indent) => links.map((link) => indent + link).join("\n"))
    .replace(/\{\{(\w+)\}\}/g, (_, name) => {
      if (typeof values[name] !== "string") throw new Error(`${template} names {{${name}}}, which there is not`);
      return escaped(values[name]);
    });
}

/** The policy as a page can have it: frame-ancestors works in the header alone. The server of a copy may be connected to. */
function pagePolicy() {
  const own = POLICY.filter((directive) => !directive.startsWith("frame-ancestors"));
  return own
    .map((directive) =>
      options.server && directive.startsWith("connect-src") ? `${directive} ${options.server}` : directive,
    )
    .join("; ");
}

/** The files that an entry loads at once, itself first. */
function needed(outputs, path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const { path: imported, kind, external } of outputs[path].imports) {
    const next = relative(out, join(HERE, imported));
    if (external || !outputs[next]) continue;
    if (kind === "import-statement") needed(outputs, next, found);
  }
  return found;
}

function webManifest() {
  const { title, description } = texts.page;
  const icons = [{ src: icon, sizes: "any", type: "image/svg+xml", purpose: "any" }];
  return { name: title, short_name: title, description, start_url: "./", scope: "./", display: "standalone", icons };
}

/** The service worker, which holds the SHA-256 of all files that it may store. It is bundled last. */
async function serviceWorker() {
  const stored = Object.fromEntries(
    [...files]
      .filter(([name]) => !name.endsWith(".txt"))
      .map(([name, content]) => [name, createHash("sha256").update(content).digest("base64")]),
  );
  const define = {
    FILES: JSON.stringify(stored),
    RELEASE: JSON.stringify(createHash("sha256").update(JSON.stringify(stored)).digest("base64")),
    POLICY: JSON.stringify(POLICY.filter((directive) => !directive.startsWith("connect-src"))),
  };
  const { outputFiles, metafile } = await build({
    ...SHARED,
    format: "iife",
    entryPoints: ["src/serviceWorker.ts"],
    define,
  });
  Object.assign(inputs, metafile.inputs);
  return outputFiles[0].contents;
}

/** The SHA-256 of every file but this one. */
function manifest() {
  const sums = [...files].map(([name, content]) => [name, createHash("sha256").update(content).digest("hex")]);
  const [, version] = readFileSync(join(HERE, "../src/strongroom/_version.py"), "utf-8").match(/__version__ = "(.+)"/);
  return `${JSON.stringify({ version, files: Object.fromEntries(sums.sort()) }, null, 2)}\n`;
}

/** The licences of the packages of which something is in the files that were built. */
function licences() {
  const names = Object.keys(inputs).flatMap((path) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []);
  const parts = [["strongroom (MIT)", join(HERE, "../LICENSE")]];
  for (const name of [...new Set(names)].sort()) {
    const folder = join(HERE, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf-8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
    if (file === undefined) throw new Error(`${name} comes without the text of its licence`);
    parts.push([`${name} ${version} (${license})`, join(folder, file)]);
  }
  return parts
    .map(([title, file]) => `${title}\n\n${readFileSync(file, "utf-8").trim()}\n`)
    .join(`\n${"-".repeat(80)}\n\n`);
}

/** Print the sizes; whether the first load is within its budget. */
function weigh() {
  const gzipped = (names) => names.reduce((sum, name) => sum + gzipSync(files.get(name), { level: 9 }).length, 0);
  const tell = (name, bytes, most) => {
    console.log(
      `${name.padEnd(24)} ${(bytes / 1000).toFixed(1).padStart(6)} KB gz${most === undefined ? "" : ` of ${most}`}`,
    );
    return most === undefined || bytes <= most * 1000;
  };
  const loadedBy = ({ outputs, named }, entry) =>
    [...needed(outputs, named[`${entry}.js`]), named[`${entry}.css`]].filter(Boolean);
  const good = tell(
    "first load",
    gzipped(["index.html", workerName, icon, ...loadedBy(app, "app")]),
    options.inject ? undefined : BUDGET,
  );
  if (operator) tell("operator's page", gzipped(["operator/index.html", icon, ...loadedBy(operator, "operator")]));
  tell("all files", gzipped([...files.keys()]));
  return good;
}
