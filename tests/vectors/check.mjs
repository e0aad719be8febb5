// A second implementation of the format, written from docs/format.md alone, with nothing but WebCrypto.
// `node tests/vectors/check.mjs` runs every vector, of readers and of writers, and says what differs.
import { readFileSync, readdirSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { argon2id } from "./argon2id.mjs";

const { subtle } = webcrypto;
const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

class Refusal extends Error {
  constructor(code) { super(code); this.code = code; }
}
const refuse = (code) => { throw new Refusal(code); };
const tampered = () => refuse("tampered");
const invalid = () => refuse("validation_error");
const weak = () => refuse("weak_parameters");
const require = (good, otherwise = tampered) => good || otherwise();
const orElse = (otherwise, attempt) => { try { return attempt(); } catch { return otherwise(); } };

// Encodings
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const join = (...parts) => new Uint8Array(Buffer.concat(parts));
const number = (size) => (n) => unhex(BigInt(n).toString(16).padStart(2 * size, "0"));
const [u16, u32, u64] = [2, 4, 8].map(number);
const read = (bytes) => Number(BigInt("0x" + hex(bytes)));
const bytesOf = (part) => (part instanceof Uint8Array ? part : typeof part === "string" ? utf8.encode(part) : u64(part));
const list = (...parts) => join(...parts.map(bytesOf).flatMap((bytes) => [u32(bytes.length), bytes]));
const label = (word) => `strongroom/2/${word}`;
const items = (word, ...parts) => list(label(word), ...parts);
const zeros = (bytes) => bytes.every((byte) => byte === 0);
const same = (a, b) => {
  let differs = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) differs |= a[i] ^ b[i % (b.length || 1)];
  return differs === 0;
};
const spelling = (alphabet) => [
  (bytes) => Buffer.from(bytes).toString(alphabet),
  (text) => {
    require(typeof text === "string");
    const bytes = new Uint8Array(Buffer.from(text, alphabet));
    require(Buffer.from(bytes).toString(alphabet) === text);
    return bytes;
  },
];
const [toBase64, base64] = spelling("base64");
const [toUrl, base64url] = spelling("base64url");
const ofLength = (bytes, length) => { require(bytes.length === length); return bytes; };
// Of another format: made by a newer or an older client, and changed by nobody.
const ofFormat = (n, otherwise = tampered) => {
  require(n !== undefined && n > 0, otherwise);
  require(n === 2, () => refuse("unsupported"));
};
const afterPrefix = (text) => {
  ofFormat(Number(/^sr([1-9][0-9]{0,3})\./.exec(text)?.[1] ?? 0));
  return text.slice(4);
};
const isVersion = (n) => Number.isInteger(n) && n >= 1 && n <= 2 ** 53 - 1;
const isGeneration = (n) => Number.isInteger(n) && n >= 1 && n <= 2 ** 32 - 1;
const control = /[\u0000-\u001f\u007f-\u009f]/;
const nameOf = (name) => {
  const length = [...name].length;
  require(length >= 1 && length <= 255 && !control.test(name) && name.isWellFormed(), invalid);
  return name;
};
const isUuid = (uid) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uid);
const uidOf = (uid) => (isUuid(uid) ? uid.toLowerCase() : nameOf(uid));
const order = (a, b) => (typeof a === "string" ? Buffer.compare(utf8.encode(a), utf8.encode(b)) : a - b);
const ascends = (values) => values.every((value, i) => i === 0 || order(values[i - 1], value) < 0);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
// Depth and members of JSON, sign by sign: a parser alone keeps one of two members of the same name.
const shape = (text) => {
  const open = [];
  let [deepest, twice] = [0, false];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '"') {
      const start = at;
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === "\\") at += 1;
      if (!/^\s*:/.test(text.slice(at + 1, at + 20)) && !/^\s*:/.test(text.slice(at + 1))) continue;
      const name = JSON.parse(text.slice(start, at + 1));
      twice ||= open.at(-1).has(name);
      open.at(-1).add(name);
    } else if ("[{".includes(text[at])) {
      open.push(new Set());
      deepest = Math.max(deepest, open.length);
    } else if ("]}".includes(text[at])) open.pop();
  }
  return { deepest, twice };
};
const exact = (n) => Math.abs(n) < 2 ** 53;
const portable = (n) => exact(n) || (Number.isFinite(n) && Math.abs(n) >= 1e21);
const isSound = (value, takes) => {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return takes(value);
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).every(([name, inner]) => isSound(name) && isSound(inner, takes));
};
const parse = (text, most, takes, once = false) => {
  const value = orElse(tampered, () => JSON.parse(text));
  const { deepest, twice } = shape(text);
  require(deepest <= most && !(once && twice) && isSound(value, takes));
  return value;
};
const parseContent = (bytes) => parse(orElse(tampered, () => strict.decode(bytes)), 500, portable);
const writeContent = (value) => {
  const depthOf = (one) =>
    (one !== null && typeof one === "object" ? 1 + Math.max(0, ...Object.values(one).map(depthOf)) : 0);
  require(depthOf(value) <= 500 && isSound(value, portable), invalid);
  return parseContent(utf8.encode(JSON.stringify(value)));
};

// Primitives
const sha256 = async (x) => new Uint8Array(await subtle.digest("SHA-256", bytesOf(x)));
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
const BASE = Uint8Array.of(9, ...new Uint8Array(31));
const x25519 = async (scalar, point = BASE) => {
  const pkcs8 = join(unhex("302e020100300506032b656e04220420"), scalar);
  const key = await subtle.importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]);
  const other = await subtle.importKey("raw", point, "X25519", false, []);
  let shared;
  try {
    shared = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: other }, key, 256));
  } catch {
    return tampered();
  }
  require(!zeros(shared));
  return shared;
};
const tape = (draws) => {
  const left = [...draws];
  return (length) => {
    const drawn = unhex(left.shift());
    if (drawn.length !== length) throw new Error("another draw than the vector's");
    return drawn;
  };
};
const bytesSpelled = (text) => (text.startsWith("sr2.") ? base64url(text.slice(4)) : base64(text));
const short = async (text) => (await sha256(bytesSpelled(text))).slice(0, 16);

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

