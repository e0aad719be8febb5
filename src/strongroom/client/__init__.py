"""The Python client: end-to-end encryption, API operations, replicas. The format is docs/format.md.

    errors                  Tampered, RolledBack, CredentialsRolledBack, WeakParameters, Locked, Unsupported
    format/                 docs/format.md, chapter by chapter, without I/O
    net/                    requests, responses, HTTP, sessions and retries
    operations/             what a client does, as generators of effects
    async_client, client    AsyncClient and Client: the public API
    replica/                an offline copy on the device, with sync

Randomness is a parameter (`random`, the system's by default). No secret is in any repr.
"""

from strongroom.client.async_client import AsyncChanges, AsyncClient, AsyncCollection, AsyncVault
from strongroom.client.client import Changes, Client, Collection, Vault
from strongroom.client.errors import CredentialsRolledBack, Locked, RolledBack, Tampered, Unsupported, WeakParameters
from strongroom.client.operations.documents import Document
from strongroom.client.operations.vaults import Blob
from strongroom.client.replica import (
    AsyncReplica,
    BlobConflict,
    Conflict,
    Progress,
    Replica,
    Report,
    Resolution,
    Resolver,
    keep_both,
    keep_mine,
    keep_theirs,
    merged,
)

__all__ = [
    "AsyncChanges",
    "AsyncClient",
    "AsyncCollection",
    "AsyncReplica",
    "AsyncVault",
    "Blob",
    "BlobConflict",
    "Changes",
    "Client",
    "Collection",
    "Conflict",
    "CredentialsRolledBack",
    "Document",
    "Locked",
    "Progress",
    "Replica",
    "Report",
    "Resolution",
    "Resolver",
    "RolledBack",
    "Tampered",
    "Unsupported",
    "Vault",
    "WeakParameters",
    "keep_both",
    "keep_mine",
    "keep_theirs",
    "merged",
]
