"""A replica: an offline copy of an account on this device, with sync.

store                    the SQLite file: rows as received, the outbox
unlock                   opens a replica: its owner, its keys without a server
follow                   the newer keyring of another process that writes
local, vaults            reads and writes without a server
sync                     one sync: pull, resolve conflicts, push
pull, blobs              the pull of a vault; its blob
report                   what a sync reports
incoming, outgoing       rows that are pulled; changes that are pushed
conflicts                conflicts and their resolution
refused                  changes that the server refuses, and what can be done with them
sizes                    the size of requests, and the server's limit
vault_keys               keys of vaults, also of deleted ones
after_restore            reconciliation with a server that was restored from a backup
watch                    waiting for changes
async_replica, replica   AsyncReplica and Replica: the public API
"""

from strongroom.client.replica.async_replica import AsyncReplica
from strongroom.client.replica.conflicts import (
    BlobConflict,
    Conflict,
    Resolution,
    Resolver,
    keep_both,
    keep_mine,
    keep_theirs,
    merged,
)
from strongroom.client.replica.refused import Reason, RefusalKind, RefusedChange
from strongroom.client.replica.replica import Replica
from strongroom.client.replica.report import Progress, Report
from strongroom.client.replica.store.records import RenamedVault
from strongroom.client.replica.vaults import ReplicaCollection, ReplicaItems, ReplicaVault

__all__ = [
    "AsyncReplica",
    "BlobConflict",
    "Conflict",
    "Progress",
    "Reason",
    "RefusalKind",
    "RefusedChange",
    "RenamedVault",
    "Replica",
    "ReplicaCollection",
    "ReplicaItems",
    "ReplicaVault",
    "Report",
    "Resolution",
    "Resolver",
    "keep_both",
    "keep_mine",
    "keep_theirs",
    "merged",
]