// Sealing to a public key
const keyPair = async (secret) => {
  const scalar = await under(secret, "key-pair");
  return { private: scalar, public: await x25519(scalar) };
};
const sealTo = async (to, associated, plaintext, random) => {
  const e = random(32);
  const shared = await x25519(e, to);
  const point = await x25519(e);
  const k = await hkdf(shared, join(point, to), items("sealed-key"));
  return join(point, await sealBox(k, random(32), plaintext, associated));
};
const openSealed = async (pair, sealed, associated) => {
  require(sealed.length >= 112);
  const point = sealed.slice(0, 32);
  const shared = await x25519(pair.private, point);
  return openBox(await hkdf(shared, join(point, pair.public), items("sealed-key")), sealed.slice(32), associated);
};
const filler = async (length, random) => join(await x25519(random(32)), random(length - 32));

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
  const length = read(padded.slice(1, 5));
  require(length <= 2 ** 30 && paddedLength(5 + length) === padded.length);
  require(zeros(padded.slice(5 + length)) && !(padded[0] === 0 && length > 0));
  return { kind: padded[0], content: padded.slice(5, 5 + length) };
};
const shown = ({ kind, content }) => ({ kind, content: hex(content) });

// From a password to keys
const readDescriptor = (given, [leastMemory, leastPasses] = [0, 0]) => {
  const spelled = typeof given === "string" ? parse(given, 32, Number.isFinite, true) : given;
  require(isObject(spelled));
  const { format, kdf, memory, passes, lanes, secretKey } = spelled;
  if (Number.isInteger(format)) ofFormat(format);
  require(secretKey !== true, () => refuse("unsupported"));
  require(secretKey === false && kdf === "argon2id" && [format, memory, passes, lanes].every(Number.isInteger));
  const salt = ofLength(base64(spelled.salt), 16);
  const recovery = ofLength(base64(spelled.recovery), 144);
  require(memory >= 65536 && memory <= 1048576 && passes >= 3 && passes <= 16 && lanes === 1, weak);
  require(memory * passes <= 4194304 && memory >= leastMemory && passes >= leastPasses, weak);
  return { memory, passes, salt, recovery };
};
const spellDescriptor = (memory, passes, salt, recovery) => (
  { format: 2, kdf: "argon2id", memory, passes, lanes: 1, secretKey: false, salt: toBase64(salt),
    recovery: toBase64(recovery) });
const normalEmail = (email) => {
  const normal = email.replace(/^[\t-\r ]+|[\t-\r ]+$/g, "").replace(/[A-Z]/g, (sign) => sign.toLowerCase());
  const [before, after, ...more] = normal.split("@");
  const length = [...normal].length;
  require(length >= 3 && length <= 254 && before && after && !more.length && normal.isWellFormed(), invalid);
  require(!control.test(normal) && !/^\p{White_Space}|\p{White_Space}$/u.test(normal), invalid);
  return normal;
};
const passwordOf = (password) => {
  const length = [...password].length;
  require(length >= 1 && length <= 1024 && password.isWellFormed(), invalid);
  return utf8.encode(password.normalize("NFC"));
};
const newPassword = ({ password }) => {
  require([...password.normalize("NFC")].length >= 8, invalid);
  return { bytes: hex(passwordOf(password)) };
};
const split = async ({ master }) => {
  const auth = await under(unhex(master), "auth");
  return { auth: hex(auth), wrap: hex(await under(unhex(master), "wrap")), password: toUrl(auth) };
};
const masters = new Map(); // two cases that come to the same are derived once: this Argon2id takes seconds
const passwordKeys = async ({ email, password, descriptor }) => {
  const { memory, passes, salt: own } = readDescriptor(descriptor);
  const salt = (await sha256(items("salt", normalEmail(email), own))).slice(0, 16);
  const typed = passwordOf(password);
  const asked = [hex(typed), hex(salt), memory, passes].join();
  if (!masters.has(asked)) masters.set(asked, hex(argon2id(typed, salt, memory, passes)));
  const master = masters.get(asked);
  return { salt: hex(salt), master, ...(await split({ master })) };
};

// The recovery key
const SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const recoveryCheck = async (secret) => BigInt("0x" + hex((await sha256(items("recovery-check", secret))).slice(0, 3))) >> 4n;
const readRecovery = async (printed) => {
  const signs = printed.replace(/[\p{White_Space}-]/gu, "").replace(/[a-z]/g, (sign) => sign.toUpperCase());
  if (/^SR[1-9]/.test(signs)) ofFormat(Number(signs[2]));
  require(signs.startsWith("SR2") && [...signs].length === 39, invalid);
  let value = 0n;
  for (const sign of signs.slice(3).replaceAll("O", "0").replaceAll(/[IL]/g, "1")) {
    require(SIGNS.includes(sign), invalid);
    value = value * 32n + BigInt(SIGNS.indexOf(sign));
  }
  const secret = unhex((value >> 20n).toString(16).padStart(40, "0"));
  require((value & 0xfffffn) === (await recoveryCheck(secret)), invalid);
  return secret;
};
const printRecovery = async (secret) => {
  let rest = (BigInt("0x" + hex(secret)) << 20n) | (await recoveryCheck(secret));
  let body = "";
  for (let i = 0; i < 36; i += 1) { body = SIGNS[Number(rest & 31n)] + body; rest >>= 5n; }
  return ["SR2", ...body.match(/.{4}/g)].join("-");
};
const recoveryWrap = (secret) => under(secret, "recovery-wrap");
const recoveryAuth = async (secret) => keyPair(await under(secret, "recovery-auth"));
const sealedAuth = (email, { memory, passes, salt }) => items("sealed-auth", normalEmail(email), memory, passes, salt);
const sealAuth = async ({ authPublic, email, descriptor, auth, random }) => {
  const read_ = readDescriptor(descriptor);
  const sealed = await sealTo(unhex(authPublic), sealedAuth(email, read_), unhex(auth), tape(random));
  return { descriptor: spellDescriptor(read_.memory, read_.passes, read_.salt, sealed) };
};
const openAuth = async ({ recoveryKey, email, descriptor }) => {
  const pair = await recoveryAuth(await readRecovery(recoveryKey));
  const read_ = readDescriptor(descriptor);
  return { auth: hex(ofLength(await openSealed(pair, read_.recovery, sealedAuth(email, read_)), 32)) };
};

