/**
 * Every error of the client: the refusals of the server, and those of the client itself.
 *
 * The names, codes and sentences are those of the Python client. No error holds a secret, in its message, its details,
 * its JSON or anywhere else.
 */

/** More about an error, for programs. */
export type Details = Record<string, unknown>;

/** A request that is refused. `message` is one sentence that a person can act on. */
export class Refusal extends Error {
  /** The name of the class, which no minifier changes. */
  static readonly kind: string = "Refusal";
  static readonly sentence: string = "The request was refused.";
  /** A word for programs. */
  declare readonly code: string;
  /** What a program can use of the error; undefined where there is nothing. */
  details: Details | undefined;

  constructor(message?: string, details?: Details) {
    super(message || new.target.sentence);
    this.details = details;
  }

  /** What may be shown or reported of the error. */
  toJSON(): { name: string; code: string; message: string; details?: Details } {
    const { name, code, message, details } = this;
    return details ? { name, code, message, details } : { name, code, message };
  }
}

/** A class of refusals, whatever its constructor takes. */
export type RefusalClass = (abstract new (
  ...options: never[]
) => Refusal) & { readonly prototype: Refusal; readonly kind: string; readonly sentence: string };

/** The code of a class of refusals: it follows from its name. */
export const codeOf = ({ kind }: { readonly kind: string }): string =>
  kind === "Invalid" ? "validation_error" : kind.replace(/(?!^)[A-Z]/g, "_$&").toLowerCase();

const kindOf = (refusal: Refusal): RefusalClass => refusal.constructor as RefusalClass;
Object.defineProperties(Refusal.prototype, {
  name: {
    get(this: Refusal) {
      return kindOf(this).kind;
    },
  },
  code: {
    get(this: Refusal) {
      return codeOf(kindOf(this));
    },
  },
});

/** The request is not valid; `details.fields` explains each invalid field. */
export class Invalid extends Refusal {
  declare readonly code: "validation_error";
  static override readonly kind: string = "Invalid";
  static override readonly sentence: string = "The request is not valid; see details.fields for what to change.";

  constructor(fields: Record<string, string>, message?: string) {
    const told = Object.entries(fields)
      .filter(([, why]) => why)
      .slice(0, 9);
    super(message || (told.length ? `${told.map((one) => one.join(" ")).join("; ")}.` : undefined), { fields });
  }
}

/** The bearer token or API key is missing or invalid. */
export class Unauthorized extends Refusal {
  declare readonly code: "unauthorized";
  static override readonly kind: string = "Unauthorized";
  static override readonly sentence: string =
    "The server does not accept this token: it was revoked, has expired, or belongs to another server.";
}

/** The email or the password is wrong; the response never says which. */
export class InvalidCredentials extends Refusal {
  declare readonly code: "invalid_credentials";
  static override readonly kind: string = "InvalidCredentials";
  static override readonly sentence: string = "The email or the password is wrong.";
}

/** The refresh token is unknown, expired, revoked or of the wrong kind. */
export class InvalidRefreshToken extends Refusal {
  declare readonly code: "invalid_refresh_token";
  static override readonly kind: string = "InvalidRefreshToken";
  static override readonly sentence: string =
    "This session has ended: it expired, was ended from another device, or the password was changed; log in again.";
}

/** The password is right, and the account has a second factor. `details.methods` names those that it has. */
export class SecondFactorRequired extends Refusal {
  declare readonly code: "second_factor_required";
  static override readonly kind: string = "SecondFactorRequired";
  static override readonly sentence: string =
    "This account has a second factor: give a one-time code or a recovery code as `code`, or use a passkey.";
}

/** The second factor is wrong, or was used already. */
export class InvalidSecondFactor extends Refusal {
  declare readonly code: "invalid_second_factor";
  static override readonly kind: string = "InvalidSecondFactor";
  static override readonly sentence: string =
    "The second factor is wrong or was used already; a one-time code counts once, so wait for the next one.";
}

/** The ticket of a login is unknown, expired or used, or the password has changed since. */
export class InvalidTicket extends Refusal {
  declare readonly code: "invalid_ticket";
  static override readonly kind: string = "InvalidTicket";
  static override readonly sentence: string = "This login has expired or was finished already; log in again.";
}

