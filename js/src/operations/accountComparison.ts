// Compares what a server has after an import with the file that was imported, row by row.
import { AccountNotEmpty, Invalid, Tampered } from "../errors.js";
import type { Bytes } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import type { AccountFile } from "./accountFile.js";
import {
  AccountLines,
  type DocumentLine,
  type KeyringLine,
  type KeyringVersionLine,
  type Line,
  type RowLine,
} from "./accountLines.js";

export const USED_SINCE =
  "The account of this file was moved to this server before, and has been changed there since. Log in to it; there is " +
  "nothing to import.";
const NOT_KEPT = "The new server does not have what it was given: a row is missing, or is not the one in the file.";
const FILE_CHANGED = "The file was changed while it was imported.";

const isRow = (line: Line): line is RowLine =>
  line.kind === "vault" || line.kind === "document" || line.kind === "version" || line.kind === "blobVersion";

/**
 * Takes the lines of the new server's export, and compares each with the verified file.
 *
 * The server may keep fewer versions, and less trash, than the file has: `finish` says how much is missing. Its keyring
 * is the one that was sealed for it, and the file's is the one that this has replaced.
 */
export class Comparison {
  readonly #export = new AccountLines();
  readonly #again = new AccountLines();
  readonly #file: AccountFile;
  readonly #rows: AsyncIterator<RowLine, void>;
  readonly #ring: Keyring;
  readonly #sealed: string;
  readonly #keyrings: Map<number, string>;
  #missing = 0;

  constructor(file: AccountFile, source: AsyncIterable<Bytes>, ring: Keyring, sealed: string) {
    this.#file = file;
    this.#rows = this.#readRows(source);
    this.#ring = ring;
    this.#sealed = sealed;
    const { keyring } = file.lines;
    this.#keyrings = new Map(
      [...file.replaced, ...(keyring ? [keyring] : [])].map((one) => [one.version, one.keyring]),
    );
  }

  /** Compare the next line of the server's. */
  async take(raw: Bytes): Promise<Line> {
    const line = this.#export.read(raw);
    if (line.kind === "header") {
      if (line.clock < this.#file.header.clock) throw new Tampered(NOT_KEPT);
    } else if (isRow(line)) await this.#compare(line);
    else if (line.kind !== "trailer") this.#compareKeyring(line);
    return line;
  }

  /** The number of versions, and of deleted documents' contents, that the server does not have. */
  async finish(): Promise<number> {
    if (!this.#export.isWhole || !this.#export.keyring) throw new Tampered(NOT_KEPT);
    for (let row = await this.#next(); row; row = await this.#next()) this.#skip(row);
    if (this.#again.digest !== this.#file.lines.digest) throw new Invalid({ file: FILE_CHANGED }, FILE_CHANGED);
    return this.#missing + this.#keyrings.size;
  }

  async *#readRows(source: AsyncIterable<Bytes>): AsyncGenerator<RowLine, void, undefined> {
    for await (const raw of source) {
      const line = this.#again.read(raw);
      if (isRow(line)) yield line;
    }
  }

  async #next(): Promise<RowLine | undefined> {
    return (await this.#rows.next()).value ?? undefined;
  }

  #compareKeyring(line: KeyringLine | KeyringVersionLine): void {
    if (line.kind === "keyringVersion") {
      if (this.#keyrings.get(line.version) !== line.keyring) throw new Tampered(NOT_KEPT);
      this.#keyrings.delete(line.version);
    } else if (line.version > this.#ring.version) throw new AccountNotEmpty(USED_SINCE);
    else if (line.version !== this.#ring.version || line.keyring !== this.#sealed) throw new Tampered(NOT_KEPT);
  }

  /** Find the row in the file. What the file has before it must be history, which a server may leave out. */
  async #compare(theirs: RowLine): Promise<void> {
    const spelled = JSON.stringify(theirs);
    for (let ours = await this.#next(); ours; ours = await this.#next()) {
      if (JSON.stringify(ours) === spelled) return;
      if (isPurged(ours, theirs)) {
        this.#missing += 1;
        return;
      }
      const isNewer =
        ours.kind === "vault" &&
        theirs.kind === "vault" &&
        theirs.uid === ours.uid &&
        theirs.updatedAt > ours.updatedAt;
      if (isNewer) throw new AccountNotEmpty(USED_SINCE);
      this.#skip(ours);
    }
    throw theirs.kind === "vault" ? new AccountNotEmpty(USED_SINCE) : new Tampered(NOT_KEPT);
  }

  #skip({ kind }: RowLine): void {
    if (kind !== "version" && kind !== "blobVersion") throw new Tampered(NOT_KEPT);
    this.#missing += 1;
  }
}

const withoutContent = (line: DocumentLine): string => JSON.stringify({ ...line, data: null, purgedAt: null });

/** Whether a deleted document is the same without the content that its deletion kept. */
const isPurged = (ours: RowLine, theirs: RowLine): boolean =>
  ours.kind === "document" &&
  theirs.kind === "document" &&
  ours.deletedAt !== null &&
  theirs.data === null &&
  withoutContent(ours) === withoutContent(theirs);