// Keys and generations
const keyOf = (keys, generation) => {
  require(isGeneration(generation));
  const found = keys.find(([number_]) => number_ === generation);
  require(found !== undefined, () => refuse("locked"));
  return unhex(found[1]);
};
const newest = (keys) => keys[keys.length - 1];
const hexed = async (object) =>
  Object.fromEntries(await Promise.all(Object.entries(object).map(async ([name, key]) => [name, hex(await key)])));

// The keyring
const SLOT = 148;
const passwordSlot = (account, { memory, passes, salt }) => items("slot-password", account, memory, passes, salt);
const recoverySlot = (account) => items("slot-recovery", account);
const PRF_INPUT = utf8.encode(label("passkey-prf"));
const passkeyOf = ({ rpId, credential }) => {
  const id = unhex(credential);
  require(/^[a-z0-9.-]{1,253}$/.test(rpId) && id.length >= 1 && id.length <= 1023, invalid);
  return { rpId, id };
};
const passkeySlot = (account, { rpId, id }) => items("slot-passkey", account, rpId, id);
const passkeySecret = (given) => {
  const output = unhex(given.prf);
  require(output.length === 32, invalid);
  const passkey = passkeyOf(given);
  return { ...passkey, wrap: async (account) => under(output, "passkey-wrap", account, passkey.rpId, await sha256(passkey.id)) };
};
const passkeyOfSlot = (associated, account) => {
  const found = [];
  for (let at = 0; at < associated.length;) {
    require(at + 4 <= associated.length);
    const end = at + 4 + read(associated.slice(at, at + 4));
    require(end <= associated.length);
    found.push(associated.slice(at + 4, end));
    at = end;
  }
  require(found.length === 4);
  const rpId = String.fromCharCode(...found[2]);
  const { id } = orElse(tampered, () => passkeyOf({ rpId, credential: hex(found[3]) }));
  require(same(passkeySlot(account, { rpId, id }), associated));
  return `${rpId} ${hex(id)}`;
};
const parts = (keyring) => {
  require(keyring.length <= 262144);
  const raw = base64(keyring);
  ofFormat(raw[0]);
  require(raw.length >= 65 && raw[1] === 4);
  require(raw[62] === 8 && read(raw.slice(63, 65)) === SLOT, () => refuse("unsupported"));
  require(raw.length >= 1249 + 80);
  const head = raw.slice(0, 1249);
  const slots = Array.from({ length: 8 }, (_, i) => head.slice(65 + SLOT * i, 65 + SLOT * (i + 1)));
  return {
    head, slots, body: raw.slice(1249), account: raw.slice(2, 18),
    version: read(raw.slice(18, 26)), generation: read(raw.slice(26, 30)), previous: raw.slice(30, 62),
  };
};
const lists = (body, ...names) => names.every((name) => Array.isArray(body[name]) && body[name].every(isObject));
const checkUid = (uid) => require(typeof uid === "string" && orElse(tampered, () => uidOf(uid)) === uid);
const MOST_PAST = 100;
const checkBody = (body, { account, version, generation, previous }) => {
  require(isObject(body) && Array.isArray(body.must) && body.must.every((name) => typeof name === "string"));
  const known = ["account", "slots", "recovery", "identity", "storage", "vaults", "gone", "past", "merged", "must"];
  require(body.must.every((name) => [...known, "floor"].includes(name)), () => refuse("unsupported"));
  require(same(base64(body.account), account) && lists(body, "slots", "identity", "storage", "vaults", "gone", "merged"));
  for (const { slot, type, id, public: to, associated } of body.slots) {
    require(Number.isInteger(slot) && slot >= 0 && slot <= 7 && typeof type === "string" && type !== "");
    ofLength(base64(id), 16);
    require(to !== undefined && (to === null) === (type === "password"));
    if (to !== null) ofLength(base64(to), 32);
    base64(associated);
  }
  require(ascends(body.slots.map(({ slot }) => slot)) && new Set(body.slots.map(({ id }) => id)).size === body.slots.length);
  const ofType = (type) => body.slots.filter((slot) => slot.type === type).length;
  require(ofType("password") <= 1 && ofType("recovery") === (body.recovery === null ? 0 : 1));
  if (body.recovery !== null) ofLength(base64(body.recovery), 32);
  const passkeys = body.slots.filter(({ type }) => type === "passkey");
  require(new Set(passkeys.map((slot) => passkeyOfSlot(base64(slot.associated), account))).size === passkeys.length);
  for (const { generation: number_, sign, agree } of body.identity) {
    require(isGeneration(number_));
    ofLength(base64(sign), 32);
    ofLength(base64(agree), 32);
  }
  require(ascends(body.identity.map((one) => one.generation)) && body.identity.at(-1)?.generation === generation);
  for (const { seed } of body.storage) ofLength(base64(seed), 32);
  const generations = (list) => JSON.stringify(list.map((one) => one.generation));
  require(generations(body.storage) === generations(body.identity));
  for (const vault of body.vaults) {
    const { uid, name, sealed, made, floor } = vault;
    checkUid(uid);
    require(typeof name === "string" && typeof sealed === "boolean" && typeof made === "boolean");
    orElse(tampered, () => nameOf(name));
    require(lists(vault, "keys") && vault.keys.length >= 1);
    for (const { generation: number_, key } of vault.keys) {
      require(isGeneration(number_));
      ofLength(base64(key), 32);
    }
    require(ascends(vault.keys.map((one) => one.generation)));
    require(isGeneration(floor) && floor <= vault.keys.at(-1).generation);
  }
  require(ascends(body.vaults.map(({ uid }) => uid)));
  require(new Set(body.vaults.map(({ name }) => name)).size === body.vaults.length);
  for (const { uid, version: at } of body.gone) {
    checkUid(uid);
    require(isVersion(at) && at <= version);
  }
  require(ascends(body.gone.map(({ uid }) => uid)) && body.gone.length <= 1000);
  require(Array.isArray(body.past) && body.past.length === Math.min(version - 1, MOST_PAST));
  const past = body.past.map((one) => ofLength(base64(one), 16));
  require(past.length === 0 || hex(past.at(-1)) === hex(previous.slice(0, 16)));
  for (const { version: at, digest } of body.merged) {
    require(isVersion(at) && at < version && at >= version - past.length && body.must.includes("merged"));
    require(hex(ofLength(base64(digest), 16)) !== hex(past[past.length - (version - at)]));
  }
  require(new Set(body.merged.map(({ version: at, digest }) => `${at} ${digest}`)).size === body.merged.length);
  require(body.merged.length <= MOST_PAST);
  require(!body.gone.some(({ uid }) => body.vaults.some((vault) => vault.uid === uid)));
};
const reopen = async (keyring, key) => {
  const head = parts(keyring);
  const { account, version, generation, previous } = head;
  require(isVersion(version) && isGeneration(generation) && zeros(previous) === (version === 1));
  const opened = unpad(await openBox(await under(key, "keyring"), head.body, items("keyring", head.head)));
  require(opened.kind === 1);
  const body = parse(orElse(tampered, () => strict.decode(opened.content)), 32, exact, true);
  checkBody(body, head);
  return {
    accountKey: hex(key), account: hex(account), version, generation, previous: hex(previous),
    digest: hex(await sha256(base64(keyring))), body,
  };
};
const openSlot = async (pair, slot, associated) => {
  const opened = ofLength(await openSealed(pair, ofLength(slot, SLOT), associated), 36);
  return { generation: read(opened.slice(0, 4)), accountKey: hex(opened.slice(4)) };
};
const byWay = async (keyring, secret, associatedFor) => {
  const { slots, account, generation } = parts(keyring);
  const pair = await keyPair(typeof secret === "function" ? await secret(account) : secret);
  for (const slot of slots) {
    const opened = await openSlot(pair, slot, associatedFor(account)).catch((error) => {
      if (!(error instanceof Refusal)) throw error;
    });
    if (opened !== undefined) {
      require(opened.generation === generation);
      return reopen(keyring, unhex(opened.accountKey));
    }
  }
  return tampered();
};
const sealKeyring = async ({ accountKey, account, version, generation, previous, slots, body, wrap }, random) => {
  let made = unhex(slots);
  if (slots === "") {
    require(wrap !== undefined);
    const secret = join(u32(generation), unhex(accountKey));
    const own = (await keyPair(unhex(wrap))).public;
    for (let place = 0; place < 8; place += 1) {
      const used = body.slots.find(({ slot }) => slot === place);
      made = join(made, used === undefined
        ? await filler(SLOT, random)
        : await sealTo(used.public === null ? own : base64(used.public), base64(used.associated), secret, random));
    }
  }
  const fixed = join(Uint8Array.of(2, 4), unhex(account), u64(version), u32(generation), unhex(previous));
  const head = join(fixed, Uint8Array.of(8, 0, SLOT), made);
  const padded = pad(1, utf8.encode(JSON.stringify(body)));
  const box = await sealBox(await under(unhex(accountKey), "keyring"), random(32), padded, items("keyring", head));
  const keyring = toBase64(join(head, box));
  await reopen(keyring, unhex(accountKey));
  return { keyring };
};
const nextKey = (keys, random) => [...keys, { generation: keys.at(-1).generation + 1, key: toBase64(random(32)) }];
const withSlot = async (body, type, secret, associated, random) => {
  const spelled_ = toBase64(associated);
  const others = body.slots.filter((slot) => slot.type !== type || (type === "passkey" && slot.associated !== spelled_));
  const free = [0, 1, 2, 3, 4, 5, 6, 7].filter((place) => !others.some(({ slot }) => slot === place));
  require(free.length > 0, invalid);
  const slot = free[read(random(4)) % free.length];
  const id = toBase64(random(16));
  const to = type === "password" ? null : toBase64((await keyPair(secret)).public);
  const made = { slot, type, id, public: to, associated: spelled_ };
  return { ...body, slots: [...others, made].sort((a, b) => a.slot - b.slot) };
};
const alike = (one, other) => spelled(one) === spelled(other);
const joined = (one, other) => {
  for (const name of Object.keys(one)) require(!Object.hasOwn(other, name) || alike(one[name], other[name]));
  return { ...other, ...one };
};
const freeName = (name, isTaken) => {
  let free = name;
  for (let count = 2; isTaken(free); count += 1) {
    const end = ` (${count})`;
    let raw = utf8.encode(name).slice(0, 127 - end.length);
    while (raw.length && orElse(() => null, () => strict.decode(raw)) === null) raw = raw.slice(0, -1);
    free = strict.decode(raw) + end;
  }
  return free;
};
const mergeKeyrings = async ({ accountKey, keyrings }) => {
  const rings = await Promise.all(keyrings.map((text) => reopen(text, unhex(accountKey))));
  const [first, second] = rings.sort((a, b) => b.version - a.version || (a.digest < b.digest ? -1 : 1));
  const [slots, others] = keyrings.map((text) => hex(parts(text).head.slice(65)));
  const [a, b] = [first.body, second.body];
  require(first.generation === second.generation && slots === others);
  for (const name of ["account", "slots", "recovery", "identity", "storage"]) require(alike(a[name], b[name]));
  const gone = new Map(b.gone.map((one) => [one.uid, one]));
  for (const one of a.gone) {
    const before = gone.get(one.uid) ?? one;
    const version = Math.max(one.version, before.version);
    gone.set(one.uid, joined({ ...one, version }, { ...before, version }));
  }
  const latest = [...gone.values()].sort((x, y) => x.version - y.version || order(x.uid, y.uid)).slice(-1000);
  const vaults = new Map(b.vaults.map((one) => [one.uid, one]));
  for (const one of a.vaults) {
    const other = vaults.get(one.uid);
    if (other === undefined) { vaults.set(one.uid, one); continue; }
    const keys = new Map(other.keys.map((key) => [key.generation, key]));
    for (const key of one.keys) keys.set(key.generation, joined(key, keys.get(key.generation) ?? key));
    const decided = {
      name: order(one.name, other.name) > 0 ? one.name : other.name, made: one.made || other.made,
      floor: Math.max(one.floor, other.floor), keys: [...keys.values()].sort((x, y) => x.generation - y.generation),
    };
    vaults.set(one.uid, joined({ ...one, ...decided }, { ...other, ...decided }));
  }
  const left = [...vaults.values()].filter(({ uid }) => !latest.some((one) => one.uid === uid));
  left.sort((x, y) => order(x.uid, y.uid));
  const wanted = new Set(left.map(({ name }) => name));
  const taken = new Set();
  const named = left.map((vault) => {
    const name = taken.has(vault.name) ? freeName(vault.name, (one) => taken.has(one) || wanted.has(one)) : vault.name;
    taken.add(name);
    return { ...vault, name };
  });
  const version = first.version + 1;
  const shortly = (ring) => toBase64(unhex(ring.digest).slice(0, 16));
  const past = [...a.past, shortly(first)].slice(-MOST_PAST);
  const line = [...b.past.map((digest, at) => ({ version: second.version - b.past.length + at, digest })),
    { version: second.version, digest: shortly(second) }, ...b.merged, ...a.merged];
  const found = new Map();
  for (const one of line) {
    const place = `${one.version} ${one.digest}`;
    found.set(place, joined(one, found.get(place) ?? one));
  }
  const merged = [...found.values()]
    .filter((one) => one.version >= version - MOST_PAST && past[past.length - (version - one.version)] !== one.digest)
    .sort((x, y) => x.version - y.version || order(x.digest, y.digest)).slice(-MOST_PAST);
  const must = [...new Set([...a.must, ...b.must, "merged"])].sort(order);
  const decided = { vaults: named, gone: latest.sort((x, y) => order(x.uid, y.uid)), past, merged, must };
  return { version, previous: first.digest, body: joined({ ...a, ...decided }, { ...b, ...decided }) };
};
const changeKeyring = async ({ accountKey, keyring, change, random: draws }) => {
  const random = tape(draws);
  const ring = await reopen(keyring, unhex(accountKey));
  const account = unhex(ring.account);
  const next = { ...ring, version: ring.version + 1, previous: ring.digest, slots: hex(parts(keyring).head.slice(65)) };
  const past = [...ring.body.past, toBase64(unhex(ring.digest).slice(0, 16))].slice(-MOST_PAST);
  const merged = ring.body.merged.filter((one) => one.version >= next.version - MOST_PAST);
  let body = { ...ring.body, past, merged };
  const uid = change.uid === undefined ? undefined : uidOf(change.uid);
  const entry = (edit) => ({ ...body, vaults: body.vaults.map((vault) => (vault.uid === uid ? edit(vault) : vault)) });
  const setPassword = () =>
    withSlot(body, "password", unhex(change.wrap), passwordSlot(account, readDescriptor(change.descriptor)), random);
  const withoutRecovery = () =>
    ({ ...body, slots: body.slots.filter(({ type }) => type !== "recovery"), recovery: null });
  const changes = {
    "add vault": () => {
      const keys = [{ generation: 1, key: toBase64(random(32)) }];
      const made = { uid, name: change.name, sealed: change.sealed, made: false, floor: 1, keys };
      body = { ...body, vaults: [...body.vaults, made].sort((a, b) => order(a.uid, b.uid)) };
    },
    "made": () => { body = entry((vault) => ({ ...vault, made: true })); },
    "rename": () => { body = entry((vault) => ({ ...vault, name: change.name })); },
    "delete vault": () => {
      const gone = [...body.gone, { uid, version: next.version }].sort((a, b) => order(a.uid, b.uid));
      body = { ...body, vaults: body.vaults.filter((vault) => vault.uid !== uid), gone };
    },
    "rotate vault": () => { body = entry((vault) => ({ ...vault, keys: nextKey(vault.keys, random) })); },
    "floor": () => {
      const must = body.must.includes("floor") ? body.must : [...body.must, "floor"];
      body = { ...entry((vault) => ({ ...vault, floor: change.floor })), must };
    },
    "rotate": () => {
      next.generation += 1;
      next.slots = "";
      const identity = { generation: next.generation, sign: toBase64(random(32)), agree: toBase64(random(32)) };
      const storage = [...body.storage, { generation: next.generation, seed: toBase64(random(32)) }];
      next.accountKey = hex(random(32));
      const vaults = body.vaults.map((vault) => ({ ...vault, keys: nextKey(vault.keys, random) }));
      const slots = body.slots.filter(({ type }) => type !== "passkey");
      body = { ...body, slots, identity: [...body.identity, identity], storage, vaults };
    },
    "password": async () => { next.slots = ""; body = await setPassword(); },
    "recovery": async () => {
      next.slots = "";
      const secret = unhex(change.secret);
      body = await withSlot(body, "recovery", await recoveryWrap(secret), recoverySlot(account), random);
      body = { ...body, recovery: toBase64((await recoveryAuth(secret)).public) };
      body = await setPassword();
    },
    "no recovery": async () => { next.slots = ""; body = withoutRecovery(); body = await setPassword(); },
    "add passkey": async () => {
      next.slots = "";
      const secret = passkeySecret(change);
      body = await withSlot(body, "passkey", await secret.wrap(account), passkeySlot(account, secret), random);
    },
    "remove passkey": () => {
      next.slots = "";
      const spelled_ = toBase64(passkeySlot(account, passkeyOf(change)));
      body = { ...body, slots: body.slots.filter((slot) => slot.type !== "passkey" || slot.associated !== spelled_) };
    },
  };
  await changes[change.do]();
  return sealKeyring({ ...next, body, wrap: change.wrap }, random);
};

