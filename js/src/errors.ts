// Errors that a caller can meet, by the code that the server and the Python client use for them.

/** Something that was refused. `code` is a word for programs, the message is for people. */
export class Refusal extends Error {
  static readonly code: string = "error";
  static readonly sentence: string = "The request was refused.";
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(message?: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message ?? new.target.sentence);
    this.name = new.target.name;
    this.code = new.target.code;
    this.details = details;
  }
}

/** What was received is not what a key holder made for this place. */
export class Tampered extends Refusal {
  static override readonly code: string = "tampered";
  static override readonly sentence: string =
    "What the server sent was not made with your keys for this place; it was changed, moved or forged.";
}

/** What was received is older than what this device has seen. */
export class RolledBack extends Refusal {
  static override readonly code: string = "rolled_back";
  static override readonly sentence: string = "The server sent something older than what this device has seen already.";
}

/** The key-derivation parameters are outside what the format allows, or below what this device has seen. */
export class WeakParameters extends Refusal {
  static override readonly code: string = "weak_parameters";
  static override readonly sentence: string =
    "The server asked for key-derivation parameters that are not allowed; the password was not used.";
}

/** There is no key for this here. */
export class Locked extends Refusal {
  static override readonly code: string = "locked";
  static override readonly sentence: string =
    "There is no key for this here; log in, or use a token that carries the key.";
}

/** The account uses something that this client does not know. */
export class Unsupported extends Refusal {
  static override readonly code: string = "unsupported";
  static override readonly sentence: string =
    "This account uses something that this client does not know; update the client.";
}

/** What a person has typed or a program has given is not allowed. `fields` names what, and says why. */
export class Invalid extends Refusal {
  static override readonly code: string = "validation_error";
  readonly fields: Readonly<Record<string, string>>;

  constructor(fields: Readonly<Record<string, string>>) {
    super(Object.entries(fields).map(([name, fault]) => `${name} ${fault}`).join("; "), { fields });
    this.fields = fields;
  }
}
