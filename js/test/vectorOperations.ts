// What a vector can ask for: each operation takes plain data and gives plain data, or refuses.
import { Refusal, Tampered } from "../src/errors.js";
import { openBox, sealBox } from "../src/format/box.js";
import { toContent, toValue } from "../src/format/content.js";
import { masterKey, newDescriptor, newPassword, spelledAuth, splitMaster } from "../src/format/derive.js";
import { kdfSalt, normalEmail, readDescriptor, spellDescriptor } from "../src/format/descriptor.js";
import {
  type Bytes,
  checkedUid,
  fromBase64,
  fromUrl,
  type Item,
  items,
  join,
  list,
  NONE,
  type Random,
  readNumber,
  short,
  toBase64,
  toUrl,
} from "../src/format/encoding.js";
import { Keyring } from "../src/format/keyring.js";
import type { Body } from "../src/format/keyringBody.js";
import { withoutVault } from "../src/format/keyringDirectory.js";
import { mergeKeyrings } from "../src/format/keyringMerge.js";
import * as keyringSlots from "../src/format/keyringSlots.js";
import {
  collectionKey,
  type CollectionKeys,
  collectionSecret,
  derive,
  newest,
  vaultKeys,
  type VaultKeys,
} from "../src/format/keys.js";
import { collectionKeys, openName, sealName } from "../src/format/names.js";
import { type Content, JSON_TEXT, pad, paddedLength, unpad } from "../src/format/padding.js";
import { trace } from "../src/format/parents.js";
import { passkeyId, passkeySlot } from "../src/format/passkey.js";
import { passkeySecret, passkeyWrap, PRF_INPUT } from "../src/format/passkeySecret.js";
import { primitives, usePrimitives, webCrypto } from "../src/format/primitives.js";
import { filler, keyPair, openSealed, sealTo } from "../src/format/publicBox.js";
import {
  openAuth,
  printRecoveryKey,
  readRecoveryKey,
  recoveryAuth,
  recoveryWrap,
  sealAuth,
} from "../src/format/recovery.js";
import { openPastDocument } from "../src/format/past.js";
import {
  blobLineage,
  link,
  openBlob,
  type Opened,
  openDocument,
  parentAfter,
  readProof,
  sealBlob,
  sealContent,
} from "../src/format/seal.js";
import { Secret } from "../src/format/secret.js";
import { readToken, SCOPES, spellToken } from "../src/format/tokens.js";
import { checkBlob, nextAccount, nextRow, seenBlob } from "../src/operations/rollback.js";

// biome-ignore lint/suspicious/noExplicitAny: the vectors are JSON, and each operation knows what its own look like
type Given = any;

export interface Case {
  readonly name: string;
  readonly does: string;
  readonly given: Given;
  readonly gives?: unknown;
  readonly error?: string;
}

const hex = (raw: Uint8Array): string => Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text: string): Bytes => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const secret = (text: string): Secret => new Secret(unhex(text));
const key = (text: string): Promise<object> => primitives().key("HKDF", unhex(text));
const keysOf = (raw: Secret): { auth: Secret; wrap: Secret } => ({ auth: raw, wrap: raw });
const shown = ({ kind, data }: Content): object => ({ kind, content: hex(data) });
const shownDocument = ({ deleted, purged, generation, parent, content: opened }: Opened): object => ({
  deleted,
  purged,
  generation,
  parent: hex(parent),
  ...shown(opened),
});
const content = (given: Given): Content => ({ kind: given.kind, data: unhex(given.content) });
const generations = (given: [number, string][]) => given.map(([generation, raw]) => [generation, secret(raw)] as const);

// Many vectors derive the same keys, at the cost of production: what Argon2id gave once is not asked for again.
const derived = new Map<string, Promise<Bytes>>();
usePrimitives({
  ...webCrypto,
  argon2id(password, salt, memory, passes) {
    const asked = [hex(password), hex(salt), memory, passes].join(" ");
    const found = derived.get(asked) ?? webCrypto.argon2id(password, salt, memory, passes);
    derived.set(asked, found);
    return found;
  },
});

/** Randomness that a vector gives: what each draw gives, in order. */
function tape(draws: readonly string[]): Random {
  const left = draws.map(unhex);
  return (length) => {
    const drawn = left.shift();
    if (drawn?.length !== length) throw new Error("another draw than the vector's");
    return drawn;
  };
}

const vaultOf = (given: Given): Promise<VaultKeys> =>
  vaultKeys(unhex(given.account), given.vault, generations(given.vaultKeys), given.floor ?? 1);
const collectionOf = async (given: Given): Promise<CollectionKeys> => ({
  account: unhex(given.account),
  vault: given.vault,
  name: given.name ?? "",
  wires: given.wires,
  keys: await Promise.all(generations(given.collectionKeys).map(collectionKey)),
  keyring: null,
  floor: given.floor ?? 1,
});
const passkeyOf = (given: Given) => passkeySecret(given.rpId, unhex(given.credential), unhex(given.prf));