// Names
const nameDigest = async (key, place, padded) => hmac(await under(key, "name-digest"), join(place, list(padded)));
const nameBox = (key, digest) => hkdf(key, digest, items("name-box"));
const namePlace = ({ of, account, vault }) => items(`${of}-name`, unhex(account), uidOf(vault));
const plainName = (name) => { require(!/^sr[1-9][0-9]{0,3}\./.test(nameOf(name)), invalid); return name; };
const sealName = async (given, [generation, vaultKey] = newest(given.vaultKeys)) => {
  const name = utf8.encode(plainName(given.name));
  require(name.length <= 127, invalid);
  const padded = new Uint8Array(Math.ceil((1 + name.length) / 32) * 32);
  padded.set(join(Uint8Array.of(name.length), name));
  const key = await under(unhex(vaultKey), "names");
  const place = namePlace(given);
  const digest = await nameDigest(key, place, padded);
  return "sr2." + toUrl(join(u32(generation), digest, await encrypt(await nameBox(key, digest), padded, place)));
};
const openName = async (given) => {
  const raw = base64url(afterPrefix(given.sealed));
  require(raw.length >= 4 + 32 + 32 + 16);
  const key = await under(keyOf(given.vaultKeys, read(raw.slice(0, 4))), "names");
  const place = namePlace(given);
  const digest = raw.slice(4, 36);
  const padded = await decrypt(await nameBox(key, digest), raw.slice(36), place);
  require(same(digest, await nameDigest(key, place, padded)));
  const end = 1 + padded[0];
  require(end <= 128 && padded.length === Math.ceil(end / 32) * 32 && zeros(padded.slice(end)));
  return { name: orElse(tampered, () => plainName(strict.decode(padded.slice(1, end)))) };
};
const collectionNames = async (given) => {
  if (!given.sealed) {
    require(utf8.encode(plainName(given.name)).length <= 512, invalid);
    return { wires: [given.name] };
  }
  const wires = given.vaultKeys.map((key) => sealName({ ...given, of: "collection" }, key));
  return { wires: (await Promise.all(wires)).reverse() };
};

