"""The events of a stream."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Ending(StrEnum):
    """Why a stream of events ends."""

    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    SESSION_REVOKED = "session_revoked"
    KEY_EXPIRED = "key_expired"
    KEY_REVOKED = "key_revoked"
    ACCOUNT_DELETED = "account_deleted"
    ACCOUNT_DISABLED = "account_disabled"
    VAULT_DELETED = "vault_deleted"
    TOO_FAR_BEHIND = "too_far_behind"
    SERVER_STOPPING = "server_stopping"
    SERVER_FAULT = "server_fault"


class Ready(Struct, frozen=True):
    """The stream has begun; what follows changed after this moment, in a database of this lineage."""

    cursor: int
    epoch: str


class DocumentChanged(Struct, frozen=True, rename="camel"):
    """A document was created, replaced, deleted or revived. What it holds now is in the list."""

    uid: str
    vault_uid: str
    collection: str
    version: int
    updated_at: int
    deleted_at: int | None


class VaultChanged(Struct, frozen=True, rename="camel"):
    """A vault itself changed: it was created, renamed or deleted, or its blob was set."""

    uid: str
    kind: str
    name: str
    version: int
    updated_at: int


class Ended(Struct, frozen=True):
    """The stream ends here."""

    reason: Ending
