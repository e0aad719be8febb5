// The vectors of items: what is read, found, printed and refused. Node.js and browsers run them alike.
import {
  fieldsOf,
  fromStored,
  InvalidReference,
  InvalidTotp,
  parseReference,
  parseTotp,
  Problem,
  readItems,
  Reference,
  secondsLeft,
  toStored,
  totpCode,
  totpUri,
  writeItems,
} from "../src/items.js";
import { isSame } from "../src/items/differences.js";

// biome-ignore lint/suspicious/noExplicitAny: the vectors are JSON, and each operation knows what its own look like
type Given = any;

/** What a case should give, and what it gives. */
type Outcome = readonly [unknown, unknown];

function ofReference(given: Given): Outcome {
  try {
    const found = parseReference(given.text);
    const { vault, item, field = "", section = "", printed } = given;
    return [
      [{ ...new Reference(vault, item, field, section) }, printed, printed],
      [{ ...found }, `${found}`, `${parseReference(`${found}`)}`],
    ];
  } catch (error) {
    if (!(error instanceof InvalidReference)) throw error;
    return ["refused", "refused" in given ? "refused" : error.message];
  }
}

async function ofTotp(given: Given): Promise<Outcome> {
  try {
    const found = parseTotp(given.text);
    const { now, code, issuer = found.issuer, username = found.username } = given;
    const left = secondsLeft(found, now);
    const again = parseTotp(totpUri(found));
    const codes = [totpCode(found, now), totpCode(again, now), totpCode(found, now + left - 1)];
    const isNext = (await totpCode(found, now + left)) !== code;
    return [
      [code, code, code, true, issuer, username],
      [...(await Promise.all(codes)), isNext, found.issuer, found.username],
    ];
  } catch (error) {
    if (!(error instanceof InvalidTotp)) throw error;
    return ["refused", "refused" in given ? "refused" : error.message];
  }
}

async function ofItem(given: Given): Promise<Outcome> {
  const item = fromStored(given.item);
  const written = JSON.parse(
    new TextDecoder().decode(await writeItems("cxf", [["0198c0de-0000-7000-8000-000000000000", item]])),
  ) as Given;
  const { id: _id, extensions: _extensions, ...cxf } = written.accounts[0].items[0];
  const again: unknown[] = [];
  for await (const one of readItems("cxf", new TextEncoder().encode(JSON.stringify({ items: [given.cxf] }))))
    again.push(one instanceof Problem ? one : toStored({ ...one, source: undefined }));
  const fields = fieldsOf(item);
  const found = Object.fromEntries(fields.map(({ path, value }) => [path, value]));
  const secret = fields.filter(({ concealed }) => concealed).map(({ path }) => path);
  const back = item.type === "file" ? given.item : again[0];
  const { id: _own, ...wanted } = given.cxf;
  return [
    [given.item.type, given.item, given.fields, given.secret, wanted, given.item],
    [item.type, toStored(item), found, secret, cxf, back],
  ];
}

/** The cases of a file that do not give what they should. */
export async function itemDifferences(file: string, cases: readonly Given[]): Promise<unknown[]> {
  const of = { "references.json": ofReference, "totp.json": ofTotp, "items.json": ofItem }[file];
  const found: unknown[] = [];
  for (const given of cases) {
    const [wanted, got] = of ? await of(given) : [file, "unknown"];
    if (!isSame(wanted, got)) found.push({ given, wanted, got });
  }
  return found;
}