// Documents, deletions and parents
const LABELS = { 1: "document", 2: "deletion" };
const rowOf = (given, collection, uid, version, generation, parent) =>
  list(unhex(given.account), given.vault, collection, uid, version, generation, parent);
const proofOf = async (collectionKey, kind, row, data) => {
  const digest = kind === 1 ? await sha256(data) : none;
  return hmac(await under(collectionKey, "proof"), join(items("proof"), row, list(Uint8Array.of(kind), digest)));
};
const readProof = (text) => {
  require(typeof text === "string");
  const raw = ofLength(base64url(afterPrefix(text)), 52);
  const generation = read(raw.slice(0, 4));
  require(isGeneration(generation));
  return { generation, parent: raw.slice(4, 20), proof: raw.slice(20) };
};
const sealDocument = async (given) => {
  const kind = given.deletion ? 2 : 1;
  const [generation, collectionKey] = newest(given.collectionKeys);
  const key = unhex(collectionKey);
  const parent = unhex(given.parent);
  const row = rowOf(given, given.wires[0], uidOf(given.uid), given.version, generation, parent);
  const associated = join(items(LABELS[kind]), row);
  const padded = pad(given.kind, unhex(given.content));
  const box = await sealBox(await under(key, "seal"), tape(given.random)(32), padded, associated);
  const data = toBase64(join(Uint8Array.of(2, kind), u32(generation), box));
  const proof = await proofOf(key, kind, row, data);
  return { data, hmac: "sr2." + toUrl(join(u32(generation), parent, proof)), associated: hex(associated) };
};
const openDocument = (given) => {
  const { deletedAt, hmac: text } = given.row;
  require(deletedAt !== null || readProof(text).generation >= (given.floor ?? 1));
  return openPastDocument(given);
};
const openPastDocument = async (given) => {
  const { uid, vaultUid, collection, data, hmac: text, version, deletedAt } = given.row;
  require(vaultUid === given.vault && given.wires.includes(collection) && isVersion(version));
  const deleted = deletedAt !== null;
  const proven = version - (deleted ? 1 : 0);
  const { generation, parent, proof } = readProof(text);
  require(isVersion(proven));
  const purged = deleted && data === "";
  const raw = base64(data);
  const kind = purged ? 2 : raw[1];
  if (!purged) ofFormat(raw.length >= 6 ? raw[0] : 0);
  require(purged || (kind in LABELS && read(raw.slice(2, 6)) === generation));
  require(!deleted || kind === 2);
  const key = keyOf(given.collectionKeys, generation);
  const row = rowOf(given, collection, uid, proven, generation, parent);
  require(same(proof, await proofOf(key, kind, row, data)));
  let content = { kind: 0, content: none };
  if (!purged) {
    content = unpad(await openBox(await under(key, "seal"), raw.slice(6), join(items(LABELS[kind]), row)));
    require(kind === 2 || content.kind !== 0);
  }
  return { deleted: kind === 2, purged, generation, parent: hex(parent), ...shown(content) };
};
const linkOf = async ({ row }) => {
  const version = row.version - (row.deletedAt === null ? 0 : 1);
  return { link: [version, row.hmac], parentAfter: hex(await short(row.hmac)) };
};
const trace = async ({ of, newest: [version, text], seen: [seenVersion, seenText], history }) => {
  const told = (one) => (of === "blob" ? blobHead(base64(one)) : readProof(one));
  const parentOf = (one) => hex(told(one).parent);
  const known = new Map();
  for (const [at, one] of history) {
    const named = await short(one).catch((refusal) => require(refusal instanceof Refusal) && null);
    if (named) known.set(hex(named), [at, one]);
  }
  let lowest = version;
  let parent = parentOf(text);
  const wanted = hex(await short(seenText));
  if (text === seenText) return { descent: "follows" };
  if (told(text).generation < told(seenText).generation) return { descent: "forked" };
  while (parent !== wanted) {
    if (parent === "00".repeat(16) || lowest <= seenVersion + 1) return { descent: "forked" };
    if (!known.has(parent)) return { descent: "gap" };
    const [at, one] = known.get(parent);
    known.delete(parent);
    lowest = Math.min(lowest, at);
    parent = parentOf(one);
  }
  return { descent: "follows" };
};

