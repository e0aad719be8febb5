// A second reader of the format, written from docs/format.md alone, with nothing but WebCrypto.
// `node tests/vectors/check.mjs` runs every vector and says what differs. Argon2id alone is taken on trust: WebCrypto has
// none, so those cases begin with the master key.
import { readFileSync, readdirSync } from "node:fs";
import { webcrypto } from "node:crypto";

const { subtle } = webcrypto;
const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LARGEST = 2n ** 63n - 1n;

class Refusal extends Error {
  constructor(code) { super(code); this.code = code; }
}
const tampered = () => { throw new Refusal("tampered"); };
const invalid = () => { throw new Refusal("validation_error"); };
const weak = () => { throw new Refusal("weak_parameters"); };
const require = (good, refuse = tampered) => good || refuse();

// Encodings
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const join = (...parts) => new Uint8Array(Buffer.concat(parts));
const u32 = (n) => { const b = new Uint8Array(4); new DataView(b.buffer).setUint32(0, n); return b; };
const u64 = (n) => { const b = new Uint8Array(8); new DataView(b.buffer).setBigUint64(0, BigInt(n)); return b; };
const bytesOf = (part) =>
  part instanceof Uint8Array ? part : typeof part === "string" ? utf8.encode(part) : u64(part);
const list = (...parts) => join(...parts.map(bytesOf).flatMap((bytes) => [u32(bytes.length), bytes]));
const items = (word, ...parts) => list(`strongroom/1/${word}`, ...parts);
const same = (a, b) => {
  let differs = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) differs |= a[i] ^ b[i % (b.length || 1)];
  return differs === 0;
};
const base64 = (text) => {
  require(typeof text === "string");
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  require(Buffer.from(bytes).toString("base64") === text);
  return bytes;
};
const base64url = (text) => {
  const bytes = new Uint8Array(Buffer.from(text, "base64url"));
  require(Buffer.from(bytes).toString("base64url") === text);
  return bytes;
};
const uidOf = (uid) => (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uid) ? uid.toLowerCase() : nameOf(uid));
const control = /[\u0000-\u001f\u007f-\u009f]/;
const nameOf = (name) => {
  const length = [...name].length;
  require(length >= 1 && length <= 255 && !control.test(name) && !/\p{Surrogate}/u.test(name), invalid);
  return name;
};

// Primitives
const sha256 = async (x) => new Uint8Array(await subtle.digest("SHA-256", x));
const hmac = async (key, x) => {
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, x));
};
const hkdf = async (key, salt, info, length = 32) => {
  const imported = await subtle.importKey("raw", key, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, imported, length * 8));
};
const none = new Uint8Array(0);
const under = (key, word, ...parts) => hkdf(key, none, items(word, ...parts));
const gcm = (additionalData) => ({ name: "AES-GCM", iv: new Uint8Array(12), additionalData, tagLength: 128 });
const encrypt = async (key, plaintext, associated) => {
  const imported = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  return new Uint8Array(await subtle.encrypt(gcm(associated), imported, plaintext));
};
const decrypt = async (key, ciphertext, associated) => {
  const imported = await subtle.importKey("raw", key, "AES-GCM", false, ["decrypt"]);
  try {
    return new Uint8Array(await subtle.decrypt(gcm(associated), imported, ciphertext));
  } catch {
    return tampered();
  }
};

// The box
const freshOf = (key, salt) => hkdf(key, salt, items("box"), 64);
const sealBox = async (key, salt, plaintext, associated) => {
  const fresh = await freshOf(key, salt);
  return join(salt, fresh.slice(32), await encrypt(fresh.slice(0, 32), plaintext, associated));
};
const openBox = async (key, box, associated) => {
  require(box.length >= 80);
  const fresh = await freshOf(key, box.slice(0, 32));
  require(same(fresh.slice(32), box.slice(32, 64)));
  return decrypt(fresh.slice(0, 32), box.slice(64), associated);
};

// Content and padding
const paddedLength = (n) => {
  if (n <= 256) return 256;
  const e = Math.floor(Math.log2(n));
  const s = Math.floor(Math.log2(e)) + 1;
  const step = 2 ** (e - s);
  return Math.ceil(n / step) * step;
};
const pad = (kind, content) => {
  const padded = new Uint8Array(paddedLength(5 + content.length));
  padded.set(join(Uint8Array.of(kind), u32(content.length), content));
  return padded;
};
const unpad = (padded) => {
  require(padded.length >= 256 && padded[0] <= 2);
  const length = new DataView(padded.buffer, padded.byteOffset).getUint32(1);
  require(length <= 2 ** 30 && paddedLength(5 + length) === padded.length);
  require(padded.slice(5 + length).every((byte) => byte === 0) && !(padded[0] === 0 && length > 0));
  return { kind: padded[0], content: padded.slice(5, 5 + length) };
};
const shown = ({ kind, content }) => ({ kind, content: hex(content) });

