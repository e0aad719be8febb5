// The vectors of items, and files of other programs, in a browser: a page calls these.
import { FileRefused, Problem, type ReadFormat, readItems, toStored } from "../src/items.js";

export { itemDifferences } from "./itemVectors.js";

/** What a file has, or why it is refused. It comes in base64, as a file that a person chooses. */
export async function found(format: ReadFormat, data: string, password: string | null): Promise<unknown> {
  const file = new Blob([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))]);
  const all: unknown[] = [];
  try {
    for await (const one of readItems(format, file, { password: password ?? undefined })) {
      all.push(one instanceof Problem ? { problem: one.sentence } : { item: toStored(one) });
    }
    return { found: all };
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error;
    return { refused: error.name, sentence: error.message, found: all };
  }
}