// Blobs
const blobHead = (raw) => {
  ofFormat(raw[0]);
  require(raw.length >= 22 && raw[1] === 3);
  const generation = read(raw.slice(2, 6));
  require(isGeneration(generation));
  return { generation, parent: raw.slice(6, 22) };
};
const blobItems = ({ account, vault }, name, version, generation, parent) =>
  items("blob", unhex(account), vault, name, version, generation, parent);
const sealBlob = async (given) => {
  const [generation, vaultKey] = newest(given.vaultKeys);
  const parent = unhex(given.parent);
  const associated = blobItems(given, given.name, given.version, generation, parent);
  const padded = pad(given.kind, unhex(given.content));
  const box = await sealBox(await under(unhex(vaultKey), "blob"), tape(given.random)(32), padded, associated);
  const data = join(Uint8Array.of(2, 3), u32(generation), parent, box.slice(32));
  return { data: toBase64(data), salt: toBase64(box.slice(0, 32)) };
};
const openBlob = async (given) => {
  const { uid, name, version, data, salt } = given.row;
  require(uid === given.vault && data !== null && salt !== null && isVersion(version));
  const raw = base64(data);
  const { generation, parent } = blobHead(raw);
  require(generation >= (given.floor ?? 1));
  const key = await under(keyOf(given.vaultKeys, generation), "blob");
  const box = join(ofLength(base64(salt), 32), raw.slice(22));
  const content = unpad(await openBox(key, box, blobItems(given, name, version, generation, parent)));
  require(content.kind !== 0);
  return { generation, parent: hex(parent), ...shown(content) };
};