/** The passkey is unknown or its response is not valid for this challenge; the response never says which. */
export class InvalidPasskey extends Refusal {
  declare readonly code: "invalid_passkey";
  static override readonly kind: string = "InvalidPasskey";
  static override readonly sentence: string =
    "This passkey was not accepted; begin again, and use one that is registered for this account.";
}

/** The API key may not do this. */
export class InsufficientScope extends Refusal {
  declare readonly code: "insufficient_scope";
  static override readonly kind: string = "InsufficientScope";
  static override readonly sentence: string = "This API key is not allowed to do that.";
}

/** An operator has disabled the account; its data is not lost. */
export class AccountDisabled extends Refusal {
  declare readonly code: "account_disabled";
  static override readonly kind: string = "AccountDisabled";
  static override readonly sentence: string =
    "This account is disabled; nothing of it is lost. Ask the operator of this server.";
}

/** This server takes no registrations without an invitation. */
export class SignupsClosed extends Refusal {
  declare readonly code: "signups_closed";
  static override readonly kind: string = "SignupsClosed";
  static override readonly sentence: string =
    "This server takes registrations by invitation only; ask its operator for one.";
}

/** The invitation is mistyped, used, expired, revoked, or for another email; the response never says which. */
export class InvalidInvitation extends Refusal {
  declare readonly code: "invalid_invitation";
  static override readonly kind: string = "InvalidInvitation";
  static override readonly sentence: string =
    "This invitation cannot be used: it is mistyped, used, expired or revoked, or it is for another email. If you have registered with it already, log in; otherwise ask the operator of this server for a new one.";
}

/** There is nothing of that kind. */
export class NotFound extends Refusal {
  declare readonly code: `${string}not_found`;
  static override readonly kind: string = "NotFound";
  static override readonly sentence: string = "There is nothing at this address; see /docs for the routes.";
}

/** No vault of this owner has that uid or name. */
export class VaultNotFound extends NotFound {
  declare readonly code: "vault_not_found";
  static override readonly kind: string = "VaultNotFound";
  static override readonly sentence: string = "You have no such vault.";
}

/** No document in this vault has that uid. */
export class DocumentNotFound extends NotFound {
  declare readonly code: "document_not_found";
  static override readonly kind: string = "DocumentNotFound";
  static override readonly sentence: string = "There is no such document in this vault.";
}

/** This version is neither the current one nor in the history. */
export class VersionNotFound extends NotFound {
  declare readonly code: "version_not_found";
  static override readonly kind: string = "VersionNotFound";
  static override readonly sentence: string = "This version is not in the history; list the versions to see which are.";
}

/** No active API key of this owner has that uid. */
export class ApiKeyNotFound extends NotFound {
  declare readonly code: "api_key_not_found";
  static override readonly kind: string = "ApiKeyNotFound";
  static override readonly sentence: string = "You have no such API key.";
}

/** No open session of this owner has that id. */
export class SessionNotFound extends NotFound {
  declare readonly code: "session_not_found";
  static override readonly kind: string = "SessionNotFound";
  static override readonly sentence: string = "You have no such session.";
}

/** No passkey of this owner has that uid. */
export class PasskeyNotFound extends NotFound {
  declare readonly code: "passkey_not_found";
  static override readonly kind: string = "PasskeyNotFound";
  static override readonly sentence: string = "You have no such passkey.";
}

/** This account has no keyring. */
export class KeyringNotFound extends NotFound {
  declare readonly code: "keyring_not_found";
  static override readonly kind: string = "KeyringNotFound";
  static override readonly sentence: string = "Your account has no keyring yet; put the first one with version 0.";
}

/** This account has no one-time codes, or no enrolment of them has begun within the last hour. */
export class SecondFactorNotFound extends NotFound {
  declare readonly code: "second_factor_not_found";
  static override readonly kind: string = "SecondFactorNotFound";
  static override readonly sentence: string =
    "Your account has no such second factor, or its enrolment has expired; begin the enrolment again.";
}

/** No import into this account is unfinished. */
export class ImportNotFound extends NotFound {
  declare readonly code: "import_not_found";
  static override readonly kind: string = "ImportNotFound";
  static override readonly sentence: string = "No import into your account is unfinished.";
}

