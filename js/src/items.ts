// What an app imports from "@strongroom/client/items". docs/items.md has the shapes.
import { ITEMS, itemType } from "./items/shapes.js";
import type { Item } from "./items/types.js";
import type { ReplicaCollection, ReplicaVault } from "./replica/vaults.js";
import type { Collection, Vault } from "./vaults.js";

export { type Clash, type Difference, differences, merge, type Merged } from "./items/differences.js";
export {
  AmbiguousName,
  FieldNotFound,
  FileRefused,
  InvalidReference,
  InvalidTotp,
  ItemNotFound,
  PasswordNeeded,
} from "./items/errors.js";
export {
  field,
  type FieldOptions,
  fieldsAt,
  fieldsOf,
  FieldValue,
  fileData,
  mainField,
  typeOf,
} from "./items/fields.js";
export { type FileData, type Found, type Password, Problem } from "./items/formats/importTypes.js";
export type { Plan } from "./items/formats/plan.js";
export {
  guessFormat,
  makePlan,
  READ_FORMATS,
  type ReadFormat,
  readItems,
  WRITE_FORMATS,
  type WriteFormat,
  writeItems,
} from "./items/formats/table.js";
export { generatePassphrase, generatePassword, type Generated } from "./items/generator.js";
export { findItem, isReference, parseReference, Reference, type StoredItem } from "./items/references.js";
export { fromStored, ITEMS, itemType, toStored, TYPES } from "./items/shapes.js";
export { strength, type Strength } from "./items/strength.js";
export { parseTotp, secondsLeft, totpCode, totpUri } from "./items/totp.js";
export type * from "./items/types.js";

/**
 * The items of a vault: logins, notes, keys and so on, in its collection `items`.
 *
 * The vault is one of a client or of a replica. What another program has stored there is read whole, also where it does
 * not fit: see `Other`. For a token that opens the collection alone, give `itemType` to `client.collection`.
 */
export function items(vault: Vault): Collection<Item>;
export function items(vault: ReplicaVault): ReplicaCollection<Item>;
export function items(vault: Vault | ReplicaVault): Collection<Item> | ReplicaCollection<Item>;
export function items(vault: Vault | ReplicaVault): Collection<Item> | ReplicaCollection<Item> {
  return (vault as Vault).collection(ITEMS, itemType); // both have this method
}