// Keys
const accountOf = (key) => hkdf(key, none, items("account"), 16);
const vaultOf = (key, uid) => under(key, "vault", uidOf(uid));
const collectionOf = (key, name) => under(key, "collection", nameOf(name));

// Documents and deletions
const rowOf = (given, uid, version) => list(unhex(given.account), given.vault, given.collection, uid, version);
const proofOf = async (given, kind, row, data) => {
  const digest = kind === 1 ? await sha256(utf8.encode(data)) : none;
  const key = await under(unhex(given.collectionKey), "proof");
  const made = await hmac(key, join(items("proof"), row, list(Uint8Array.of(kind), digest)));
  return "sr1." + Buffer.from(made).toString("base64url");
};
const checkProof = (hmac_, proof) => require(same(utf8.encode(hmac_), utf8.encode(proof)));
const LABELS = { 1: "document", 2: "deletion" };
const openRow = async (given, version, { uid, data, hmac: proof }) => {
  const raw = base64(data);
  const kind = raw[1];
  require(raw[0] === 1 && kind in LABELS);
  const row = rowOf(given, uid, version);
  checkProof(proof, await proofOf(given, kind, row, data));
  const key = await under(unhex(given.collectionKey), "seal");
  const content = unpad(await openBox(key, raw.slice(2), join(items(LABELS[kind]), row)));
  require(kind === 2 || content.kind !== 0);
  return { kind, content };
};
const inRange = (version) => BigInt(version) >= 1n && BigInt(version) <= LARGEST;
const openDocument = async (given) => {
  const row = given.row;
  require(row.vaultUid === given.vault && row.collection === given.collection && row.hmac !== null);
  require(inRange(row.version));
  if (row.deletedAt === null) {
    const { kind, content } = await openRow(given, row.version, row);
    return { deleted: kind === 2, purged: false, ...shown(content) };
  }
  const before = BigInt(row.version) - 1n;
  require(inRange(before));
  if (row.data === "") {
    checkProof(row.hmac, await proofOf(given, 2, rowOf(given, row.uid, before), ""));
    return { deleted: true, purged: true, kind: 0, content: "" };
  }
  const { kind, content } = await openRow(given, before, row);
  require(kind === 2);
  return { deleted: true, purged: false, ...shown(content) };
};
const sealDocument = async (given) => {
  const kind = given.deletion ? 2 : 1;
  const row = rowOf(given, given.uid, given.version);
  const associated = join(items(LABELS[kind]), row);
  const key = await under(unhex(given.collectionKey), "seal");
  const box = await sealBox(key, unhex(given.salt), pad(given.kind, unhex(given.content)), associated);
  const data = Buffer.from(join(Uint8Array.of(1, kind), box)).toString("base64");
  return { data, hmac: await proofOf(given, kind, row, data), associated: hex(associated) };
};
const openBlob = async ({ account, vault, vaultKey, row }) => {
  require(row.uid === vault && row.data !== null && row.salt !== null && inRange(row.version));
  const raw = base64(row.data);
  const salt = base64(row.salt);
  require(raw[0] === 1 && raw[1] === 3 && salt.length === 32);
  const associated = items("blob", unhex(account), vault, row.name, row.version);
  const content = unpad(await openBox(await under(unhex(vaultKey), "blob"), join(salt, raw.slice(2)), associated));
  require(content.kind !== 0);
  return shown(content);
};

