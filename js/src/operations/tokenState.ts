// What a machine with a token has seen, in a file: without it, a program that runs again is a new device each time.
//
// {"format": "strongroom state 1", "places": {"ACCOUNT/VAULT": {
//     "keyring": 7, "floor": 1, "vault": [version, clock, blob, epoch] or null,
//     "rows": {"UID": [version, proof, collection, version that is proven, created, updated, deleted]}
// }}}
//
// It holds no secret, and all of it is the server's knowledge. Clients in all languages read it.
import { Invalid, Locked } from "../errors.js";
import { toUrl } from "../format/encoding.js";
import type { Token } from "../format/tokens.js";
import type { Core } from "./core.js";
import type { KnownDocument, KnownVault } from "./device.js";

const ANY_FORMAT = "strongroom state ";
const FORMAT = `${ANY_FORMAT}1`;

/** Where a program keeps what it has seen with a token: `stateFile` of "@strongroom/client/node" makes one. */
export interface StatePlace {
  /** What errors call it. */
  readonly name: string;
  /** The text that was written last. */
  read(): Promise<string | undefined>;
  /** Replace it in one step. */
  write(text: string): Promise<void>;
  /** Run a task while no other program uses it. */
  alone<T>(task: () => Promise<T>): Promise<T>;
}

type Vault = readonly [version: number, clock: number, data: string | null, epoch: string];
type Row = readonly [
  version: number,
  proof: string,
  collection: string,
  link: number,
  createdAt: number,
  updatedAt: number,
  deleted: boolean,
];

/** What was seen of one vault, and the newest of what its tokens say. */
interface Place {
  readonly keyring: number;
  readonly floor: number;
  readonly vault: Vault | null;
  readonly rows: Readonly<Record<string, Row>>;
}

/** The state of a machine, and the place in it that a token is for. */
export class TokenState {
  readonly #file: StatePlace;
  readonly #uid: string;
  readonly #place: string;
  readonly #least: Place;

  constructor(file: StatePlace, { account, vault, keyring, floor }: Token) {
    this.#file = file;
    this.#uid = vault;
    this.#place = `${toUrl(account)}/${vault}`;
    this.#least = { keyring, floor, vault: null, rows: {} };
  }

  /** Begin with what was seen earlier; the token with the highest floor that was seen. */
  async use(core: Core, token: Token): Promise<Token> {
    const { floor, vault, rows } = (await this.#read()).get(this.#place) ?? this.#least;
    if (floor > (token.keys.at(-1)?.[0] ?? 0)) {
      throw new Locked("This token was made before the keys were rotated; ask for a new one.");
    }
    if (vault) core.device.vaults.set(this.#uid, known(vault));
    core.device.allRows.set(this.#uid, new Map(Object.entries(rows).map(([uid, row]) => [uid, knownRow(row)])));
    return { ...token, floor: Math.max(floor, token.floor) };
  }

  /** Write what was seen, and the newer of what another program has written meanwhile. */
  async save(core: Core): Promise<void> {
    const vault = core.device.vault(this.#uid);
    const rows = [...core.device.rows(this.#uid)].map(([uid, row]) => [uid, rowOf(row)] as const);
    const mine = {
      ...this.#least,
      vault: vault ? ([vault.version, vault.clock, vault.data, vault.epoch ?? ""] as const) : null,
      rows: Object.fromEntries(rows),
    };
    await this.#file.alone(async () => {
      const places = await this.#read();
      const before = places.get(this.#place);
      places.set(this.#place, before ? merged(before, mine) : mine);
      await this.#file.write(JSON.stringify({ format: FORMAT, places: Object.fromEntries(places) }));
    });
  }

  async #read(): Promise<Map<string, Place>> {
    const raw = await this.#file.read();
    if (raw === undefined) return new Map();
    const { format, places } = parsed(raw);
    if (format === FORMAT && isObject(places) && Object.values(places).every(isPlace)) {
      return new Map(Object.entries(places as Record<string, Place>));
    }
    const name = this.#file.name.split("/").at(-1);
    throw new Invalid({
      path:
        format !== FORMAT && typeof format === "string" && format.startsWith(ANY_FORMAT)
          ? `is a state file of another release: ${name}. Update this program`
          : `is not a state file, or was cut off: ${name}. It was not changed`,
    });
  }
}

/** The newest of everything that either has seen. */
function merged(one: Place, other: Place): Place {
  const newer = Object.entries(other.rows).filter(([uid, row]) => row[0] >= (one.rows[uid]?.[0] ?? 0));
  const [a, b] = [one.vault, other.vault];
  const isLater = !a || (b && (b[0] > a[0] || (b[0] === a[0] && b[1] >= a[1])));
  return {
    keyring: Math.max(one.keyring, other.keyring),
    floor: Math.max(one.floor, other.floor),
    vault: isLater ? b : a,
    rows: { ...one.rows, ...Object.fromEntries(newer) },
  };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(raw: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(raw);
    return isObject(found) ? found : {};
  } catch {
    return {};
  }
}

/** Whether a list has values of these types, in this order. */
const isList = (value: unknown, ...types: readonly string[]): boolean =>
  Array.isArray(value) &&
  value.length === types.length &&
  value.every((part, at) => types[at]?.split(" ").includes(part === null ? "null" : typeof part));

const isPlace = (value: unknown): boolean =>
  isObject(value) &&
  isList([value.keyring, value.floor], "number", "number") &&
  (value.vault === null || isList(value.vault, "number", "number", "string null", "string")) &&
  isObject(value.rows) &&
  Object.values(value.rows).every((row) =>
    isList(row, "number", "string", "string", "number", "number", "number", "boolean"),
  );

const known = ([version, clock, data, epoch]: Vault): KnownVault => ({ version, clock, data, epoch, order: 0 });

const knownRow = ([version, proof, collection, link, createdAt, updatedAt, deleted]: Row): KnownDocument => ({
  version,
  proof,
  link: [link, proof],
  collection,
  createdAt,
  updatedAt,
  deleted,
  order: 0,
});

const rowOf = ({ version, proof, collection, link, createdAt, updatedAt, deleted }: KnownDocument): Row => [
  version,
  proof,
  collection,
  link[0],
  createdAt,
  updatedAt,
  deleted,
];