/** The route exists, but not with this method. */
export class MethodNotAllowed extends Refusal {
  declare readonly code: "method_not_allowed";
  static override readonly kind: string = "MethodNotAllowed";
  static override readonly sentence: string = "This address does not take that method; see the Allow header.";
}

/** The name or id is in use already. */
export class Taken extends Refusal {
  declare readonly code: `${string}already_exists` | `${string}_taken` | "account_not_empty";
  static override readonly kind: string = "Taken";
}

/** An account with this email exists. */
export class EmailAlreadyExists extends Taken {
  declare readonly code: "email_already_exists";
  static override readonly kind: string = "EmailAlreadyExists";
  static override readonly sentence: string = "An account with this email exists already; log in instead.";
}

/** This owner has a vault of that name. */
export class VaultAlreadyExists extends Taken {
  declare readonly code: "vault_already_exists";
  static override readonly kind: string = "VaultAlreadyExists";
  static override readonly sentence: string = "You already have a vault with this name.";
}

/** This owner uses that uid already; for a document in scope, with its version and time. */
export class UidTaken extends Taken {
  declare readonly code: "uid_taken";
  static override readonly kind: string = "UidTaken";
  static override readonly sentence: string = "You already use this uid for something else; choose another.";

  readonly version: number | undefined;
  readonly updatedAt: number | undefined;

  constructor(version?: number, updatedAt?: number) {
    super();
    this.version = version;
    this.updatedAt = updatedAt;
  }
}

/** This passkey is registered already, for this account or another. */
export class PasskeyTaken extends Taken {
  declare readonly code: "passkey_taken";
  static override readonly kind: string = "PasskeyTaken";
  static override readonly sentence: string = "This passkey is registered already.";
}

/** An import needs an account without vaults, and this one has some. */
export class AccountNotEmpty extends Taken {
  declare readonly code: "account_not_empty";
  static override readonly kind: string = "AccountNotEmpty";
  static override readonly sentence: string =
    "Your account has vaults already; an import needs an account without any.";
}

/** The account has as many passkeys as it may. */
export class TooManyPasskeys extends Refusal {
  declare readonly code: "too_many_passkeys";
  static override readonly kind: string = "TooManyPasskeys";
  static override readonly sentence: string =
    "Your account has as many passkeys as it may; delete one that you no longer use.";
}

/** The account has as many vaults as it may. */
export class TooManyVaults extends Refusal {
  declare readonly code: "too_many_vaults";
  static override readonly kind: string = "TooManyVaults";
  static override readonly sentence: string =
    "Your account has as many vaults as it may; delete one that you no longer use.";
}

/** The account has as many API keys as it may. */
export class TooManyApiKeys extends Refusal {
  declare readonly code: "too_many_api_keys";
  static override readonly kind: string = "TooManyApiKeys";
  static override readonly sentence: string =
    "Your account has as many API keys as it may; revoke one that you no longer use.";
}

/** The server has no address that browsers make passkeys for. */
export class PasskeysUnavailable extends Refusal {
  declare readonly code: "passkeys_unavailable";
  static override readonly kind: string = "PasskeysUnavailable";
  static override readonly sentence: string =
    "This server cannot use passkeys: its operator must set PUBLIC_URL to the address that people open, with https and a name, not an IP address.";
}

/** An import into this account is unfinished; no other write runs until it is finished or abandoned. */
export class ImportUnfinished extends Refusal {
  declare readonly code: "import_unfinished";
  static override readonly kind: string = "ImportUnfinished";
  static override readonly sentence: string =
    "An import into your account is unfinished; send the same file again to finish it, or give it up with DELETE /auth/import.";
}

/** Operations of a batch failed, so none was applied; `details.operations` reports each failure. */
export class BatchConflict extends Refusal {
  declare readonly code: "batch_conflict";
  static override readonly kind: string = "BatchConflict";
  static override readonly sentence: string =
    "Operations of the batch cannot be done as they are, so nothing was written; see details.operations.";
}

/** The version the client saw is not the stored one; `details` has the stored one. */
export class Conflict extends Refusal {
  declare readonly code: "document_conflict" | "vault_conflict" | "keyring_conflict";
  static override readonly kind: string = "Conflict";