// From a password to keys
const integer = (x) => typeof x === "bigint" || (typeof x === "number" && Number.isInteger(x));
const readDescriptor = (given, floor = [65536, 3]) => {
  let spelled = given;
  if (typeof given === "string") {
    try { spelled = JSON.parse(given); } catch { tampered(); }
  }
  require(spelled !== null && typeof spelled === "object" && !Array.isArray(spelled));
  const { format, kdf, memory, passes, lanes, salt, recovery } = spelled;
  require(format === 1 && kdf === "argon2id" && [memory, passes, lanes].every(integer));
  require(typeof salt === "string" && typeof recovery === "string");
  require(lanes === 1, weak);
  const read = { memory: Number(memory), passes: Number(passes), salt: base64(salt), recovery: base64(recovery) };
  require(read.salt.length === 16 && read.recovery.length === 112);
  require(read.memory >= Math.max(65536, floor[0]) && read.passes >= Math.max(3, floor[1]), weak);
  require(read.memory <= 1048576 && read.passes <= 16 && read.memory * read.passes <= 4194304, weak);
  return read;
};
const normalEmail = (email) => {
  const normal = email.replace(/^[\t-\r ]+|[\t-\r ]+$/g, "").toLowerCase();
  const [before, after, ...more] = normal.split("@");
  const length = [...normal].length;
  require(length >= 3 && length <= 254 && before && after && !more.length, invalid);
  require(!control.test(normal) && normal.trim() === normal, invalid);
  return normal;
};
const split = async ({ master }) => {
  const auth = await under(unhex(master), "auth");
  const wrap = await under(unhex(master), "wrap");
  return { auth: hex(auth), wrap: hex(wrap), password: Buffer.from(auth).toString("base64url") };
};
const newPassword = ({ password }) => {
  const normal = password.normalize("NFC");
  require([...normal].length >= 8 && [...password].length <= 1024, invalid);
  return { bytes: hex(utf8.encode(normal)) };
};

// The recovery key
const SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const readRecovery = async (printed) => {
  const signs = printed.toUpperCase().replace(/[\s-]/g, "");
  require(signs.startsWith("SR1") && signs.length === 39, invalid);
  let value = 0n;
  for (const sign of signs.slice(3).replaceAll("O", "0").replaceAll(/[IL]/g, "1")) {
    require(SIGNS.includes(sign), invalid);
    value = value * 32n + BigInt(SIGNS.indexOf(sign));
  }
  const secret = unhex((value >> 20n).toString(16).padStart(40, "0"));
  const digest = await sha256(items("recovery-check", secret));
  const check = BigInt("0x" + hex(digest.slice(0, 3))) >> 4n;
  require((value & 0xfffffn) === check, invalid);
  let rest = value;
  let body = "";
  for (let i = 0; i < 36; i += 1) { body = SIGNS[Number(rest & 31n)] + body; rest >>= 5n; }
  const wrap = await under(secret, "recovery-wrap");
  const auth = await under(secret, "recovery-auth");
  return { secret, printed: ["SR1", ...body.match(/.{4}/g)].join("-"), wrap, auth };
};
const openAuth = async ({ recoveryKey, email, descriptor }) => {
  const { auth } = await readRecovery(recoveryKey);
  const { memory, passes, salt, recovery } = readDescriptor(descriptor);
  const opened = await openBox(auth, recovery, items("sealed-auth", normalEmail(email), memory, passes, salt));
  require(opened.length === 32);
  return { auth: hex(opened) };
};

// The keyring
const parts = (keyring) => {
  require(keyring.length <= 262144);
  const raw = base64(keyring);
  require(raw.length >= 330 && raw[0] === 1 && raw[1] === 4);
  return { head: raw.slice(0, 250), account: raw.slice(2, 18), body: raw.slice(250) };
};
const exactly = (object, members) =>
  require(object !== null && typeof object === "object" && Object.keys(object).sort().join() === members);
const reopen = async (keyring, key) => {
  const { head, account, body } = parts(keyring);
  require(same(account, await accountOf(key)));
  const version = new DataView(head.buffer, head.byteOffset).getBigUint64(18);
  require(inRange(version));
  const opened = unpad(await openBox(await under(key, "keyring"), body, items("keyring", head)));
  require(opened.kind === 1);
  let directory;
  try { directory = JSON.parse(strict.decode(opened.content)); } catch { tampered(); }
  exactly(directory, "recovery,vaults");
  require(Array.isArray(directory.vaults));
  for (const entry of directory.vaults) {
    exactly(entry, "name,sealed,uid");
    const { uid, name, sealed } = entry;
    require(typeof uid === "string" && typeof name === "string" && typeof sealed === "boolean");
    try { nameOf(name); require(uidOf(uid) === uid); } catch { tampered(); }
  }
  const uids = directory.vaults.map((entry) => entry.uid);
  require(uids.every((uid, i) => i === 0 || uids[i - 1] < uid));
  require(new Set(directory.vaults.map((entry) => entry.name)).size === uids.length);
  const kept = directory.recovery === null ? null : base64(directory.recovery);
  require(kept === null || kept.length === 32);
  return {
    accountKey: hex(key),
    version: Number(version),
    recoveryAuth: kept === null ? null : hex(kept),
    vaults: directory.vaults,
  };
};
const unwrap = async (keyring, key, wrapped, associated) => {
  const account = await openBox(key, wrapped, associated);
  require(account.length === 32);
  return reopen(keyring, account);
};
const openKeyring = ({ wrap, descriptor, keyring }) => {
  const { memory, passes, salt } = readDescriptor(descriptor);
  const { head, account } = parts(keyring);
  return unwrap(keyring, unhex(wrap), head.slice(26, 138), items("wrap-password", account, memory, passes, salt));
};
const recoverKeyring = async ({ recoveryKey, keyring }) => {
  const { wrap } = await readRecovery(recoveryKey);
  const { head, account } = parts(keyring);
  return unwrap(keyring, wrap, head.slice(138), items("wrap-recovery", account));
};

