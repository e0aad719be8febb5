"""Response bodies."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from strongroom.model import (
    ApiKey,
    BlobVersion,
    Document,
    Event,
    KeyringVersion,
    Passkey,
    Permission,
    ReplacedVersion,
    Usage,
    User,
    Version,
)
from strongroom.wire import webauthn


class Tokens(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A new pair of tokens, and the key share that is kept with the session, if there is one."""

    access_token: str
    refresh_token: str
    key_share: str | None = None

    def __repr__(self) -> str:
        return "Tokens(...)"


class KeptKeyShare(Struct, frozen=True, rename="camel"):
    """The session that a key share is kept with, and until when unless a refresh asks for it."""

    session_id: str
    expires_at: int


class SignedIn(Struct, frozen=True, rename="camel"):
    """An opened session. `token` is the access token again, as published clients of this API expect it."""

    access_token: str
    refresh_token: str
    user: User
    token: str

    def __repr__(self) -> str:
        return f"SignedIn(user={self.user!r})"


class Enrolment(Struct, frozen=True):
    """The secret of one-time codes that are being enrolled, in base32 and as a URI for a QR code. It is shown once."""

    secret: str
    uri: str

    def __repr__(self) -> str:
        return "Enrolment(...)"


class RecoveryCodes(Struct, frozen=True, rename="camel"):
    """New recovery codes, each good once. They are shown once."""

    recovery_codes: list[str]

    def __repr__(self) -> str:
        return "RecoveryCodes(...)"


class Derivation(Struct, frozen=True):
    """How the password of an email is to be derived."""

    kdf: dict[str, str | int | bool]


class Keyring(Struct, frozen=True, rename="camel"):
    """The account's wrapped keys, and how the password is derived that they are wrapped under."""

    keyring: str
    version: int
    updated_at: int
    kdf: dict[str, str | int | bool] | None

    def __repr__(self) -> str:
        return f"Keyring(version={self.version})"


class KeyAbout(Struct, frozen=True, rename="camel"):
    """What an API key may learn of itself."""

    uid: str
    name: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None


class Limits(Struct, frozen=True):
    """What an account may use; null does not limit."""

    documents: int | None
    bytes: int | None


class Me(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The current user, the API key if one was presented, what the account uses and what it may."""

    user: User
    api_key: KeyAbout | None = None
    usage: Usage | None = None
    limits: Limits | None = None


class Health(Struct, frozen=True, rename="camel"):
    """The process is alive. `epoch` names the lineage of its database: another one means that it was restored.

    `version` is the program's release, `schema` the number of the newest step of the schema that it knows,
    `maxBodyBytes` the largest request body that it accepts.
    """

    status: str
    timestamp: int
    epoch: str
    version: str
    schema: int
    max_body_bytes: int | None = None


class ReadyReport(Struct, frozen=True):
    """Whether the server can do its work: each thing that it looked at is `ok` or `failed`."""

    status: str
    checks: dict[str, str]


class Done(Struct, frozen=True):
    """It is done."""

    success: bool = True


class Deleted(Struct, frozen=True, rename="camel"):
    """A document's tombstone."""

    success: bool
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
        return f"Deleted(uid={self.uid!r}, version={self.version})"


class Vault(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A vault as it is answered: what is stored, and the epoch of the database that stores it."""

    uid: str
    name: str
    version: int
    updated_at: int
    documents: int | None = None
    bytes: int | None = None
    epoch: str
    data: str | None = None
    salt: str | None = None

    def __repr__(self) -> str:
        return f"Vault(uid={self.uid!r}, version={self.version})"


class Vaults(Struct, frozen=True):
    """The vaults of the current user."""

    vaults: list[Vault]


class Documents(Struct, frozen=True, rename="camel"):
    """Documents in the order of `updatedAt`. `next` is the `since` of the next request."""

    documents: list[Document]
    has_more: bool
    next: int


class Synced(Struct, frozen=True, rename="camel"):
    """A list of documents; `syncedAt` is `next` again, as published clients of this API expect it."""

    documents: list[Document]
    has_more: bool
    next: int
    synced_at: int


class Results(Struct, frozen=True):
    """What became of each operation of a batch, in their order; of a deletion, the tombstone without ciphertext."""

    results: list[Document]


class Versions(Struct, frozen=True):
    """The versions of a document that were replaced and are kept, newest first."""

    versions: list[Version]


class History(Struct, frozen=True, rename="camel"):
    """Replaced versions of a vault's documents in the order of `updatedAt`; `next` is the next `since`."""

    versions: list[ReplacedVersion]
    has_more: bool
    next: int


class Collections(Struct, frozen=True, rename="camel"):
    """Collections of a vault; `after` of the next request is the last one."""

    collections: list[str]
    has_more: bool


class Purged(Struct, frozen=True, rename="camel"):
    """How many deleted documents were purged; `hasMore`: there may be more, send the request again."""

    purged: int
    has_more: bool


class KeyringVersions(Struct, frozen=True):
    """The keyrings that were replaced and are retained, newest first."""

    versions: list[KeyringVersion]


class BlobVersions(Struct, frozen=True):
    """The blobs of a vault that were replaced and are kept, newest first."""

    versions: list[BlobVersion]


class NewApiKey(Struct, frozen=True, rename="camel"):
    """A new API key. `key` is shown in this answer and never again."""

    uid: str
    name: str
    key: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None
    created_at: int

    def __repr__(self) -> str:
        return f"NewApiKey(uid={self.uid!r})"


class ApiKeys(Struct, frozen=True):
    """The active API keys of the current user."""

    keys: list[ApiKey]


class PasskeyCreation(Struct, frozen=True, rename="camel"):
    """The options with which a client makes a passkey."""

    public_key: webauthn.CreationOptions


class PasskeyRequest(Struct, frozen=True, rename="camel"):
    """The options with which a client asks an authenticator for an assertion."""

    public_key: webauthn.RequestOptions


class Passkeys(Struct, frozen=True):
    """The passkeys of the current user, oldest first."""

    passkeys: list[Passkey]


class AddedPasskey(Struct, frozen=True, rename="camel"):
    """A new passkey; if it is the first second factor, with recovery codes, which are shown here only."""

    passkey: Passkey
    recovery_codes: list[str] | None

    def __repr__(self) -> str:
        return f"AddedPasskey(uid={self.passkey.uid!r})"


class ListedSession(Struct, frozen=True, rename="camel"):
    """A session; `current` is the one that asks."""

    id: str
    created_at: int
    last_used_at: int
    address: str | None
    user_agent: str | None
    current: bool
    device_name: str | None = None


class Sessions(Struct, frozen=True):
    """The open sessions of the current user, the one used last first."""

    sessions: list[ListedSession]


class Events(Struct, frozen=True, rename="camel"):
    """Lines of the account's log, newest first. `before` of the next request is the last one's id."""

    events: list[Event]
    has_more: bool


class Imported(Struct, frozen=True, rename="camel"):
    """What an import brought, in all its attempts together; `leftOut` are versions of which no more are kept here."""

    keyrings: int
    keyring_versions: int
    vaults: int
    documents: int
    versions: int
    blob_versions: int
    left_out: int


class Fault(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why a request was refused."""

    code: str
    message: str
    request_id: str
    details: dict[str, Any] | None = None


class Failure(Struct, frozen=True):
    """The body of every answer from status 400 up."""

    error: Fault