function shownRing(ring: Keyring): object {
  const { key: account, body } = ring.reveal();
  return {
    accountKey: hex(account.reveal()),
    account: hex(ring.account),
    version: ring.version,
    generation: ring.generation,
    previous: hex(ring.previous),
    digest: hex(ring.digest),
    body,
  };
}

async function changed(ring: Keyring, change: Given, random: Random): Promise<Keyring> {
  const password = (of: Keyring) =>
    keyringSlots.withPassword(of, keysOf(secret(change.wrap)), readDescriptor(change.descriptor), random);
  switch (change.do) {
    case "add vault":
      return ring.withVault(change.uid, change.name, change.sealed, random);
    case "made":
      return ring.withEntry(change.uid, { made: true });
    case "rename":
      return ring.withEntry(change.uid, { name: change.name });
    case "delete vault":
      return withoutVault(ring, change.uid);
    case "rotate vault":
      return keyringSlots.withRotatedVault(ring, change.uid, random);
    case "floor":
      return keyringSlots.withFloors(ring, new Map([[change.uid, change.floor]])) ?? ring;
    case "rotate":
      return keyringSlots.rotated(ring, random);
    case "password":
      return password(ring);
    case "recovery":
      return password(await keyringSlots.withRecovery(ring, secret(change.secret), random));
    case "no recovery":
      return password(keyringSlots.withoutRecovery(ring));
    case "add passkey":
      return keyringSlots.withPasskey(ring, passkeyOf(change), random);
    case "remove passkey":
      return keyringSlots.withoutPasskey(ring, passkeyId(change.rpId, unhex(change.credential)));
    default:
      throw new Error(`an unknown change: ${change.do}`);
  }
}

const splitOf = async (master: Secret): Promise<object> => {
  const { auth, wrap } = await splitMaster(master);
  return { auth: hex(auth.reveal()), wrap: hex(wrap.reveal()), password: spelledAuth(auth) };
};

const ITEM: Record<string, (value: Given) => Item> = {
  label: (value) => `strongroom/2/${value}`,
  text: String,
  number: Number,
  bytes: unhex,
};

