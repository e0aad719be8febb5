"""What the endpoints of one server share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from strongroom import credentials
from strongroom.credentials import Mint, Tokens
from strongroom.errors import Unavailable
from strongroom.model import Keeping, Terms
from strongroom.server.buffers import BufferBudget
from strongroom.server.live import Hub
from strongroom.server.meters import Meters
from strongroom.server.ready import Readiness
from strongroom.server.schedule import newest
from strongroom.server.snapshots import PLACES_EACH, Places
from strongroom.server.throttle import Gate, Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.descriptors import Decoys
    from strongroom.model import Variant
    from strongroom.server.board import Place, Samples
    from strongroom.server.observe import Log
    from strongroom.server.settings import Settings
    from strongroom.store import Database


LISTS_AT_ONCE: Final = 32  # that hold a snapshot; on PostgreSQL half of the pool
EXPORTS_AT_ONCE: Final = 8  # on PostgreSQL a fifth of the pool
BODIES_AT_ONCE: Final = 4  # of the largest size fit into the memory for buffers, whatever its setting
MOST_TO_HASH: Final = 128  # passwords that wait; more would only make everybody wait longer


class Room:
    """The database, the secrets, the clock: everything an endpoint needs that is not in its request."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        clock: Callable[[], int],
        log: Log,
        epoch: str,
        decoys: Decoys,
        place: Place | None = None,
    ) -> None:
        self.settings = settings
        self.db = db
        self.clock = clock
        self.log = log
        self.epoch = epoch
        self.decoys = decoys
        self._sign()
        self.terms = Terms(settings.quota_documents or None, settings.quota_bytes or None, settings.history_versions)
        self.keeping = Keeping(settings.history_days, settings.trash_days or None)
        self.live = Hub(db, clock, log, epoch)
        self.place = place  # where this process's figures are told to the others
        self.meters = Meters()
        if place is not None:
            self.meters.go_on_from(place.before())
        self.buffers = BufferBudget(max(settings.buffer_bytes, BODIES_AT_ONCE * settings.max_body_bytes))
        self.gate = Gate()
        self.meter = Meter(settings.rate_limit)
        pool = settings.db_pool if settings.database_url else None
        lists = LISTS_AT_ONCE if pool is None else max(1, pool // 2)
        self.lists = Places(lists, each=max(1, min(PLACES_EACH, lists // 2)))
        self.exports = Places(EXPORTS_AT_ONCE if pool is None else max(1, pool // 5), each=1)
        self.readiness = Readiness(db, settings.ready_free_bytes, log)
        self._to_hash = 0
        self._hashing = credentials.hashing_pool()

    @property
    def variant(self) -> Variant:
        """What this server serves."""
        return self.settings.vault_variant

    def samples(self) -> Samples:
        """What this process has counted."""
        lists = self.lists.waiting + self.exports.waiting
        waiting = {"writes": self.db.waiting, "passwords": self._to_hash, "lists": lists}
        return self.meters.samples(self.db, waiting, self.live.streams, self.buffers)

    def last_backup(self) -> int | None:
        """When the newest of the backups that the server makes was begun, in milliseconds."""
        made = newest(Path(self.settings.backup_dir), time.time_ns() // 1_000_000) if self.settings.backup_dir else None
        return made.made_at if made else None

    def renew(self, settings: Settings) -> None:
        """Take the secrets of these settings from now on."""
        self.settings = structs.replace(
            self.settings,
            jwt_secret=settings.jwt_secret,
            jwt_secret_previous=settings.jwt_secret_previous,
            metrics_token=settings.metrics_token,
        )
        self._sign()

    def _sign(self) -> None:
        settings = self.settings
        self.tokens = Tokens(settings.jwt_secret, settings.jwt_issuer, settings.jwt_secret_previous)
        self.mint = Mint(self.tokens, settings.jwt_issuer, settings.jwt_access_expiry, settings.jwt_refresh_expiry)

    async def hash_password(self, password: str) -> str:
        """Hash on a thread: 35 ms of work must not stop everybody."""
        hashed: str = await self._hashed(credentials.hash_password, password)
        return hashed

    async def password_matches(self, password: str, phc: str | None) -> bool:
        """Check on a thread; without a hash to check against, do the same work and say no."""
        matches: bool = await self._hashed(credentials.password_matches, password, phc or credentials.NOBODY)
        return matches and phc is not None

    async def _hashed(self, work: Callable[..., Any], *args: str) -> Any:
        if self._to_hash >= MOST_TO_HASH:
            raise Unavailable(2, "Too many people are logging in at the moment; try again shortly.")
        self._to_hash += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._hashing, work, *args)
        finally:
            self._to_hash -= 1

    async def close(self) -> None:
        """Let go of everything."""
        await self.live.close()
        self._hashing.shutdown(wait=False, cancel_futures=True)
        await self.db.close()
        self.log.close()
