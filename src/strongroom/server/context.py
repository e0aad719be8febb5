"""The application context: what all requests of one server share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom import credentials, store
from strongroom.actions import exports
from strongroom.credentials import TokenIssuer, TokenSigner
from strongroom.errors import PasskeysUnavailable
from strongroom.model import AccountLimits, RetentionPolicy
from strongroom.one_time_codes import SecretBox
from strongroom.server import reloading
from strongroom.server.backup_schedule import newest
from strongroom.server.buffers import BufferBudget
from strongroom.server.deletion_steps import DeletionSteps
from strongroom.server.limits import AttemptGate, LoginLimit, LongWrites, RateLimit
from strongroom.server.live import Hub
from strongroom.server.monitoring.metrics import Metrics
from strongroom.server.monitoring.readiness import Readiness
from strongroom.server.passwords import PasswordPool
from strongroom.server.snapshot_slots import SLOTS_PER_ACCOUNT, SnapshotSlots
from strongroom.server.turns import Turns
from strongroom.server.web import app_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.descriptors import Decoys
    from strongroom.model import Variant
    from strongroom.server.fair_queue import Place
    from strongroom.server.monitoring.log import Log
    from strongroom.server.monitoring.shared_metrics import MetricsSlot, Samples
    from strongroom.server.settings import Settings
    from strongroom.store import Database
    from strongroom.webauthn import RelyingParty


MAX_LISTS: Final = 32  # concurrent, each with a snapshot; on PostgreSQL half of the pool
MAX_EXPORTS: Final = 8  # concurrent; on PostgreSQL a fifth of the pool
MIN_BODIES: Final = 4  # of the largest size that fit into the buffer budget, whatever BUFFER_BYTES says


def _relying_party(public_url: str) -> RelyingParty | None:
    """The relying party at this address. Its library takes as long to load as half of the server, so only if needed."""
    if not public_url:
        return None
    from strongroom import webauthn

    return webauthn.relying_party(public_url)


class AppContext:
    """The database, settings, clock, limits and metrics that every handler uses."""

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
        db.commit_metrics.on_lost, db.commit_metrics.on_found = self._log_lost, self._log_found
        self._create_tokens()
        self.secrets_renewed = asyncio.Event()
        self.limits = AccountLimits(
            settings.quota_documents or None, settings.quota_bytes or None, settings.history_versions
        )
        self.retention = RetentionPolicy(settings.history_days, settings.trash_days or None)
        self.turns = Turns()
        self.live = Hub(db, clock, log, epoch, self.turns)
        self.deletions = DeletionSteps(db)
        self.certificate_expires: float | None = None  # Unix seconds
        self.stopping = False  # shutting down: load balancers should send nothing more
        self.metrics_slot = metrics_slot  # shares this process's metrics with the other workers
        self.metrics = Metrics()
        if metrics_slot is not None:
            self.metrics.continue_from(metrics_slot.before())
        self.buffers = BufferBudget(max(settings.buffer_bytes, MIN_BODIES * settings.max_body_bytes))
        self.attempts = AttemptGate()
        self.login_limit = LoginLimit(settings.login_limit)
        self.rate_limit = RateLimit(settings.rate_limit)
        pool = settings.db_pool if settings.database_url else None
        self.long_writes = LongWrites(1 if pool is None else max(1, pool // 2))
        lists = MAX_LISTS if pool is None else max(1, pool // 2)
        self.lists = SnapshotSlots(lists, each=max(1, min(SLOTS_PER_ACCOUNT, lists // 2)))
        self.exports = SnapshotSlots(
            MAX_EXPORTS if pool is None else max(1, pool // 5), each=1, too_many=exports.already_running
        )
        self.passwords = PasswordPool(log)
        self._relying_party = _relying_party(settings.public_url)
        self.web_app = app_files.served(settings.web)
        self.readiness = Readiness(db, self.passwords.works, settings.ready_free_bytes, log)

    @property
    def variant(self) -> Variant:
        """The kinds of vaults that this server has."""
        return self.settings.vault_variant

    @property
    def relying_party(self) -> RelyingParty:
        """This server as browsers know it, for passkeys; refused where its address is not fit for them."""
        if self._relying_party is None:
            raise PasskeysUnavailable
        return self._relying_party

    def _warn(self, sentence: str) -> None:
        """Log a warning of the database, and flush: the process may end next."""
        self.log.say("error", sentence)
        self.log.flush()

    def samples(self) -> Samples:
        """The metrics of this process."""
        lists = self.lists.waiting + self.exports.waiting
        waiting = {"writes": self.db.waiting, "passwords": self.passwords.waiting, "lists": lists}
        return self.metrics.samples(self.db, waiting, self.live.streams, self.buffers)

    async def waiting_deletions(self) -> tuple[int, float]:
        """How many deletions wait for their rows to go, and for how many seconds the oldest does."""
        found = await self.db.read(store.deletions.waiting)
        return found.count, 0.0 if found.since is None else max(0, self.clock() - found.since) / 1000

    async def database_bytes(self) -> tuple[int, int | None]:
        """The size of the database and the free space on its disk, if known, in bytes."""
        return await self.db.size(), self.db.free_bytes

    def last_backup(self) -> int | None:
        """The timestamp of the newest scheduled backup; None if there is none."""
        made = newest(Path(self.settings.backup_dir), time.time_ns() // 1_000_000) if self.settings.backup_dir else None
        return made.made_at if made else None

    def renew(self, settings: Settings) -> None:
        """Apply the secrets of reloaded settings."""
        self.settings = reloading.renewed(self.settings, settings)
        self._create_tokens()
        self.secrets_renewed.set()
        self.live.check_tokens()

    def _create_tokens(self) -> None:
        settings = self.settings
        self.secret_box = SecretBox(*settings.sealing_secrets)
        self.token_signer = TokenSigner(settings.jwt_secret, settings.jwt_issuer, settings.jwt_secret_previous)
        self.token_issuer = TokenIssuer(
            self.token_signer, settings.jwt_issuer, settings.jwt_access_expiry, settings.jwt_refresh_expiry
        )

    def _log_lost(self, reason: str) -> None:
        then = "Until it can, requests wait for up to 5 seconds and get 503"
        self.log.say("warning", f"{self.db.describe} cannot be reached: {reason}. {then}.")

    def _log_found(self, seconds: float) -> None:
        self.log.say("info", f"{self.db.describe} can be reached again, after {seconds:.0f} seconds.")

    async def hash_password(self, password: str, place: Place) -> str:
        """Hash a password on a thread: 35 ms of work must not block the event loop."""
        hashed: str = await self.passwords.run(place, credentials.hash_password, password)
        return hashed

    async def password_matches(self, password: str, phc: str | None, place: Place) -> bool:
        """Verify a password on a thread; without a hash, do the same work and return False."""
        stored = phc or credentials.DUMMY_HASH
        matches: bool = await self.passwords.run(place, credentials.password_matches, password, stored)
        return matches and phc is not None

    async def close(self) -> None:
        """Close everything that the context holds."""
        await self.live.close()
        self.passwords.close()
        await self.db.close()
        self.log.close()