const OPERATIONS: Record<string, (given: Given) => unknown> = {
  items: (given) => ({ items: hex(list(...given.items.map(([kind, value]: [string, Given]) => ITEM[kind]?.(value)))) }),
  short: async (given) => ({ short: hex(await short(given.text)) }),
  base64: (given) => ({ bytes: hex(fromBase64(given.text)) }),
  base64url: (given) => ({ bytes: hex(fromUrl(given.text)) }),
  "to-base64": (given) => ({ base64: toBase64(unhex(given.bytes)), base64url: toUrl(unhex(given.bytes)) }),
  "padded-length": (given) => ({ padded: paddedLength(given.length) }),
  pad: (given) => ({ padded: hex(pad(content(given))) }),
  unpad: (given) => shown(unpad(unhex(given.padded))),
  "read-content": (given) => ({ value: toValue({ kind: JSON_TEXT, data: unhex(given.json) }) }),
  "write-content": (given) => ({ value: toValue(toContent(given.value)) }),
  "seal-box": async (given) => ({
    box: hex(
      await sealBox(await key(given.key), tape(given.random)(32), unhex(given.plaintext), unhex(given.associated)),
    ),
  }),
  "open-box": async (given) => ({
    plaintext: hex(await openBox(await key(given.key), unhex(given.box), unhex(given.associated))),
  }),
  "key-pair": async (given) => {
    const pair = await keyPair(secret(given.secret));
    return { private: hex(pair.private.reveal()), public: hex(pair.public) };
  },
  "seal-to": async (given) => ({
    sealed: hex(await sealTo(unhex(given.public), unhex(given.plaintext), unhex(given.associated), tape(given.random))),
  }),
  "open-sealed": async (given) => ({
    plaintext: hex(await openSealed(await keyPair(secret(given.secret)), unhex(given.sealed), unhex(given.associated))),
  }),
  filler: async (given) => ({ filler: hex(await filler(given.length, tape(given.random))) }),
  "password-keys": async (given) => {
    const descriptor = readDescriptor(given.descriptor);
    const salt = await kdfSalt(given.email, descriptor);
    const master = await masterKey(salt, given.password, descriptor);
    return { salt: hex(salt), master: hex(master.reveal()), ...(await splitOf(master)) };
  },
  split: (given) => splitOf(secret(given.master)),
  "normal-email": (given) => ({ email: normalEmail(given.email) }),
  "new-password": (given) => ({ bytes: hex(newPassword(given.password)) }),
  "new-descriptor": async (given) => ({ descriptor: spellDescriptor(await newDescriptor(tape(given.random))) }),
  "read-descriptor": (given) => {
    const [memory, passes] = given.floor ?? [0, 0];
    const read = readDescriptor(given.descriptor, { memory, passes });
    return { memory: read.memory, passes: read.passes, salt: hex(read.salt), recovery: hex(read.recovery) };
  },
  "read-recovery-key": async (given) => {
    const read = await readRecoveryKey(given.printed);
    return { secret: hex(read.reveal()), printed: await printRecoveryKey(read) };
  },
  "print-recovery-key": async (given) => {
    const wrap = await recoveryWrap(secret(given.secret));
    return {
      printed: await printRecoveryKey(secret(given.secret)),
      wrap: hex(wrap.reveal()),
      wrapPublic: hex((await keyPair(wrap)).public),
      authPublic: hex((await recoveryAuth(secret(given.secret))).public),
    };
  },
  "seal-auth": async (given) => {
    const descriptor = readDescriptor(given.descriptor);
    const keys = keysOf(secret(given.auth));
    return {
      descriptor: spellDescriptor(
        await sealAuth(unhex(given.authPublic), given.email, descriptor, keys, tape(given.random)),
      ),
    };
  },
  "open-auth": async (given) => {
    const opened = await openAuth(
      await readRecoveryKey(given.recoveryKey),
      given.email,
      readDescriptor(given.descriptor),
    );
    return { auth: hex(opened.reveal()) };
  },
  "keyring-key": async (given) => ({ keyring: hex(await derive(await key(given.accountKey), "keyring")) }),
  "merge-keyrings": async (given) => {
    const secret = new Secret(unhex(given.accountKey));
    const [one, other] = (await Promise.all(
      (given.keyrings as string[]).map((sealed) => Keyring.reopen(sealed, secret)),
    )) as [Keyring, Keyring];
    const made = mergeKeyrings(one, other);
    return { version: made.version, previous: hex(made.previous), body: made.reveal().body };
  },
  "storage-keys": async (given) => {
    const root = await key(given.seed);
    const keys = ["vault", "renamed", "contents", "email"].map(async (name) => [
      name,
      hex(await derive(root, `replica-${name}`)),
    ]);
    return {
      ...Object.fromEntries(await Promise.all(keys)),
      session: hex(await derive(root, "session-file", given.id)),
    };
  },
  "vault-keys": async (given) => {
    const root = await key(given.vaultKey);
    return { blob: hex(await derive(root, "blob")), names: hex(await derive(root, "names")) };
  },
  "collection-keys": async (given) => {
    const made = await collectionSecret(await key(given.vaultKey), given.collection);
    const root = await made.key();
    return {
      key: hex(made.reveal()),
      sealing: hex(await derive(root, "seal")),
      proving: hex(await derive(root, "proof")),
    };
  },
  "seal-keyring": async (given) => {
    const { version, generation } = given;
    const head = { account: unhex(given.account), version, generation, previous: unhex(given.previous) };
    const ring = Keyring.of(
      { ...head, slots: unhex(given.slots), digest: NONE },
      secret(given.accountKey),
      given.body as Body,
    );
    return {
      keyring: (
        await keyringSlots.sealWithSlots(
          ring,
          tape(given.random),
          "wrap" in given ? keysOf(secret(given.wrap)) : undefined,
        )
      ).sealed,
    };
  },
  "change-keyring": async ({ keyring, accountKey, change, random: draws }) => {
    const random = tape(draws);
    const ring = await changed(await Keyring.reopen(keyring, secret(accountKey)), change, random);
    return {
      keyring: (
        await keyringSlots.sealWithSlots(ring, random, "wrap" in change ? keysOf(secret(change.wrap)) : undefined)
      ).sealed,
    };
  },
  "open-keyring": async (given) =>
    shownRing(
      await keyringSlots.openWithPassword(given.keyring, keysOf(secret(given.wrap)), readDescriptor(given.descriptor)),
    ),
  "recover-keyring": async (given) =>
    shownRing(await keyringSlots.openWithRecovery(given.keyring, await readRecoveryKey(given.recoveryKey))),
  "reopen-keyring": async (given) => shownRing(await Keyring.reopen(given.keyring, secret(given.accountKey))),
  "unlock-keyring": async (given) => shownRing(await keyringSlots.openWithPasskey(given.keyring, passkeyOf(given))),
  "open-slot": async (given) => {
    const slot = unhex(given.slot);
    if (slot.length !== 148) throw new Tampered();
    const payload = await openSealed(await keyPair(secret(given.secret)), slot, unhex(given.associated));
    return { generation: readNumber(payload.subarray(0, 4)), accountKey: hex(payload.subarray(4)) };
  },
  "passkey-input": async () => ({
    input: hex(PRF_INPUT),
    salt: hex(await primitives().sha256(join(new TextEncoder().encode("WebAuthn PRF\0"), PRF_INPUT))),
  }),
  "passkey-keys": async (given) => {
    const [account, made] = [unhex(given.account), passkeyOf(given)];
    const wrap = await passkeyWrap(made, account);
    return {
      wrap: hex(wrap.reveal()),
      public: hex((await keyPair(wrap)).public),
      associated: hex(passkeySlot(account, made)),
    };
  },
  "seal-name": async (given) => {
    const keys = await vaultOf(given);
    return { sealed: await sealName(keys, newest(keys), given.of, given.name) };
  },
  "open-name": async (given) => ({ name: await openName(await vaultOf(given), given.of, given.sealed) }),
  "collection-names": async (given) => ({
    wires: (await collectionKeys(await vaultOf(given), given.name, given.sealed)).wires,
  }),
  "seal-document": async (given) => {
    const keys = await collectionOf(given);
    const [kind, parent] = [given.deletion ? 2 : 1, unhex(given.parent)];
    const made = await sealContent(keys, kind, given.uid, given.version, content(given), {
      parent,
      random: tape(given.random),
    });
    const label = given.deletion ? "deletion" : "document";
    const { generation } = newest(keys);
    const associated = items(
      label,
      keys.account,
      keys.vault,
      keys.wires[0],
      checkedUid(given.uid),
      given.version,
      generation,
      parent,
    );
    return { ...made, associated: hex(associated) };
  },
  "open-document": async (given) => shownDocument(await openDocument(await collectionOf(given), given.row)),
  "open-past-document": async (given) => shownDocument(await openPastDocument(await collectionOf(given), given.row)),
  link: async ({ row }) => ({ link: link(row), parentAfter: hex(await parentAfter(row)) }),
  trace: async (given) => ({
    descent: await trace(given.newest, given.seen, given.history, given.of === "blob" ? blobLineage : readProof),
  }),
  "seal-blob": async (given) =>
    sealBlob(await vaultOf(given), given.name, given.version, content(given), {
      parent: unhex(given.parent),
      random: tape(given.random),
    }),
  "open-blob": async (given) => {
    const opened = await openBlob(await vaultOf(given), given.row.name, given.row);
    const { generation, parent } = blobLineage(given.row.data);
    return { generation, parent: hex(parent), ...shown(opened) };
  },
  "make-token": async (given) => {
    const { apiKey, scope, vault, name } = given;
    const part = scope === SCOPES.collection;
    const keys = generations(part ? given.collectionKeys : given.vaultKeys);
    return {
      token: await spellToken({
        apiKey,
        account: unhex(given.account),
        scope,
        vault,
        name,
        floor: given.floor ?? 1,
        keyring: given.keyring,
        keys,
        former: generations(given.namesKeys ?? []),
        collections: part ? given.wires : [],
      }),
    };
  },
  "read-token": async (given) => {
    const { apiKey, account, scope, vault, name, floor, keyring, keys, former, collections } = await readToken(
      given.token,
    );
    const spelled = (some: typeof keys) => some.map(([generation, one]) => [generation, hex(one.reveal())]);
    return {
      apiKey,
      account: hex(account),
      scope,
      vault,
      name,
      floor,
      keyring,
      keys: spelled(keys),
      namesKeys: spelled(former),
      collections,
    };
  },
  "remember-row": (given) => ({ seen: nextRow(given.seen, given.row) }),
  "remember-blob": async ({ seen, shown: now }) => {
    checkBlob(seen[0], seen[1], now[0], now[1]);
    return { digest: await seenBlob(now[1]) };
  },
  "remember-account": async (given) => {
    const ring = await Keyring.reopen(given.keyring, secret(given.accountKey));
    return { seen: await nextAccount(given.seen, ring, readDescriptor(given.descriptor)) };
  },
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const spelled = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );

/** What an operation gives, or the code of its refusal; of any other error, its text. */
export async function outcomeOf(does: string, given: Given): Promise<{ gives: unknown } | { error: string }> {
  try {
    return { gives: await OPERATIONS[does]?.(given) };
  } catch (fault) {
    return { error: fault instanceof Refusal ? fault.code : `${fault instanceof Error ? fault.stack : String(fault)}` };
  }
}

/** What differs from what the vectors say: nothing, where all is well. */
export async function differences(cases: readonly Case[]): Promise<string[]> {
  const found: string[] = [];
  for (const { name, does, given, gives, error } of cases) {
    const made = await outcomeOf(does, given);
    const outcome = "gives" in made ? spelled(made.gives) : made.error;
    const expected = error ?? spelled(gives);
    if (outcome !== expected) found.push(`${does}: ${name}: ${outcome.slice(0, 300)}, not ${expected.slice(0, 300)}`);
  }
  return found;
}
