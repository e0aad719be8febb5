// What cannot be found or read among items. No sentence contains a value of a field.
import { NotFound, Refusal } from "../errors.js";

/** A text that is no reference. */
export class InvalidReference extends Refusal {
  declare readonly code: "invalid_reference";
  static override readonly kind: string = "InvalidReference";
  static override readonly sentence: string = "A reference has the form sr://vault/item/field.";
}

/** A text that is neither a secret of one-time codes nor an otpauth URI. */
export class InvalidTotp extends Refusal {
  declare readonly code: "invalid_totp";
  static override readonly kind: string = "InvalidTotp";
  static override readonly sentence: string = "This is neither a secret in base32 nor an otpauth URI.";
}

/** No item has this title or uid. */
export class ItemNotFound extends NotFound {
  declare readonly code: "item_not_found";
  static override readonly kind: string = "ItemNotFound";
  static override readonly sentence: string = "There is no such item.";
}

/** The item has no field of this name, or it is empty. */
export class FieldNotFound extends NotFound {
  declare readonly code: "field_not_found";
  static override readonly kind: string = "FieldNotFound";
  static override readonly sentence: string = "The item has no such field.";
}

/** Several items, or several fields of an item, have this name. `candidates` says how to name each of them. */
export class AmbiguousName extends Refusal {
  declare readonly code: "ambiguous_name";
  static override readonly kind: string = "AmbiguousName";
  static override readonly sentence: string = "Several have this name.";

  readonly candidates: readonly string[];

  constructor(message: string, candidates: readonly string[]) {
    super(message, { candidates: [...candidates] });
    this.candidates = [...candidates];
  }
}

/** A whole file that cannot be read; the message says why. */
export class FileRefused extends Refusal {
  declare readonly code: "file_refused" | "password_needed";
  static override readonly kind: string = "FileRefused";
  static override readonly sentence: string = "The file cannot be read.";
}

/** The file is encrypted with a password that was not given, or with another one. */
export class PasswordNeeded extends FileRefused {
  declare readonly code: "password_needed";
  static override readonly kind: string = "PasswordNeeded";
  static override readonly sentence: string = "The file is encrypted: give its password.";
}
