// The types of an import: the file, its password, and the items or problems that it has.
import type { Item } from "../types.js";

/** Something in a file that was not taken over, in one sentence without values. */
export class Problem {
  readonly sentence: string;

  constructor(sentence: string) {
    this.sentence = sentence;
  }
}

/** What a file has: an item, or what was not taken over. */
export type Found = Item | Problem;

/** What is read: a file that a person has chosen, or bytes. */
export type FileData = Blob | Uint8Array;

/** Gives the password of an encrypted file. */
export type Password = () => string | Promise<string>;