// Tokens
const isApiKey = (text) => /^[!-~]{1,1024}$/.test(text);
const checksum = async (body) => (await sha256(items("token", body))).slice(0, 4);
const makeToken = async ({ apiKey, account, scope, vault, name, vaultKeys, namesKeys, collectionKeys, wires, floor, keyring }) => {
  require(isApiKey(apiKey), invalid);
  const text = (part) => join(u16(utf8.encode(part).length), utf8.encode(part));
  const many = (parts_) => join(Uint8Array.of(parts_.length), ...parts_);
  const listed = (keys) => many(keys.map(([generation, key]) => join(u32(generation), unhex(key))));
  const keys = join(listed(scope === 2 ? collectionKeys : vaultKeys), listed(namesKeys ?? []));
  const names = (scope === 2 ? wires : []).map(text);
  const head = join(Uint8Array.of(2, scope), unhex(account), ...[apiKey, uidOf(vault), name].map(text));
  const body = join(head, keys, many(names), u32(floor ?? 1), u64(keyring));
  return { token: "srv_" + toUrl(join(body, await checksum(body))) };
};
const readToken = async ({ token }) => {
  require(token.startsWith("srv_") && token.length <= 8192, invalid);
  const raw = orElse(invalid, () => base64url(token.slice(4)));
  ofFormat(raw[0], invalid);
  require(raw.length >= 4, invalid);
  const body = raw.slice(0, -4);
  require(same(await checksum(body), raw.slice(-4)), invalid);
  let at = 0;
  const take = (length) => {
    require(at + length <= body.length, invalid);
    at += length;
    return body.slice(at - length, at);
  };
  const text = () => { const part = take(read(take(2))); return orElse(invalid, () => strict.decode(part)); };
  const many = (one) => Array.from({ length: take(1)[0] }, one);
  const [, scope] = take(2);
  require([1, 2, 3].includes(scope), invalid);
  const account = hex(take(16));
  const [apiKey, vault, name] = [text(), text(), text()];
  const listed = () => many(() => [read(take(4)), hex(take(32))]);
  const [keys, namesKeys] = [listed(), listed()];
  const collections = many(() => nameOf(text()));
  const [floor, keyring] = [read(take(4)), read(take(8))];
  const generations = [...namesKeys, ...keys].map(([generation]) => generation);
  require(at === body.length && keys.length >= 1 && isApiKey(apiKey) && uidOf(vault) === vault, invalid);
  require(generations.every(isGeneration) && ascends(generations), invalid);
  require(floor >= 1 && floor <= keys.at(-1)[0] && keyring >= 1 && keyring < 2 ** 53, invalid);
  require(namesKeys.length === 0 || scope === 1, invalid);
  require((collections.length > 0) === (scope === 2) && new Set(collections).size === collections.length, invalid);
  if (scope === 2 || name !== "") nameOf(name);
  return { apiKey, account, scope, vault, name, floor, keyring, keys, namesKeys, collections };
};

// What a device remembers
const rolledBack = () => refuse("rolled_back");
const rememberRow = ({ seen, row }) => {
  if (seen !== null) {
    const [version, text, collection] = seen;
    require(row.collection === collection);
    require(row.version >= version, rolledBack);
    require(row.version > version || row.hmac === text);
  }
  return { seen: [row.version, row.hmac, row.collection] };
};
const rememberBlob = async ({ seen: [version, data], shown: [newVersion, newData] }) => {
  require(data === null || newData !== null);
  require(version !== newVersion || data === newData);
  return { digest: newData === null ? null : toUrl(await sha256(newData)) };
};
const rememberAccount = async ({ accountKey, keyring, descriptor, seen }) => {
  const { account, version, digest, body } = await reopen(keyring, unhex(accountKey));
  const checks = await Promise.all(body.identity.map(async ({ generation, sign, agree }) =>
    toUrl(await sha256(items("identity-check", unhex(account), generation, base64(sign), base64(agree))))));
  const { memory, passes } = readDescriptor(descriptor);
  const url = (text) => toUrl(unhex(text));
  if (seen !== null) {
    require(url(account) === seen.account);
    require(version >= seen.version, rolledBack);
    require(version !== seen.version || url(digest) === seen.digest);
    const before = version - seen.version;
    const then = toBase64(base64url(seen.digest).slice(0, 16));
    require(before === 0 || before > body.past.length || body.past.at(-before) === then);
    require(checks.includes(seen.identity));
    require(memory >= seen.memory && passes >= seen.passes, weak);
  }
  return { seen: { account: url(account), version, digest: url(digest), identity: checks.at(-1), memory, passes } };
};

