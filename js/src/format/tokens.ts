// A token that carries an API key and the keys of one vault, or of one collection, and nothing that leads further.
import { Invalid, Refusal, Unsupported } from "../errors.js";
import {
  ascend,
  type Bytes,
  checkFormat,
  checkedName,
  checkedUid,
  equal,
  FORMAT,
  fromText,
  fromUrl,
  isGeneration,
  isVersion,
  items,
  join,
  KEY,
  must,
  number,
  readNumber,
  text,
  toUrl,
} from "./encoding.js";
import { ACCOUNT, collectionKey, type CollectionKeys, type Generation, vaultKeys, type VaultKeys } from "./keys.js";
import { primitives } from "./primitives.js";
import { Secret } from "./secret.js";

const PREFIX = "srv_";
const MOST = 8192; // characters
const BAD = { token: "must be a whole token, as it was made: srv_ and letters, digits, - and _" };
/** What a token opens: a vault, a collection, or a vault whose names are not sealed. */
export const SCOPES = { vault: 1, collection: 2, plainVault: 3 } as const;

/** The parts of a token. `name` is what people call the vault or the collection. */
export interface Token {
  readonly apiKey: string;
  readonly account: Bytes;
  readonly scope: number;
  readonly vault: string;
  readonly name: string;
  /** The lowest generation of a live row. */
  readonly floor: number;
  /** The version of the keyring that the keys and the floor are from. */
  readonly keyring: number;
  readonly keys: readonly Generation[];
  /** The names keys of generations before `keys`, of a vault whose names are sealed. */
  readonly former: readonly Generation[];
  /** The collection's names on the wire, that of the highest generation first; none for a vault. */
  readonly collections: readonly string[];
}

const checksum = async (body: Bytes): Promise<Bytes> => (await primitives().sha256(items("token", body))).slice(0, 4);

/** The token as text: a secret as a whole. */
export async function spellToken(token: Token): Promise<string> {
  const texts = (part: string): Bytes => {
    const raw = text(part); // one that is too long does not open again, below
    return join(number(raw.length, 2), raw);
  };
  const many = (parts: readonly Bytes[]): Bytes => {
    if (parts.length > 255) throw new Invalid({ token: "has too many keys: they were rotated too often" });
    return join(Uint8Array.of(parts.length), ...parts);
  };
  const body = join(
    Uint8Array.of(FORMAT, token.scope),
    token.account,
    ...[token.apiKey, checkedUid(token.vault), token.name].map(texts),
    ...[token.keys, token.former].map((keys) =>
      many(keys.map(([generation, key]) => join(number(generation, 4), key.reveal()))),
    ),
    many(token.collections.map(texts)),
    number(token.floor, 4),
    number(token.keyring),
  );
  const spelled = PREFIX + toUrl(join(body, await checksum(body)));
  try {
    await readToken(spelled);
  } catch {
    throw new Invalid({ token: "has a part that a token cannot carry" });
  }
  return spelled;
}

/** A token from its text; a typo is noticed. */
export async function readToken(spelled: unknown): Promise<Token> {
  try {
    return await read(spelled);
  } catch (fault) {
    if (!(fault instanceof Refusal) || fault instanceof Unsupported) throw fault;
  }
  throw new Invalid(BAD);
}

async function read(spelled: unknown): Promise<Token> {
  must(typeof spelled === "string" && spelled.startsWith(PREFIX) && spelled.length <= MOST);
  const raw = fromUrl(spelled.slice(PREFIX.length));
  checkFormat(raw[0]); // before the checksum, which each format makes in its own way
  const body = raw.slice(0, -4);
  must(equal(await checksum(body), raw.subarray(-4)));
  let at = 0;
  const take = (length: number): Bytes => {
    at += length; // what is missing is noticed at the end
    return body.slice(at - length, at);
  };
  const takeText = (): string => {
    const found = fromText(take(readNumber(take(2))));
    must(found !== null);
    return found;
  };
  const many = <T>(one: () => T): T[] => Array.from({ length: readNumber(take(1)) }, one);
  const [, scope = 0] = take(2);
  must(scope >= 1 && scope <= 3);
  const account = take(ACCOUNT);
  const [apiKey, vault, name] = [takeText(), takeText(), takeText()];
  const takeKeys = () => many((): Generation => [readNumber(take(4)), new Secret(take(KEY))]);
  const [keys, former] = [takeKeys(), takeKeys()];
  const collections = many(() => checkedName(takeText(), "token"));
  const [floor, keyring] = [readNumber(take(4)), readNumber(take(8))];
  const generations = [...former, ...keys].map(([generation]) => generation);
  must(at === body.length && keys.length > 0 && ascend(generations) && generations.every(isGeneration));
  must(floor >= 1 && floor <= (generations.at(-1) ?? 0) && isVersion(keyring));
  must(former.length === 0 || scope === SCOPES.vault);
  must(/^[!-~]{1,1024}$/.test(apiKey) && checkedUid(vault) === vault);
  must(collections.length > 0 === (scope === SCOPES.collection) && new Set(collections).size === collections.length);
  if (scope === SCOPES.collection || name) checkedName(name, "token");
  return { apiKey, account, scope, vault, name, floor, keyring, keys, former, collections };
}

/** The keys that a token carries: of a vault, or of a collection. */
export async function tokenKeys(token: Token): Promise<VaultKeys | CollectionKeys> {
  const {
    account,
    vault,
    name,
    floor,
    keys,
    former,
    collections: [wire, ...others],
  } = token;
  if (wire === undefined) {
    const names = former.map(async ([generation, secret]) => ({ generation, names: await secret.key() }));
    return { ...(await vaultKeys(account, vault, keys, floor)), former: await Promise.all(names) };
  }
  return {
    account,
    vault,
    name,
    wires: [wire, ...others],
    keys: await Promise.all(keys.map(collectionKey)),
    keyring: null,
    floor,
  };
}