  constructor(version: number, updatedAt: number, message?: string) {
    super(message, { version, updatedAt });
  }
}

/** The document has changed since the client read it. */
export class DocumentConflict extends Conflict {
  declare readonly code: "document_conflict";
  static override readonly kind: string = "DocumentConflict";
  static override readonly sentence: string =
    "The document has changed since you read it; fetch it, merge, and try again.";
}

/** The vault has changed since the client read it. */
export class VaultConflict extends Conflict {
  declare readonly code: "vault_conflict";
  static override readonly kind: string = "VaultConflict";
  static override readonly sentence: string =
    "The vault has changed since you read it; fetch it, merge, and try again.";
}

/** The keyring has changed since the client read it. */
export class KeyringConflict extends Conflict {
  declare readonly code: "keyring_conflict";
  static override readonly kind: string = "KeyringConflict";
  static override readonly sentence: string =
    "The keyring has changed since you read it; fetch it, apply your change to it, and try again.";
}

/** The request took too long to arrive. */
export class RequestTimeout extends Refusal {
  declare readonly code: "request_timeout";
  static override readonly kind: string = "RequestTimeout";
  static override readonly sentence: string = "The request took too long to arrive; send it again.";
}

/** The request is larger than the server takes; `details` has its `size` and the `limit`, where that is known. */
export class PayloadTooLarge extends Refusal {
  declare readonly code: "payload_too_large";
  static override readonly kind: string = "PayloadTooLarge";
  static override readonly sentence: string = "The request body is too large.";
}

/** The body is not declared as JSON. */
export class UnsupportedMediaType extends Refusal {
  declare readonly code: "unsupported_media_type";
  static override readonly kind: string = "UnsupportedMediaType";
  static override readonly sentence: string = "Send JSON in UTF-8, with 'Content-Type: application/json'.";
}

/** A refusal with the seconds after which to retry. */
export class Later extends Refusal {
  declare readonly code: "rate_limited" | "unavailable" | "unreachable";
  static override readonly kind: string = "Later";
  /** Seconds after which to try again. */
  retryAfter = 1;
}

/** The rate limit is exceeded. */
export class RateLimited extends Later {
  declare readonly code: "rate_limited";
  static override readonly kind: string = "RateLimited";
  static override readonly sentence: string = "Too many failed attempts; wait and try again.";
}

/** The database cannot be reached at the moment. */
export class Unavailable extends Later {
  declare readonly code: "unavailable" | "unreachable";
  static override readonly kind: string = "Unavailable";
  static override readonly sentence: string = "The service cannot reach its database at the moment; try again shortly.";
}

/** There is no response. `reason` is a word for programs, like `refused` or `timeout`. */
export class Unreachable extends Unavailable {
  declare readonly code: "unreachable";
  static override readonly kind: string = "Unreachable";
  static override readonly sentence: string = "The server cannot be reached, or did not answer.";

  /** A word for programs. */
  readonly reason: string;

  constructor(message?: string, reason = "no_response", details?: Details) {
    super(message, { reason, ...details });
    this.reason = reason;
  }
}

/** The disk is full: writes are refused, reads still work. */
export class StorageFull extends Refusal {
  declare readonly code: "storage_full";
  static override readonly kind: string = "StorageFull";
  static override readonly sentence: string = "The server's storage is full; nothing was written. Reading still works.";
}

/** The write would exceed the account's quota; reads and deletions still work. */
export class QuotaExceeded extends Refusal {
  declare readonly code: "quota_exceeded";
  static override readonly kind: string = "QuotaExceeded";
  static override readonly sentence: string =
    "Your account has no room for this; nothing was written. Delete something, or ask the operator for more.";
}

/** An unexpected error of the server. */
export class InternalError extends Refusal {
  declare readonly code: "internal_error";
  static override readonly kind: string = "InternalError";
  static override readonly sentence: string =
    "The server has a fault of its own; the request id names it in the server's log.";
}

// The client's own. One class stands for every way in which a check can fail: which one it was would only help an attacker.

/** What was received is not what a key holder made for this place. */
export class Tampered extends Refusal {
  declare readonly code: "tampered";
  static override readonly kind: string = "Tampered";
  static override readonly sentence: string =
    "What the server sent was not made with your keys for this place; it was changed, moved or forged.";
}

