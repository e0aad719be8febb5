"""The nouns: frozen structs that every layer shares. Field order is column order (see store/statement.py)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Variant(StrEnum):
    """What a server serves: both kinds of vault, or the letter of one."""

    BOTH = "both"
    DOCUMENT = "document"
    BLOB = "blob"

    @property
    def has_documents(self) -> bool:
        """Whether documents and API keys are served."""
        return self is not Variant.BLOB

    @property
    def has_blobs(self) -> bool:
        """Whether a vault's own data and salt are served."""
        return self is not Variant.DOCUMENT


class Permission(StrEnum):
    """What an API key may be allowed to do."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class User(Struct, frozen=True):
    """An account as its owner sees it."""

    id: str
    email: str


class Account(Struct, frozen=True, rename="camel"):
    """An account as an operator sees it: nothing of what it keeps, only how much."""

    id: str
    email: str
    created_at: int
    disabled_at: int | None
    last_used_at: int | None
    vaults: int
    documents: int
    bytes: int
    sessions: int
    keys: int


class AccountApiKey(Struct, frozen=True, rename="camel"):
    """An API key as an operator sees it."""

    user_id: str
    uid: str
    email: str
    name: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None


class Login(Struct, frozen=True):
    """What a login is checked against."""

    id: str
    email: str
    password_hash: str | None

    def __repr__(self) -> str:
        return f"Login(id={self.id!r})"


class Origin(Struct, frozen=True):
    """Where a request came from, for the owner to see."""

    address: str
    user_agent: str


class Session(Struct, frozen=True, rename="camel"):
    """A session as its owner sees it."""

    id: str
    created_at: int
    last_used_at: int
    address: str | None
    user_agent: str | None


class EventType(StrEnum):
    """What an account's log speaks of."""

    REGISTERED = "registered"
    LOGIN = "login"
    LOGIN_FAILED = "login_failed"
    REFRESH_REUSE = "refresh_reuse"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    KDF_CHANGED = "kdf_changed"
    KEY_CREATED = "key_created"
    KEY_REVOKED = "key_revoked"
    SESSION_ENDED = "session_ended"
    EXPORTED = "exported"
    IMPORTED = "imported"
    DISABLED = "disabled"
    ENABLED = "enabled"


class Event(Struct, frozen=True, rename="camel"):
    """A line of an account's log."""

    id: str
    type: str
    created_at: int
    address: str
    user_agent: str


class ApiKey(Struct, frozen=True, rename="camel"):
    """An API key as it is listed; the secret is not part of it. A scope that is None does not limit."""

    uid: str
    name: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None
    created_at: int
    last_used_at: int | None


class Actor(Struct, frozen=True):
    """Who is asking: an account through a session, or through an API key, or neither on a public route."""

    user_id: str
    session_id: str | None = None
    last_used_at: int = 0
    key: ApiKey | None = None
    until: int | None = None  # when the token or the key ends by itself


class Vault(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A named container. `updated_at` is its clock; `data` and `salt` are its blob, if it carries one.

    `documents` counts the live ones, `bytes` those and the blob; None where the one who asks may not know.
    """

    uid: str
    name: str
    version: int
    updated_at: int
    documents: int | None = None
    bytes: int | None = None
    data: str | None = None
    salt: str | None = None

    def __repr__(self) -> str:
        return f"Vault(uid={self.uid!r}, version={self.version})"


class VaultChange(StrEnum):
    """What may happen to a vault itself."""

    CREATED = "created"
    RENAMED = "renamed"
    BLOB = "blob"  # set or replaced, perhaps with a new name
    DELETED = "deleted"


class Document(Struct, frozen=True, rename="camel"):
    """One encrypted document, as stored and as answered."""

    uid: str
    vault_uid: str
    collection: str
    data: str
    hmac: str | None
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None

    def __repr__(self) -> str:
        return f"Document(uid={self.uid!r}, version={self.version})"


class Change(Struct, frozen=True):
    """One change of an account: of a document (no kind; the name is its collection) or of a vault itself."""

    updated_at: int
    kind: str
    uid: str
    vault_uid: str
    name: str
    version: int
    deleted_at: int | None


class Head(Struct, frozen=True):
    """A document without its ciphertext, and how many bytes that has."""

    uid: str
    collection: str
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None
    purged_at: int | None
    bytes: int


class StoredKeyring(Struct, frozen=True):
    """An account's wrapped keys, their version, and how the password is derived that they are wrapped under."""

    keyring: str
    version: int
    updated_at: int
    kdf: str | None

    def __repr__(self) -> str:
        return f"StoredKeyring(version={self.version})"


class Version(Struct, frozen=True, rename="camel"):
    """A version of a document that was replaced, without its ciphertext."""

    version: int
    updated_at: int
    deleted_at: int | None
    replaced_at: int
    bytes: int


class BlobVersion(Struct, frozen=True, rename="camel"):
    """A blob that was replaced, without its ciphertext; the version is the vault's."""

    version: int
    updated_at: int
    replaced_at: int
    bytes: int


class VaultBlob(Struct, frozen=True, rename="camel"):
    """A vault's blob as it was at a version of the vault."""

    uid: str
    version: int
    updated_at: int
    data: str
    salt: str | None

    def __repr__(self) -> str:
        return f"VaultBlob(uid={self.uid!r}, version={self.version})"


class ExpiredRow(Struct, frozen=True):
    """Something that has been kept for long enough: whose, which (`at`: a version or a moment), and how much it is."""

    user_id: str
    uid: str
    at: int
    bytes: int
    rows: int


RETAINED_ROW_BYTES: Final = 256  # bytes that each row of trash and history counts beside its texts


class Usage(Struct, frozen=True):
    """Live documents, and the bytes of those and of the blobs: what an account uses, or what a write adds to it.

    `kept` is what trash and history take: their bytes, and 256 more for each deleted document and replaced version.
    """

    documents: int
    bytes: int
    kept: int = 0


class AccountLimits(Struct, frozen=True):
    """What a server grants each account, None does not limit; and how many replaced versions it keeps of anything."""

    documents: int | None = None
    bytes: int | None = None
    versions: int = 20


class RetentionPolicy(Struct, frozen=True):
    """For how many days a server keeps replaced versions, and the ciphertext under a tombstone; None: for ever."""

    history_days: int = 90
    trash_days: int | None = 30


class Expected(Struct, frozen=True):
    """Which versions the client will accept as the stored one; None is any. `by_header`: it spoke through If-Match."""

    versions: tuple[int, ...] | None
    by_header: bool = False

    def allows(self, version: int) -> bool:
        """Whether the stored version is one that the client expects."""
        return self.versions is None or version in self.versions

    def precedes(self, version: int) -> bool:
        """Whether the stored version is the one right after an expected one, as it is when an answer was lost."""
        return self.versions is not None and version - 1 in self.versions
