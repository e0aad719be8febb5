"""A copy of an account on this device, for work without a server: reads and writes here, and syncs when it can.

file          the SQLite file: rows as received, an outbox, what was seen
local         reading and writing without a server
taking        rows that come in: opened, compared with what was seen
reconciling   when the server was restored from a backup
conflicts     what was changed here and there, and how it is decided
pushing       what goes out
syncing       one sync, whole
watching      when to sync next
blocking, awaiting     Replica and AsyncReplica: what a program sees
"""

from strongroom.client.replica.async_replica import AsyncReplica
from strongroom.client.replica.conflicts import (
    Conflict,
    Resolution,
    Resolver,
    keep_both,
    keep_mine,
    keep_theirs,
    merged,
)
from strongroom.client.replica.replica import Replica
from strongroom.client.replica.sync import Progress, Report
from strongroom.client.replica.vaults import ReplicaCollection, ReplicaVault

__all__ = [
    "AsyncReplica",
    "Conflict",
    "Progress",
    "Replica",
    "ReplicaCollection",
    "ReplicaVault",
    "Report",
    "Resolution",
    "Resolver",
    "keep_both",
    "keep_mine",
    "keep_theirs",
    "merged",
]