const spellItem = { label, text: String, number: Number, bytes: unhex };
const OPERATIONS = {
  "items": ({ items: given }) => ({ items: hex(list(...given.map(([kind, value]) => spellItem[kind](value)))) }),
  "short": async ({ text }) => ({ short: hex(await short(text)) }),
  "base64": ({ text }) => ({ bytes: hex(base64(text)) }),
  "base64url": ({ text }) => ({ bytes: hex(base64url(text)) }),
  "to-base64": ({ bytes }) => ({ base64: toBase64(unhex(bytes)), base64url: toUrl(unhex(bytes)) }),
  "padded-length": ({ length }) => ({ padded: paddedLength(length) }),
  "pad": ({ kind, content }) => ({ padded: hex(pad(kind, unhex(content))) }),
  "unpad": ({ padded }) => shown(unpad(unhex(padded))),
  "seal-box": async ({ key, plaintext, associated, random }) => ({
    box: hex(await sealBox(unhex(key), tape(random)(32), unhex(plaintext), unhex(associated))),
  }),
  "open-box": async ({ key, box, associated }) => ({
    plaintext: hex(await openBox(unhex(key), unhex(box), unhex(associated))),
  }),
  "key-pair": async ({ secret }) => hexed(await keyPair(unhex(secret))),
  "seal-to": async ({ public: to, plaintext, associated, random }) => ({
    sealed: hex(await sealTo(unhex(to), unhex(associated), unhex(plaintext), tape(random))),
  }),
  "open-sealed": async ({ secret, sealed, associated }) => ({
    plaintext: hex(await openSealed(await keyPair(unhex(secret)), unhex(sealed), unhex(associated))),
  }),
  "filler": async ({ length, random }) => ({ filler: hex(await filler(length, tape(random))) }),
  "password-keys": passwordKeys,
  "split": split,
  "normal-email": ({ email }) => ({ email: normalEmail(email) }),
  "new-password": newPassword,
  "new-descriptor": async ({ random: draws }) => {
    const random = tape(draws);
    const salt = random(16);
    return { descriptor: spellDescriptor(65536, 3, salt, await filler(144, random)) };
  },
  "read-descriptor": ({ descriptor, floor }) => {
    const { memory, passes, salt, recovery } = readDescriptor(descriptor, floor);
    return { memory, passes, salt: hex(salt), recovery: hex(recovery) };
  },
  "read-recovery-key": async ({ printed }) => {
    const secret = await readRecovery(printed);
    return { secret: hex(secret), printed: await printRecovery(secret) };
  },
  "print-recovery-key": async ({ secret }) => {
    const wrap = await recoveryWrap(unhex(secret));
    const wrapPublic = (await keyPair(wrap)).public;
    const authPublic = (await recoveryAuth(unhex(secret))).public;
    return { printed: await printRecovery(unhex(secret)), ...(await hexed({ wrap, wrapPublic, authPublic })) };
  },
  "read-content": ({ json }) => ({ value: parseContent(unhex(json)) }),
  "write-content": ({ value }) => ({ value: writeContent(value) }),
  "seal-auth": sealAuth,
  "open-auth": openAuth,
  "keyring-key": ({ accountKey }) => hexed({ keyring: under(unhex(accountKey), "keyring") }),
  "storage-keys": ({ seed: given, id }) => {
    const seed = unhex(given);
    return hexed({
      vault: under(seed, "replica-vault"), renamed: under(seed, "replica-renamed"),
      contents: under(seed, "replica-contents"), email: under(seed, "replica-email"),
      session: under(seed, "session-file", id),
    });
  },
  "vault-keys": ({ vaultKey }) => hexed({ blob: under(unhex(vaultKey), "blob"), names: under(unhex(vaultKey), "names") }),
  "collection-keys": async ({ vaultKey, collection }) => {
    const key = await under(unhex(vaultKey), "collection", nameOf(collection));
    return hexed({ key, sealing: under(key, "seal"), proving: under(key, "proof") });
  },
  "seal-keyring": (given) => sealKeyring(given, tape(given.random)),
  "change-keyring": changeKeyring,
  "merge-keyrings": mergeKeyrings,
  "open-keyring": ({ wrap, descriptor, keyring }) => {
    const told = readDescriptor(descriptor);
    return byWay(keyring, unhex(wrap), (account) => passwordSlot(account, told));
  },
  "recover-keyring": async ({ recoveryKey, keyring }) =>
    byWay(keyring, await recoveryWrap(await readRecovery(recoveryKey)), recoverySlot),
  "reopen-keyring": ({ keyring, accountKey }) => reopen(keyring, unhex(accountKey)),
  "open-slot": async ({ secret, slot, associated }) =>
    openSlot(await keyPair(unhex(secret)), unhex(slot), unhex(associated)),
  "passkey-input": async () => ({
    input: hex(PRF_INPUT), salt: hex(await sha256(join(utf8.encode("WebAuthn PRF"), Uint8Array.of(0), PRF_INPUT))),
  }),
  "passkey-keys": async (given) => {
    const account = unhex(given.account);
    const secret = passkeySecret(given);
    const wrap = await secret.wrap(account);
    return hexed({ wrap, public: (await keyPair(wrap)).public, associated: passkeySlot(account, secret) });
  },
  "unlock-keyring": (given) => {
    const secret = passkeySecret(given);
    return byWay(given.keyring, secret.wrap, (account) => passkeySlot(account, secret));
  },
  "seal-name": async (given) => ({ sealed: await sealName(given) }),
  "open-name": openName,
  "collection-names": collectionNames,
  "seal-document": sealDocument,
  "open-document": openDocument,
  "open-past-document": openPastDocument,
  "link": linkOf,
  "trace": trace,
  "seal-blob": sealBlob,
  "open-blob": openBlob,
  "make-token": makeToken,
  "read-token": readToken,
  "remember-row": rememberRow,
  "remember-blob": rememberBlob,
  "remember-account": rememberAccount,
};

const spelled = (value) =>
  JSON.stringify(value, (_, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner);

const here = new URL(".", import.meta.url);
let [passed, failed] = [0, 0];
for (const file of readdirSync(here).filter((name) => name.endsWith(".json")).sort()) {
  for (const { name, does, given, gives, error } of JSON.parse(readFileSync(new URL(file, here), "utf-8")).cases) {
    let outcome;
    try {
      outcome = spelled(await OPERATIONS[does](given));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw new Error(`${file}: ${name}`, { cause: refusal });
      outcome = refusal.code;
    }
    if (outcome === (error ?? spelled(gives))) { passed += 1; continue; }
    failed += 1;
    console.log(`${file}: ${name}: ${outcome.slice(0, 200)}, not ${(error ?? spelled(gives)).slice(0, 200)}`);
  }
}
console.log(`${passed} as they should be, ${failed} not`);
process.exit(failed ? 1 : 0);
