"""The Python client: end-to-end encryption, API operations, replicas. The format is docs/format.md.

    errors                  Tampered, RolledBack, WeakParameters, Locked, TypeMismatch and so on
    format/                 docs/format.md, chapter by chapter, without I/O
    net/                    requests, responses, HTTP, sessions and retries
    operations/             what a client does, as generators of effects
    async_client, client    AsyncClient and Client: the public API
    async_vaults, vaults    the vaults, blobs and collections that they open
    replica/                an offline copy on the device, with sync

Randomness is a parameter (`random`, the system's by default). No secret is in any repr.
"""

from typing import TYPE_CHECKING, Any

from strongroom.client.client import Client
from strongroom.client.errors import (
    CeremonyFailed,
    CredentialsRolledBack,
    HistoryLeftOut,
    Locked,
    ReadOnlyReplica,
    RolledBack,
    Tampered,
    TypeMismatch,
    UndecidedConflicts,
    Unreachable,
    Unsupported,
    WeakParameters,
    WrongServer,
)
from strongroom.client.factors import Passkeys, SecondFactor
from strongroom.client.iterators import Changes, Log, Trash, Writes
from strongroom.client.operations.batches import WriteResult
from strongroom.client.operations.ceremonies import Authenticator
from strongroom.client.operations.documents import Document
from strongroom.client.operations.factors import Code
from strongroom.client.operations.history import Version
from strongroom.client.operations.passkeys import ListedPasskey, NewPasskey
from strongroom.client.operations.rotation import Rotation
from strongroom.client.operations.sessions_and_keys import Permissions
from strongroom.client.operations.usage_and_log import Usage
from strongroom.client.operations.vaults import Blob
from strongroom.client.security_key import SecurityKey
from strongroom.client.vaults import Collection, Items, Vault, VaultBlob
from strongroom.errors import (
    AccountDisabled,
    AccountNotEmpty,
    ApiKeyNotFound,
    BatchConflict,
    DocumentConflict,
    DocumentNotFound,
    EmailAlreadyExists,
    ImportUnfinished,
    InsufficientScope,
    InternalError,
    Invalid,
    InvalidCredentials,
    InvalidInvitation,
    InvalidPasskey,
    InvalidRefreshToken,
    InvalidSecondFactor,
    InvalidTicket,
    Later,
    NotFound,
    PasskeyNotFound,
    PasskeysUnavailable,
    PasskeyTaken,
    PayloadTooLarge,
    QuotaExceeded,
    RateLimited,
    Refusal,
    RequestTimeout,
    SecondFactorNotFound,
    SecondFactorRequired,
    SessionNotFound,
    SignupsClosed,
    StorageFull,
    Taken,
    TooManyApiKeys,
    TooManyPasskeys,
    TooManyVaults,
    UidTaken,
    Unauthorized,
    Unavailable,
    VaultAlreadyExists,
    VaultConflict,
    VaultNotFound,
    VersionNotFound,
)
from strongroom.model import ApiKey, Event, Permission, SecondFactors, User
from strongroom.wire.responses import Enrolment, ListedSession

if TYPE_CHECKING:
    from strongroom.client.async_client import AsyncClient
    from strongroom.client.async_factors import AsyncPasskeys, AsyncSecondFactor
    from strongroom.client.async_iterators import AsyncChanges, AsyncLog, AsyncTrash, AsyncWrites
    from strongroom.client.async_vaults import AsyncCollection, AsyncItems, AsyncVault, AsyncVaultBlob
    from strongroom.client.operations.factors import AsyncCode
    from strongroom.client.replica import (
        AsyncReplica,
        BlobConflict,
        Conflict,
        Progress,
        Reason,
        RefusalKind,
        RefusedChange,
        RenamedVault,
        Replica,
        ReplicaCollection,
        ReplicaItems,
        ReplicaVault,
        Report,
        Resolution,
        Resolver,
        keep_both,
        keep_mine,
        keep_theirs,
        merged,
    )

__all__ = [
    "AccountDisabled",
    "AccountNotEmpty",
    "ApiKey",
    "ApiKeyNotFound",
    "AsyncChanges",
    "AsyncClient",
    "AsyncCode",
    "AsyncCollection",
    "AsyncItems",
    "AsyncLog",
    "AsyncPasskeys",
    "AsyncReplica",
    "AsyncSecondFactor",
    "AsyncTrash",
    "AsyncVault",
    "AsyncVaultBlob",
    "AsyncWrites",
    "Authenticator",
    "BatchConflict",
    "Blob",
    "BlobConflict",
    "CeremonyFailed",
    "Changes",
    "Client",
    "Code",
    "Collection",
    "Conflict",
    "CredentialsRolledBack",
    "Document",
    "DocumentConflict",
    "DocumentNotFound",
    "EmailAlreadyExists",
    "Enrolment",
    "Event",
    "HistoryLeftOut",
    "ImportUnfinished",
    "InsufficientScope",
    "InternalError",
    "Invalid",
    "InvalidCredentials",
    "InvalidInvitation",
    "InvalidPasskey",
    "InvalidRefreshToken",
    "InvalidSecondFactor",
    "InvalidTicket",
    "Items",
    "Later",
    "ListedPasskey",
    "ListedSession",
    "Locked",
    "Log",
    "NewPasskey",
    "NotFound",
    "PasskeyNotFound",
    "PasskeyTaken",
    "Passkeys",
    "PasskeysUnavailable",
    "PayloadTooLarge",
    "Permission",
    "Permissions",
    "Progress",
    "QuotaExceeded",
    "RateLimited",
    "ReadOnlyReplica",
    "Reason",
    "Refusal",
    "RefusalKind",
    "RefusedChange",
    "RenamedVault",
    "Replica",
    "ReplicaCollection",
    "ReplicaItems",
    "ReplicaVault",
    "Report",
    "RequestTimeout",
    "Resolution",
    "Resolver",
    "RolledBack",
    "Rotation",
    "SecondFactor",
    "SecondFactorNotFound",
    "SecondFactorRequired",
    "SecondFactors",
    "SecurityKey",
    "SessionNotFound",
    "SignupsClosed",
    "StorageFull",
    "Taken",
    "Tampered",
    "TooManyApiKeys",
    "TooManyPasskeys",
    "TooManyVaults",
    "Trash",
    "TypeMismatch",
    "UidTaken",
    "Unauthorized",
    "Unavailable",
    "UndecidedConflicts",
    "Unreachable",
    "Unsupported",
    "Usage",
    "User",
    "Vault",
    "VaultAlreadyExists",
    "VaultBlob",
    "VaultConflict",
    "VaultNotFound",
    "Version",
    "VersionNotFound",
    "WeakParameters",
    "WriteResult",
    "Writes",
    "WrongServer",
    "keep_both",
    "keep_mine",
    "keep_theirs",
    "merged",
]


if not TYPE_CHECKING:  # a type checker would take any name for a public one

    def __getattr__(name: str) -> Any:
        """Import replicas and the asynchronous client on first use: most programs need one of them, or none."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from strongroom.client import replica

        if hasattr(replica, name):
            return getattr(replica, name)
        from strongroom.client import async_client, async_iterators, async_vaults

        home = next(module for module in (async_client, async_vaults, async_iterators) if hasattr(module, name))
        return getattr(home, name)

    def __dir__() -> list[str]:
        return __all__
