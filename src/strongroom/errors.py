"""Every refusal of a request: an exception with a code.

    Refusal
    ├── Invalid                 validation_error         the request is not valid; explains each field
    ├── Unauthorized            unauthorized             no bearer token, or an invalid one
    ├── InvalidCredentials      invalid_credentials      wrong email or password
    ├── InvalidRefreshToken     invalid_refresh_token    unknown, expired, revoked, or of the wrong kind
    ├── SecondFactorRequired    second_factor_required   the password is right; `details` says what else is needed
    ├── InvalidSecondFactor     invalid_second_factor    a wrong or used one-time code or recovery code
    ├── InvalidTicket           invalid_ticket           unknown, expired, used, or the password has changed
    ├── InvalidPasskey          invalid_passkey          unknown, not verified, or for another challenge
    ├── InsufficientScope       insufficient_scope       the API key may not do this
    ├── AccountDisabled         account_disabled         an operator has disabled the account; its data is not lost
    ├── SignupsClosed           signups_closed           this server takes no registrations without an invitation
    ├── InvalidInvitation       invalid_invitation       unknown, used, expired, or for another email
    ├── NotFound                not_found                no such route
    │   ├── VaultNotFound       vault_not_found
    │   ├── DocumentNotFound    document_not_found
    │   ├── VersionNotFound     version_not_found
    │   ├── ApiKeyNotFound      api_key_not_found
    │   ├── SessionNotFound     session_not_found
    │   ├── PasskeyNotFound     passkey_not_found
    │   ├── KeyringNotFound     keyring_not_found
    │   ├── SecondFactorNotFound  second_factor_not_found
    │   └── ImportNotFound      import_not_found
    ├── MethodNotAllowed        method_not_allowed
    ├── Taken
    │   ├── EmailAlreadyExists  email_already_exists
    │   ├── VaultAlreadyExists  vault_already_exists
    │   ├── UidTaken            uid_taken
    │   ├── PasskeyTaken        passkey_taken            this passkey is registered already
    │   └── AccountNotEmpty     account_not_empty        an import needs an account without vaults
    ├── TooManyPasskeys         too_many_passkeys        the account has as many as it may
    ├── TooManyApiKeys          too_many_api_keys        the same of API keys
    ├── TooManyVaults           too_many_vaults          the same of vaults
    ├── PasskeysUnavailable     passkeys_unavailable     the server has no address that browsers make passkeys for
    ├── ImportUnfinished        import_unfinished        no other write until it is finished or abandoned
    ├── BatchConflict           batch_conflict           reports every operation that failed
    ├── Conflict                                         the version is not the stored one
    │   ├── DocumentConflict    document_conflict
    │   ├── VaultConflict       vault_conflict
    │   └── KeyringConflict     keyring_conflict
    ├── RequestTimeout          request_timeout          it took too long to arrive
    ├── PayloadTooLarge         payload_too_large
    ├── UnsupportedMediaType    unsupported_media_type
    ├── RateLimited             rate_limited             carries a retry-after
    ├── StorageFull             storage_full
    ├── QuotaExceeded           quota_exceeded           the account would exceed its quota
    ├── Unavailable             unavailable              carries a retry-after
    └── InternalError           internal_error

The status of each is one table at the HTTP edge; the client reads that table backwards.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Refusal(Exception):  # noqa: N818 - a refused request is an outcome, not a fault
    """A request that is refused. `message` is one sentence that a person can act on."""

    code: ClassVar[str] = "refused"
    sentence: ClassVar[str] = "The request was refused."

    def __init__(self, message: str | None = None, *, details: dict[str, Any] | None = None) -> None:
        self.message = message or self.sentence
        self.details = details
        super().__init__(self.message)


class Invalid(Refusal):
    """The request is not valid; `details.fields` explains each invalid field.

    `details.more` is true if there are more invalid fields than are explained.
    """

    code = "validation_error"
    sentence = "The request is not valid; see details.fields for what to change."

    def __init__(self, fields: dict[str, str], message: str | None = None, *, more: bool = False) -> None:
        super().__init__(message, details={"fields": fields, "more": True} if more else {"fields": fields})

    def __str__(self) -> str:
        """The message; where that only refers to the fields, what is wrong with each."""
        fields = (self.details or {}).get("fields")
        told = [f"{name} {why}" for name, why in fields.items() if why] if isinstance(fields, dict) else []
        return self.message if self.message != self.sentence or not told else f"{'; '.join(told[:9])}."


class Unauthorized(Refusal):
    """The bearer token or API key is missing or invalid."""

    code = "unauthorized"
    sentence = "Send a valid access token or API key as 'Authorization: Bearer ...'."


class InvalidCredentials(Refusal):
    """The email or the password is wrong; the response never says which."""

    code = "invalid_credentials"
    sentence = "The email or the password is wrong."


class InvalidRefreshToken(Refusal):
    """The refresh token is unknown, expired, revoked or of the wrong kind."""

    code = "invalid_refresh_token"
    sentence = "This refresh token is not valid any more; log in again."


class SecondFactorRequired(Refusal):
    """The password is right, and the account has a second factor. `details.methods` names those that it has.

    At a login `details` also has a ticket, with which the login is finished, and when it expires.
    """

    code = "second_factor_required"
    sentence = "This account has a second factor; send a one-time code, a recovery code or a passkey as well."

    def __init__(self, methods: list[str], ticket: str | None = None, expires_at: int | None = None) -> None:
        details: dict[str, Any] = {"methods": methods}
        super().__init__(details=details if ticket is None else {"ticket": ticket, "expiresAt": expires_at, **details})


class InvalidSecondFactor(Refusal):
    """The second factor is wrong, or was used already."""

    code = "invalid_second_factor"
    sentence = "The second factor is wrong or was used already; a one-time code counts once, so wait for the next one."


class InvalidTicket(Refusal):
    """The ticket of a login is unknown, expired or used, or the password has changed since."""

    code = "invalid_ticket"
    sentence = "This login has expired or was finished already; log in again."


class InvalidPasskey(Refusal):
    """The passkey is unknown or its response is not valid for this challenge; the response never says which."""

    code = "invalid_passkey"
    sentence = "This passkey was not accepted; begin again, and use one that is registered for this account."


class InsufficientScope(Refusal):
    """The API key may not do this."""

    code = "insufficient_scope"
    sentence = "This API key is not allowed to do that."


class AccountDisabled(Refusal):
    """An operator has disabled the account; sent only to callers with its password, a session or a key."""

    code = "account_disabled"
    sentence = "This account is disabled; nothing of it is lost. Ask the operator of this server."


class SignupsClosed(Refusal):
    """This server takes no registrations without an invitation."""

    code = "signups_closed"
    sentence = "This server takes registrations by invitation only; ask its operator for one."


class InvalidInvitation(Refusal):
    """The invitation is mistyped, used, expired, revoked, or for another email; the response never says which."""

    code = "invalid_invitation"
    sentence = (
        "This invitation cannot be used: it is mistyped, used, expired or revoked, or it is for another email. If you "
        "have registered with it already, log in; otherwise ask the operator of this server for a new one."
    )


class NotFound(Refusal):
    """There is no such route."""

    code = "not_found"
    sentence = "There is nothing at this address; see /docs for the routes."


class VaultNotFound(NotFound):
    """No vault of this owner has that uid or name."""

    code = "vault_not_found"
    sentence = "You have no such vault."


class DocumentNotFound(NotFound):
    """No document in this vault has that uid."""

    code = "document_not_found"
    sentence = "There is no such document in this vault."


class VersionNotFound(NotFound):
    """This version is neither the current one nor in the history."""

    code = "version_not_found"
    sentence = "This version is not in the history; list the versions to see which are."


class ApiKeyNotFound(NotFound):
    """No active API key of this owner has that uid."""

    code = "api_key_not_found"
    sentence = "You have no such API key."


class SessionNotFound(NotFound):
    """No open session of this owner has that id."""

    code = "session_not_found"
    sentence = "You have no such session."


class PasskeyNotFound(NotFound):
    """No passkey of this owner has that uid."""

    code = "passkey_not_found"
    sentence = "You have no such passkey."


class KeyringNotFound(NotFound):
    """This account has no keyring."""

    code = "keyring_not_found"
    sentence = "Your account has no keyring yet; put the first one with version 0."


class SecondFactorNotFound(NotFound):
    """This account has no one-time codes, or no enrolment of them has begun within the last hour."""

    code = "second_factor_not_found"
    sentence = "Your account has no such second factor, or its enrolment has expired; begin the enrolment again."


class ImportNotFound(NotFound):
    """No import into this account is unfinished."""

    code = "import_not_found"
    sentence = "No import into your account is unfinished."


class MethodNotAllowed(Refusal):
    """The route exists, but not with this method."""

    code = "method_not_allowed"
    sentence = "This address does not take that method; see the Allow header."

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__()
        self.allowed = allowed


class Taken(Refusal):
    """The name or id is in use already."""


class EmailAlreadyExists(Taken):
    """An account with this email exists."""

    code = "email_already_exists"
    sentence = "An account with this email exists already; log in instead."


class VaultAlreadyExists(Taken):
    """This owner has a vault of that name."""

    code = "vault_already_exists"
    sentence = "You already have a vault with this name."


class UidTaken(Taken):
    """This owner uses that uid already; for a document in scope, with its version and time."""

    code = "uid_taken"
    sentence = "You already use this uid for something else; choose another."

    def __init__(self, version: int | None = None, updated_at: int | None = None) -> None:
        super().__init__()
        self.version = version
        self.updated_at = updated_at


class PasskeyTaken(Taken):
    """This passkey is registered already, for this account or another."""

    code = "passkey_taken"
    sentence = "This passkey is registered already."


class TooManyPasskeys(Refusal):
    """The account has as many passkeys as it may."""

    code = "too_many_passkeys"
    sentence = "Your account has as many passkeys as it may; delete one that you no longer use."


class TooManyVaults(Refusal):
    """The account has as many vaults as it may."""

    code = "too_many_vaults"
    sentence = "Your account has as many vaults as it may; delete one that you no longer use."


class TooManyApiKeys(Refusal):
    """The account has as many API keys as it may."""

    code = "too_many_api_keys"
    sentence = "Your account has as many API keys as it may; revoke one that you no longer use."


class PasskeysUnavailable(Refusal):
    """The server has no address that browsers make passkeys for."""

    code = "passkeys_unavailable"
    sentence = (
        "This server cannot use passkeys: its operator must set PUBLIC_URL to the address that people open, with https "
        "and a name, not an IP address."
    )


class BatchConflict(Refusal):
    """Operations of a batch failed, so none was applied; `details.operations` reports each failure."""

    code = "batch_conflict"
    sentence = "Operations of the batch cannot be done as they are, so nothing was written; see details.operations."

    def __init__(self, operations: list[dict[str, Any]]) -> None:
        super().__init__(details={"operations": operations})


class AccountNotEmpty(Taken):
    """An import needs an account without vaults, and this one has some."""

    code = "account_not_empty"
    sentence = "Your account has vaults already; an import needs an account without any."


class ImportUnfinished(Refusal):
    """An import into this account is unfinished; no other write runs until it is finished or abandoned."""

    code = "import_unfinished"
    sentence = (
        "An import into your account is unfinished; send the same file again to finish it, "
        "or give it up with DELETE /auth/import."
    )


class Conflict(Refusal):
    """The version the client saw is not the stored one; `details` carries the stored one.

    `precondition` is true if the client sent If-Match: HTTP has a status of its own for that.
    """

    def __init__(
        self, version: int, updated_at: int, message: str | None = None, *, precondition: bool = False
    ) -> None:
        super().__init__(message, details={"version": version, "updatedAt": updated_at})
        self.precondition = precondition


class DocumentConflict(Conflict):
    """The document has changed since the client read it."""

    code = "document_conflict"
    sentence = "The document has changed since you read it; fetch it, merge, and try again."


class VaultConflict(Conflict):
    """The vault has changed since the client read it."""

    code = "vault_conflict"
    sentence = "The vault has changed since you read it; fetch it, merge, and try again."


class KeyringConflict(Conflict):
    """The keyring has changed since the client read it."""

    code = "keyring_conflict"
    sentence = "The keyring has changed since you read it; fetch it, apply your change to it, and try again."


class RequestTimeout(Refusal):
    """The request took too long to arrive."""

    code = "request_timeout"
    sentence = "The request took too long to arrive; send it again."


class PayloadTooLarge(Refusal):
    """The body is over the limit."""

    code = "payload_too_large"
    sentence = "The request body is too large."

    def __init__(self, limit: int, size: int | None = None, message: str | None = None) -> None:
        super().__init__(
            message or f"The request body is larger than the {limit} bytes this server takes.",
            details={"limit": limit} if size is None else {"size": size, "limit": limit},
        )


class UnsupportedMediaType(Refusal):
    """The body is not declared as JSON."""

    code = "unsupported_media_type"
    sentence = "Send JSON in UTF-8, with 'Content-Type: application/json'."


class Later(Refusal):
    """A refusal with the seconds after which to retry."""

    def __init__(self, retry_after: int = 1, message: str | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(Later):
    """The rate limit is exceeded."""

    code = "rate_limited"
    sentence = "Too many failed attempts; wait and try again."


class Unavailable(Later):
    """The database cannot be reached at the moment."""

    code = "unavailable"
    sentence = "The service cannot reach its database at the moment; try again shortly."


class StorageFull(Refusal):
    """The disk is full: writes are refused, reads still work."""

    code = "storage_full"
    sentence = "The server's storage is full; nothing was written. Reading still works."


class QuotaExceeded(Refusal):
    """The write would exceed the account's quota; reads and deletions still work."""

    code = "quota_exceeded"
    sentence = "Your account has no room for this; nothing was written. Delete something, or ask the operator for more."


class InternalError(Refusal):
    """An unexpected error of the server."""

    code = "internal_error"
    sentence = "The server has a fault of its own; the request id names it in the server's log."


def codes() -> list[str]:
    """The code of every refusal of the server; clients have more of their own."""
    found: set[str] = set()
    kinds: list[type[Refusal]] = [Refusal]
    while kinds:
        below = kinds.pop().__subclasses__()
        kinds += below
        found |= {kind.code for kind in below if "code" in vars(kind) and kind.__module__ == __name__}
    return sorted(found)
