"""What an operator does beside a running server, through the same actions and rules."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from strongroom import __version__, credentials, identifiers, rules, wire
from strongroom.actions import accounts
from strongroom.model import Origin
from strongroom.store import backup as backups
from strongroom.store import open_database
from strongroom.store import restore as restores

if TYPE_CHECKING:
    from strongroom.archive import Manifest, Reader, Sink
    from strongroom.server.settings import Settings
    from strongroom.store.copy import Watcher
    from strongroom.store.restore import Restored

_OPERATOR = Origin("operator", "command line")


def add_user(settings: Settings, email: str, password: str) -> str:
    """Add an account; its id. Refused as a registration would be."""
    wanted = wire.decode(wire.Register, msgspec.json.encode({"email": email, "password": password}))
    now = time.time_ns() // 1_000_000
    user_id = identifiers.new_uid(now)
    password_hash = credentials.hash_password(wanted.password)

    async def run() -> None:
        db = open_database(settings.database_url or settings.db_path, lambda: now)
        try:
            await db.write(accounts.add, user_id, rules.normal_email(wanted.email), password_hash, _OPERATOR)
        finally:
            await db.close()

    asyncio.run(run())
    return user_id


def backup(settings: Settings, sink: Sink, watcher: Watcher, *, alone: bool = False) -> tuple[Manifest, str]:
    """Write one moment of the service as an archive; what it says of itself, and its checksum."""
    now = time.time_ns() // 1_000_000
    return asyncio.run(backups.backup(settings.where, sink, __version__, now, watcher, alone=alone))


def restore(settings: Settings, archive: Reader, watcher: Watcher) -> Restored:
    """Put what an archive holds in the place of what is there, as a new lineage."""
    now = time.time_ns() // 1_000_000
    return asyncio.run(restores.restore(settings.where, archive, identifiers.new_uid(now), now, watcher))