/** What was received is older than what this device has seen. */
export class RolledBack extends Refusal {
  declare readonly code: "rolled_back" | "credentials_rolled_back" | "undecided_conflicts";
  static override readonly kind: string = "RolledBack";
  static override readonly sentence: string = "The server sent something older than what this device has seen already.";
}

/** The server knows a password or a recovery key that was replaced: it was restored from an older backup. */
export class CredentialsRolledBack extends RolledBack {
  declare readonly code: "credentials_rolled_back";
  static override readonly kind: string = "CredentialsRolledBack";
  static override readonly sentence: string =
    "The server was restored from a backup that is older than your last change of password or recovery key. Nothing was written. Open your replica with `unlock`, and call `changePassword` with the password of that time and a new one; then make a new recovery key.";
}

/** The server was restored again while conflicts of before wait: what they keep must not be compared away. */
export class UndecidedConflicts extends RolledBack {
  declare readonly code: "undecided_conflicts";
  static override readonly kind: string = "UndecidedConflicts";
  static override readonly sentence: string =
    "The server was restored again, and conflicts since the restore before wait in this vault. Decide them first; until then the vault is not synced, and nothing of it is lost.";
}

/** The key-derivation parameters are outside what the format allows, or below what this device has seen. */
export class WeakParameters extends Refusal {
  declare readonly code: "weak_parameters";
  static override readonly kind: string = "WeakParameters";
  static override readonly sentence: string =
    "The server asked for key-derivation parameters that are not allowed; the password was not used.";
}

/** There is no key for this here. */
export class Locked extends Refusal {
  declare readonly code: "locked";
  static override readonly kind: string = "Locked";
  static override readonly sentence: string =
    "There is no key for this here; log in, or use a token that carries the key.";
}

/** The account uses something that this client does not know. */
export class Unsupported extends Refusal {
  declare readonly code: "unsupported";
  static override readonly kind: string = "Unsupported";
  static override readonly sentence: string =
    "This account uses something that this client does not know; update the client.";
}

/** A passkey was not made or used: the authenticator failed, is not there, or nobody touched it in time. */
export class CeremonyFailed extends Refusal {
  declare readonly code: "ceremony_failed";
  static override readonly kind: string = "CeremonyFailed";
  static override readonly sentence: string = "The authenticator did not do what was asked; try again.";
}

/** This client only reads the replica: another one writes to it, or it was opened for reading only. */
export class ReadOnlyReplica extends Refusal {
  declare readonly code: "read_only_replica";
  static override readonly kind: string = "ReadOnlyReplica";
  static override readonly sentence: string =
    "Another client has this replica open and writes to it; here it can only be read. Write there, or close it there and write here again.";
}

/** A document is genuine, and its value does not fit the type of its collection. `raw` of the document has the value. */
export class TypeMismatch extends Refusal {
  declare readonly code: "type_mismatch";
  static override readonly kind: string = "TypeMismatch";
  static override readonly sentence: string = "The value of a document does not fit the type that was asked for.";

  /** Of the document; of a blob, the vault's. */
  readonly uid: string;
  /** What does not fit, without a part of the value. */
  readonly problem: string;

  constructor(uid: string, problem: string, kind = "document") {
    super(
      `The ${kind} ${uid} is genuine, but its value does not fit the type that was asked for: ${problem}. Its attribute \`raw\` has the value as it is stored.`,
      { uid, problem },
    );
    this.uid = uid;
    this.problem = problem;
  }
}

/** What answers at this address is not strongroom: another program, a proxy's page, a wrong path of the URL. */
export class WrongServer extends Refusal {
  declare readonly code: "wrong_server";
  static override readonly kind: string = "WrongServer";
  static override readonly sentence: string = "What answers at this address is not a strongroom server; check the URL.";
}

/** An account was moved, and the new server has left out history or trash; `details` says how much. */
export class HistoryLeftOut extends Refusal {
  declare readonly code: "history_left_out";
  static override readonly kind: string = "HistoryLeftOut";
  static override readonly sentence: string =
    "Everything of the account was moved and verified but a part of its history or trash: the new server keeps less of it. Call importAccount again with allowLessHistory to accept that. Or let the server keep more, delete the account there, and import it again.";
}