// Names
const nameKeys = async ({ accountKey, vault }) => {
  const key = unhex(accountKey);
  const account = await accountOf(key);
  if (vault === undefined) return [await under(key, "vault-names"), items("vault-name", account)];
  const inner = await under(await vaultOf(key, vault), "collection-names");
  return [inner, items("collection-name", account, uidOf(vault))];
};
const nameDigest = async (key, place, padded) => hmac(await under(key, "name-digest"), join(place, list(padded)));
const plainName = (name) => { require(!nameOf(name).startsWith("sr1."), invalid); return name; };
const sealName = async (given) => {
  const name = utf8.encode(plainName(given.name));
  require(name.length <= 127, invalid);
  const padded = new Uint8Array(Math.ceil((1 + name.length) / 32) * 32);
  padded.set(join(Uint8Array.of(name.length), name));
  const [key, place] = await nameKeys(given);
  const digest = await nameDigest(key, place, padded);
  const sealed = await encrypt(await hkdf(key, digest, items("name-box")), padded, place);
  return { sealed: "sr1." + Buffer.from(join(digest, sealed)).toString("base64url") };
};
const openName = async (given) => {
  require(given.sealed.startsWith("sr1."));
  const raw = base64url(given.sealed.slice(4));
  require(raw.length >= 80);
  const [key, place] = await nameKeys(given);
  const digest = raw.slice(0, 32);
  const padded = await decrypt(await hkdf(key, digest, items("name-box")), raw.slice(32), place);
  require(same(digest, await nameDigest(key, place, padded)));
  const end = 1 + padded[0];
  require(padded.length === Math.ceil(end / 32) * 32 && padded.slice(end).every((byte) => byte === 0));
  try { return { name: plainName(strict.decode(padded.slice(1, end))) }; } catch { return tampered(); }
};

// Tokens
const readToken = async ({ token }) => {
  require(token.startsWith("srv_") && token.length <= 8192, invalid);
  let raw;
  try { raw = base64url(token.slice(4)); } catch { invalid(); }
  require(raw.length >= 54, invalid);
  const body = raw.slice(0, -4);
  require(same((await sha256(items("token", body))).slice(0, 4), raw.slice(-4)), invalid);
  require(body[0] === 1 && body[1] >= 1 && body[1] <= 3, invalid);
  const texts = [];
  let at = 50;
  for (let i = 0; i < 4; i += 1) {
    require(at + 2 <= body.length, invalid);
    const end = at + 2 + body[at] * 256 + body[at + 1];
    require(end <= body.length, invalid);
    try { texts.push(strict.decode(body.slice(at + 2, end))); } catch { invalid(); }
    at = end;
  }
  const [apiKey, vault, collection, name] = texts;
  require(at === body.length && /^[!-~]{1,1024}$/.test(apiKey) && uidOf(vault) === vault, invalid);
  require((collection !== "") === (body[1] === 2), invalid);
  for (const text of [collection, name]) if (text !== "") nameOf(text);
  return { apiKey, account: hex(body.slice(2, 18)), key: hex(body.slice(18, 50)), vault, collection, name, sealed: body[1] !== 3 };
};

