"""What the endpoints of one server share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom import credentials
from strongroom.credentials import TokenIssuer, TokenSigner
from strongroom.model import AccountLimits, RetentionPolicy
from strongroom.server import reloading
from strongroom.server.backup_schedule import newest
from strongroom.server.buffers import BufferBudget
from strongroom.server.limits import AttemptGate, RateLimit
from strongroom.server.live import Hub
from strongroom.server.monitoring.metrics import Metrics
from strongroom.server.monitoring.readiness import Readiness
from strongroom.server.passwords import PasswordPool
from strongroom.server.snapshot_slots import PLACES_EACH, SnapshotSlots

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.descriptors import Decoys
    from strongroom.model import Variant
    from strongroom.server.monitoring.log import Log
    from strongroom.server.monitoring.shared_metrics import MetricsSlot, Samples
    from strongroom.server.settings import Settings
    from strongroom.store import Database


LISTS_AT_ONCE: Final = 32  # that hold a snapshot; on PostgreSQL half of the pool
EXPORTS_AT_ONCE: Final = 8  # on PostgreSQL a fifth of the pool
BODIES_AT_ONCE: Final = 4  # of the largest size fit into the memory for buffers, whatever its setting


class AppContext:
    """The database, the secrets, the clock: everything an endpoint needs that is not in its request."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        clock: Callable[[], int],
        log: Log,
        epoch: str,
        decoys: Decoys,
        metrics_slot: MetricsSlot | None = None,
    ) -> None:
        self.settings = settings
        self.db = db
        self.clock = clock
        self.log = log
        db.warn = self._warn
        self.epoch = epoch
        self.decoys = decoys
        db.commit_metrics.on_lost, db.commit_metrics.on_found = self._lost, self._found
        self._sign()
        self.limits = AccountLimits(
            settings.quota_documents or None, settings.quota_bytes or None, settings.history_versions
        )
        self.retention = RetentionPolicy(settings.history_days, settings.trash_days or None)
        self.live = Hub(db, clock, log, epoch)
        self.certificate_expires: float | None = None  # of the one that is served, in seconds since 1970
        self.stopping = False  # it was told to stop: nobody is to send it more
        self.metrics_slot = metrics_slot  # where this process's figures are told to the others
        self.metrics = Metrics()
        if metrics_slot is not None:
            self.metrics.go_on_from(metrics_slot.before())
        self.buffers = BufferBudget(max(settings.buffer_bytes, BODIES_AT_ONCE * settings.max_body_bytes))
        self.attempts = AttemptGate()
        self.rate_limit = RateLimit(settings.rate_limit)
        pool = settings.db_pool if settings.database_url else None
        lists = LISTS_AT_ONCE if pool is None else max(1, pool // 2)
        self.lists = SnapshotSlots(lists, each=max(1, min(PLACES_EACH, lists // 2)))
        self.exports = SnapshotSlots(EXPORTS_AT_ONCE if pool is None else max(1, pool // 5), each=1)
        self.passwords = PasswordPool(log)
        self.readiness = Readiness(db, self.passwords.works, settings.ready_free_bytes, log)

    @property
    def variant(self) -> Variant:
        """What this server serves."""
        return self.settings.vault_variant

    def _warn(self, sentence: str) -> None:
        """What the database has to tell the operator; it may be the last thing that this process says."""
        self.log.say("error", sentence)
        self.log.flush()

    def samples(self) -> Samples:
        """What this process has counted."""
        lists = self.lists.waiting + self.exports.waiting
        waiting = {"writes": self.db.waiting, "passwords": self.passwords.waiting, "lists": lists}
        return self.metrics.samples(self.db, waiting, self.live.streams, self.buffers)

    async def database_bytes(self) -> tuple[int, int | None]:
        """How many bytes the database takes, and how many are free on its disk, where that is known."""
        return await self.db.size(), self.db.free_bytes

    def last_backup(self) -> int | None:
        """When the newest of the backups that the server makes was begun, in milliseconds."""
        made = newest(Path(self.settings.backup_dir), time.time_ns() // 1_000_000) if self.settings.backup_dir else None
        return made.made_at if made else None

    def renew(self, settings: Settings) -> None:
        """Take the secrets of these settings from now on."""
        self.settings = reloading.renewed(self.settings, settings)
        self._sign()
        self.live.check_tokens()

    def _sign(self) -> None:
        settings = self.settings
        self.token_signer = TokenSigner(settings.jwt_secret, settings.jwt_issuer, settings.jwt_secret_previous)
        self.token_issuer = TokenIssuer(
            self.token_signer, settings.jwt_issuer, settings.jwt_access_expiry, settings.jwt_refresh_expiry
        )

    def _lost(self, reason: str) -> None:
        told = f"{self.db.describe} cannot be reached: {reason}. Requests wait for 5 seconds and get 503 until it can."
        self.log.say("warning", told)

    def _found(self, seconds: float) -> None:
        self.log.say("info", f"{self.db.describe} can be reached again, after {seconds:.0f} seconds.")

    async def hash_password(self, password: str) -> str:
        """Hash on a thread: 35 ms of work must not stop everybody."""
        hashed: str = await self.passwords.run(credentials.hash_password, password)
        return hashed

    async def password_matches(self, password: str, phc: str | None) -> bool:
        """Check on a thread; without a hash to check against, do the same work and say no."""
        matches: bool = await self.passwords.run(credentials.password_matches, password, phc or credentials.DUMMY_HASH)
        return matches and phc is not None

    async def close(self) -> None:
        """Let go of everything."""
        await self.live.close()
        self.passwords.close()
        await self.db.close()
        self.log.close()
