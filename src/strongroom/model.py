"""The data model: frozen structs that every layer shares. Field order is column order (see store/statement.py)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct


class Variant(StrEnum):
    """Which kinds of vault a server serves: both, or only one."""

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
    """An account as an operator sees it: its usage, and none of its data."""

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
    """An account's id, email and password hash, for a login."""

    id: str
    email: str
    password_hash: str | None

    def __repr__(self) -> str:
        return f"Login(id={self.id!r})"


class OneTimeCode(Struct, frozen=True):
    """The sealed secret of an account's one-time codes, and the last step that counted."""

    key_id: str
    sealed: str
    last_step: int
    created_at: int

    def __repr__(self) -> str:
        return f"OneTimeCode(key_id={self.key_id!r})"


class Ticket(Struct, frozen=True):
    """A ticket that was taken: whose login it finishes, and what it is bound to."""

    user_id: str
    password: str
    device_name: str | None

    def __repr__(self) -> str:
        return f"Ticket(user_id={self.user_id!r})"


class CodeProof(Struct, frozen=True):
    """A one-time code that was right: its step, and which enrolment it belongs to."""

    step: int
    created_at: int


class RecoveryCodeProof(Struct, frozen=True):
    """A recovery code that was right, by its hash."""

    code_hash: str


class PasskeyProof(Struct, frozen=True):
    """An assertion of a passkey that was right, and the sign counter in it."""

    uid: str
    sign_count: int


FactorProof: TypeAlias = CodeProof | RecoveryCodeProof | PasskeyProof


class Proof(Struct, frozen=True):
    """A password that was right, by the hash that it matched, and the second factor if the account has one.

    `actions.second_factors.use` turns it into the hash, and uses the second factor up.
    """

    password_hash: str
    factor: FactorProof | None

    def __repr__(self) -> str:
        return "Proof(...)"


class SecondFactors(Struct, frozen=True, rename="camel"):
    """The second factors of an account: one-time codes since when, how many passkeys, how many recovery codes."""

    totp_since: int | None
    passkeys: int
    recovery_codes: int


class Origin(Struct, frozen=True):
    """The address and user agent of a request, for the account's owner to see."""

    address: str
    user_agent: str


class Session(Struct, frozen=True, rename="camel"):
    """A session as its owner sees it."""

    id: str
    created_at: int
    last_used_at: int
    address: str | None
    user_agent: str | None
    device_name: str | None


class Renewal(Struct, frozen=True):
    """A refresh that was granted, and the key share that is kept with its session."""

    key_share: str | None

    def __repr__(self) -> str:
        return "Renewal(...)"


class EventType(StrEnum):
    """The types of events in an account's log."""

    REGISTERED = "registered"
    REGISTERED_BY_INVITATION = "registered_by_invitation"
    LOGIN = "login"
    LOGIN_FAILED = "login_failed"
    REFRESH_REUSE = "refresh_reuse"
    SECOND_FACTOR_ENABLED = "second_factor_enabled"
    SECOND_FACTOR_DISABLED = "second_factor_disabled"
    SECOND_FACTOR_RESET = "second_factor_reset"
    SECOND_FACTOR_FAILED = "second_factor_failed"
    RECOVERY_CODE_USED = "recovery_code_used"
    RECOVERY_CODES_REPLACED = "recovery_codes_replaced"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    KDF_CHANGED = "kdf_changed"
    KEYRING_CHANGED = "keyring_changed"
    PASSKEY_ADDED = "passkey_added"
    PASSKEY_RENAMED = "passkey_renamed"
    PASSKEY_DELETED = "passkey_deleted"
    PASSKEY_COUNTER_FELL = "passkey_counter_fell"
    KEY_CREATED = "key_created"
    KEY_REVOKED = "key_revoked"
    SESSION_ENDED = "session_ended"
    EXPORTED = "exported"
    IMPORTED = "imported"
    DISABLED = "disabled"
    ENABLED = "enabled"


class Event(Struct, frozen=True, rename="camel"):
    """An event in an account's log."""

    id: str
    type: str
    created_at: int
    address: str
    user_agent: str


class ApiKey(Struct, frozen=True, rename="camel"):
    """An API key without its secret. A scope that is None does not limit."""

    uid: str
    name: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None
    created_at: int
    last_used_at: int | None


class Passkey(Struct, frozen=True, rename="camel"):
    """A passkey as its owner sees it. `prf`: the client said that its authenticator can unlock the account's keys."""

    uid: str
    credential_id: str
    name: str
    prf: bool
    created_at: int
    last_used_at: int | None


class StoredPasskey(Struct, frozen=True):
    """A passkey as an assertion is verified with it: its owner, its public key in COSE, its sign counter."""

    user_id: str
    uid: str
    credential_id: str
    public_key: str
    sign_count: int


class Purpose(StrEnum):
    """What a challenge was made for; it is good for nothing else."""

    REGISTRATION = "registration"
    LOGIN = "login"
    PROOF = "proof"  # of an account that is known: a second factor, or the proof before a change of passkeys