// What a device remembers
const rememberRow = ({ seen: [version, proof], row }) => {
  require(row.version >= version, () => { throw new Refusal("rolled_back"); });
  require(row.version > version || row.hmac === proof);
  return { seen: [row.version, row.hmac] };
};
const rememberAccount = async ({ accountKey, keyring, descriptor, seen }) => {
  const ring = await reopen(keyring, unhex(accountKey));
  const url = (bytes) => Buffer.from(bytes).toString("base64url");
  require(url(await accountOf(unhex(accountKey))) === seen.account);
  require(ring.version >= seen.version, () => { throw new Refusal("rolled_back"); });
  require(ring.version > seen.version || url(await sha256(utf8.encode(keyring))) === seen.digest);
  readDescriptor(descriptor, [seen.memory, seen.passes]);
  return { version: ring.version };
};

const hexed = async (object) =>
  Object.fromEntries(await Promise.all(Object.entries(object).map(async ([name, key]) => [name, hex(await key)])));
const OPERATIONS = {
  "password-keys": async ({ email, password, descriptor }, { master }) => {
    newPassword({ password });
    const salt = await sha256(items("salt", normalEmail(email), readDescriptor(descriptor).salt));
    return { salt: hex(salt), master, ...(await split({ master })) };
  },
  "split": split,
  "normal-email": ({ email }) => ({ email: normalEmail(email) }),
  "new-password": newPassword,
  "read-descriptor": ({ descriptor, floor }) => {
    const { memory, passes, salt } = readDescriptor(descriptor, floor);
    return { memory, passes, salt: hex(salt) };
  },
  "account-keys": ({ accountKey }) => {
    const key = unhex(accountKey);
    return hexed({ account: accountOf(key), keyring: under(key, "keyring"), vaultNames: under(key, "vault-names") });
  },
  "vault-keys": async ({ accountKey, vault }) => {
    const key = await vaultOf(unhex(accountKey), vault);
    return hexed({ key, blob: under(key, "blob"), collectionNames: under(key, "collection-names") });
  },
  "collection-keys": async ({ accountKey, vault, collection }) => {
    const key = await collectionOf(await vaultOf(unhex(accountKey), vault), collection);
    return hexed({ key, sealing: under(key, "seal"), proving: under(key, "proof") });
  },
  "padded-length": ({ length }) => ({ padded: paddedLength(length) }),
  "pad": ({ kind, content }) => ({ padded: hex(pad(kind, unhex(content))) }),
  "unpad": ({ padded }) => shown(unpad(unhex(padded))),
  "open-box": async ({ key, box, associated }) => ({
    plaintext: hex(await openBox(unhex(key), unhex(box), unhex(associated))),
  }),
  "base64": ({ text }) => ({ bytes: hex(base64(text)) }),
  "base64url": ({ text }) => ({ bytes: hex(base64url(text)) }),
  "seal-document": sealDocument,
  "open-document": openDocument,
  "open-blob": openBlob,
  "open-keyring": openKeyring,
  "recover-keyring": recoverKeyring,
  "reopen-keyring": ({ keyring, accountKey }) => reopen(keyring, unhex(accountKey)),
  "open-auth": openAuth,
  "seal-name": sealName,
  "open-name": openName,
  "read-recovery-key": async ({ printed }) => {
    const { secret, printed: again, wrap, auth } = await readRecovery(printed);
    return { secret: hex(secret), printed: again, wrap: hex(wrap), auth: hex(auth) };
  },
  "read-token": readToken,
  "remember-row": rememberRow,
  "remember-account": rememberAccount,
};

// JSON's numbers are exact here, however large.
const parse = (text) =>
  JSON.parse(text.replace(/(": ?)(-?\d{16,})(?=[,}])/g, '$1{"exactly": "$2"}'), (_, value) =>
    value !== null && typeof value === "object" && "exactly" in value ? BigInt(value.exactly) : value);
const spelled = (value) =>
  JSON.stringify(value, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner);

const here = new URL(".", import.meta.url);
let [passed, failed] = [0, 0];
for (const file of readdirSync(here).filter((name) => name.endsWith(".json")).sort()) {
  for (const { name, does, given, gives, error } of parse(readFileSync(new URL(file, here), "utf-8")).cases) {
    let outcome;
    try {
      outcome = spelled(await OPERATIONS[does](given, gives));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      outcome = refusal.code;
    }
    if (outcome === (error ?? spelled(gives))) { passed += 1; continue; }
    failed += 1;
    console.log(`${file}: ${name}: ${outcome.slice(0, 200)}, not ${(error ?? spelled(gives)).slice(0, 200)}`);
  }
}
console.log(`${passed} as they should be, ${failed} not`);
process.exit(failed ? 1 : 0);
