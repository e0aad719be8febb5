"""Everything that knows keys. The format is docs/format.md; these modules are its chapters, without any I/O.

    errors       Tampered, RolledBack, WeakParameters, Locked
    primitives   Argon2id, HKDF, AES-256-GCM, HMAC, randomness: the only file that imports a cryptographic library
    encoding     one spelling of lists, numbers, texts and base64url
    padding      Padmé, and the content that is padded
    content      values as bytes: JSON or bytes
    box          how anything is sealed: a fresh key for each, committed to
    derive       Descriptor (what prelogin answers), password_keys(email, password, descriptor) → auth and wrap key
    keys         AccountKey → VaultKey → CollectionKey
    recovery     RecoveryKey, printed and read; seal_auth, open_auth
    keyring      Keyring, open_with_password, open_with_recovery, reopen: wrapped keys and the directory of vaults
    account      the steps of an account, whole: register, change_password, set_recovery, recovery_password
    names        sealed names of vaults and collections
    seal         seal_document, seal_deletion, open_document; seal_blob, open_blob
    tokens       Token: srv_…, an API key with the key of a vault or a collection
    memory       what a device remembers: next_row, next_account

The client itself stands on them:

    steps        what an operation needs from outside, as values; driving, http: who does it
    calls, answers, refusals     every request, how it is answered, how it is refused
    session      tokens, repetitions; device: what was seen; core: what a client's operations share
    accounts, keeping, vaults, documents     the operations
    blocking, awaiting           Client and AsyncClient: what a program sees
    replica/                     a copy on the device, for work without a server

Randomness comes in by the door (`random`, the system's by default). No secret is in any repr.
"""

from strongroom.client.async_client import AsyncChanges, AsyncClient, AsyncCollection, AsyncVault
from strongroom.client.client import Changes, Client, Collection, Vault
from strongroom.client.errors import Locked, RolledBack, Tampered, WeakParameters
from strongroom.client.operations.documents import Document
from strongroom.client.operations.vaults import Blob
from strongroom.client.replica import (
    AsyncReplica,
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
    "Changes",
    "Client",
    "Collection",
    "Conflict",
    "Document",
    "Locked",
    "Progress",
    "Replica",
    "Report",
    "Resolution",
    "Resolver",
    "RolledBack",
    "Tampered",
    "Vault",
    "WeakParameters",
    "keep_both",
    "keep_mine",
    "keep_theirs",
    "merged",
]