class Invitation(Struct, frozen=True, rename="camel"):
    """An invitation to register, without its code."""

    uid: str
    email: str | None  # the only one that may register with it
    note: str | None
    created_at: int
    expires_at: int  # of one that was used: when that was
    taken_emails: int  # attempts with emails that have an account
    used_at: int | None
    used_by: str | None  # an account, by its id
    used_by_email: str | None


class Actor(Struct, frozen=True):
    """The caller: an account through a session or an API key, or no account on a public route."""

    user_id: str
    session_id: str | None = None
    last_used_at: int = 0
    key: ApiKey | None = None
    until: int | None = None  # when the token or the key expires
    keyring_version: int | None = None  # of the keyring that the caller has seen; its writes need the newest


class Vault(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A named container. `updated_at` is its clock; `data` and `salt` are its blob, if it has one.

    `documents` counts live documents, `bytes` their size and the blob's; None where the caller may not see them.
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
    """The types of changes of a vault itself."""

    CREATED = "created"
    RENAMED = "renamed"
    BLOB = "blob"  # set or replaced, perhaps with a new name
    DELETED = "deleted"


class Document(Struct, frozen=True, rename="camel"):
    """One encrypted document, as stored and as returned."""

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
    """The metadata of a document, and the size of its ciphertext."""

    uid: str
    collection: str
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None
    purged_at: int | None
    bytes: int


class KeyringVersion(Struct, frozen=True, rename="camel"):
    """A keyring that was replaced, without the keys in it."""

    version: int
    updated_at: int
    replaced_at: int
    bytes: int


class StoredKeyring(Struct, frozen=True):
    """An account's wrapped keys, their version, and the key derivation descriptor of the password that wraps them."""

    keyring: str
    version: int
    updated_at: int
    kdf: str | None

    def __repr__(self) -> str:
        return f"StoredKeyring(version={self.version})"


class Version(Struct, frozen=True, rename="camel"):
    """The metadata of a replaced version of a document."""

    version: int
    updated_at: int
    deleted_at: int | None
    replaced_at: int
    bytes: int


class ReplacedVersion(Struct, frozen=True, rename="camel"):
    """A version of a document that was replaced: which, and its integrity value."""

    uid: str
    version: int
    hmac: str | None
    updated_at: int


class BlobVersion(Struct, frozen=True, rename="camel"):
    """The metadata of a replaced version of a blob; the version is the vault's."""

    version: int
    updated_at: int
    replaced_at: int
    bytes: int


class VaultBlob(Struct, frozen=True, rename="camel"):
    """A vault's blob at a version of the vault; `name` is what the vault was called then, if that is known."""

    uid: str
    version: int
    updated_at: int
    data: str
    salt: str | None
    name: str | None = None

    def __repr__(self) -> str:
        return f"VaultBlob(uid={self.uid!r}, version={self.version})"


class ExpiredRow(Struct, frozen=True):
    """A row past its retention: its owner, its uid, its version or timestamp (`at`), its size, and since when."""

    user_id: str
    uid: str
    at: int
    bytes: int
    rows: int
    since: int = 0  # the timestamp that the sweep goes by


RETAINED_ROW_BYTES: Final = 256  # what each row of trash and history counts beside its ciphertext
DOCUMENT_ROW_BYTES: Final = 256  # what the row of a document counts beside its ciphertext and its collection


class Usage(Struct, frozen=True):
    """The usage of an account, or what a write adds to it: live documents, and the bytes of documents and blobs.

    `kept` is the usage of trash and history: their bytes, and 256 more for each deleted document and replaced version.
    """

    documents: int
    bytes: int
    kept: int = 0


class CountedUsage(Usage, frozen=True):
    """The same with what the rows of documents, live and deleted, take beside their ciphertext."""

    row_bytes: int = 0


class AccountLimits(Struct, frozen=True):
    """The quota of each account, None does not limit; and how many replaced versions are retained of each object."""

    documents: int | None = None
    bytes: int | None = None
    versions: int = 20


class RetentionPolicy(Struct, frozen=True):
    """For how many days replaced versions and the ciphertext of tombstones are retained; None: for ever."""

    history_days: int = 90
    trash_days: int | None = 30


class Expected(Struct, frozen=True):
    """The versions that the client expects to be stored; None is any. `by_header`: given by If-Match."""

    versions: tuple[int, ...] | None
    by_header: bool = False

    def allows(self, version: int) -> bool:
        """Whether the stored version is one that the client expects."""
        return self.versions is None or version in self.versions

    def precedes(self, version: int, chosen: int | None = None) -> bool:
        """Whether the stored version is the one that this request would make, as in a retry after a lost response.

        That is the version that the client chose; without one, the version that directly follows an expected one.
        """
        if chosen is not None:
            return version == chosen
        return self.versions is not None and version - 1 in self.versions
