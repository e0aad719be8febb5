// Types of values: how a program's own type is checked when a value is written, and made when it is read.
import { Invalid } from "../errors.js";
import { toContent, toValue } from "../format/content.js";
import type { Content } from "../format/padding.js";

/** A value that can be stored: JSON or bytes. */
export type Value =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [name: string]: Value };

/** What any validator of Standard Schema has (standardschema.dev), as far as it is used here. */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

/** What a validator of Standard Schema answers. */
export type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly object[] };

/**
 * The type of the values of a collection: a function that reads them, or a validator of Standard Schema.
 *
 * With `write`, what it makes of a value is stored: JSON or bytes, which `parse` reads again.
 */
export type ValueType<T> = { parse(value: unknown): T | Promise<T>; write?(value: T): unknown } | StandardSchema<T>;

/** What does not fit. It says nothing of the value, nor of what a validator says, which may quote it. */
const REFUSED = "a check of the type refuses it";

/** A value that was read: as the type that was asked for, or why it does not fit. */
export type Typed<T> = { readonly value: T } | { readonly problem: string };

/** What is stored, as a type; a problem where it does not fit. */
export async function decode<T>(type: ValueType<T>, raw: unknown): Promise<Typed<T>> {
  try {
    if (!("~standard" in type)) return { value: await type.parse(raw) };
    const found = await type["~standard"].validate(raw);
    return found.issues ? { problem: REFUSED } : { value: found.value };
  } catch {
    return { problem: REFUSED };
  }
}

/** What a program gives, as it is stored; refused if it would not be read again. */
export async function encode<T>(type: ValueType<T> | undefined, value: unknown): Promise<Content> {
  const content = toContent(type && "write" in type && type.write ? type.write(value as T) : value);
  if (type && "problem" in (await decode(type, toValue(content)))) {
    throw new Invalid(
      { value: `does not fit the type: ${REFUSED}` },
      `The value does not fit the type: ${REFUSED}. Nothing was written.`,
    );
  }
  return content;
}
