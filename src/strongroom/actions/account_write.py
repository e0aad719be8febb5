"""A write in an account: the timestamps that it takes from the account's clock, and the usage that it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from strongroom import rules, store
from strongroom.actions import keyrings
from strongroom.errors import ImportUnfinished, QuotaExceeded, Unauthorized, VaultNotFound
from strongroom.model import CountedUsage
from strongroom.store import RollbackWith

if TYPE_CHECKING:
    from strongroom.model import AccountLimits, Actor, Head
    from strongroom.store import Tx
    from strongroom.store.queries.ledgers import Ledger

R = TypeVar("R")

_ROWS: Final = (
    "Your account has had as many documents as it may, deleted ones included; nothing was written. Delete a vault, or "
    "ask the operator for more."
)


class AccountWrite:
    """The changes of one transaction. It holds the account's lock: until commit, no other write runs in the account."""

    __slots__ = (
        "_bytes",
        "_documents",
        "_last",
        "_ledger",
        "_next",
        "_reserved",
        "_retained",
        "_retained_before",
        "_row_bytes",
        "actor",
        "limits",
        "originals",
        "tx",
    )

    def __init__(
        self, tx: Tx, actor: Actor, limits: AccountLimits, ledger: Ledger, timestamps: int, reserved: CountedUsage
    ) -> None:
        self.tx = tx
        self.actor = actor
        self.limits = limits
        self.originals: dict[str, Head | None] = {}  # documents of the vault, as they were before this write
        self._ledger = ledger
        self._next = ledger.clock - timestamps + 1
        self._reserved = reserved
        self._last = self._documents = self._bytes = self._retained = self._row_bytes = 0
        self._retained_before: int | None = None  # bytes of trash and history before this write, once queried

    @property
    def changed(self) -> bool:
        """Whether a change was recorded."""
        return self._last > 0

    def next_timestamp(self) -> int:
        """The next of this write's timestamps, for a change that may still be refused."""
        self._next += 1
        return self._next - 1

    def record(self, timestamp: int, documents: int = 0, size: int = 0, retained: int = 0, row_bytes: int = 0) -> None:
        """Record a change and what it adds: live documents, their bytes, and bytes of trash and history and of rows."""
        self._last = timestamp
        self._documents += documents
        self._bytes += size
        self._retained += retained
        self._row_bytes += row_bytes

    def subtract_retained(self, size: int) -> None:
        """Record that so many bytes of trash and history were purged."""
        self._retained -= size

    async def retained_excess(self, more: int = 0) -> int:
        """By how many bytes this write, and `more`, bring trash and history over their limit."""
        limit = rules.retention_limit(self.limits.bytes)
        if limit is None or self._retained + more <= 0:
            return 0
        if self._retained_before is None:
            self._retained_before = await store.retained.of_account(self.tx, self.actor.user_id)
        return max(0, self._retained_before + self._retained + more - limit)

    async def finish(self, result: R, vault_uid: str | None = None) -> R:
        """Add the usage to the account, and to the vault that was changed; roll back if nothing was changed."""
        if not self.changed:
            raise RollbackWith(result)
        owner, documents, size, rows = self.actor.user_id, self._documents, self._bytes, self._row_bytes
        reserved, ledger = self._reserved, self._ledger
        more = documents - reserved.documents, size - reserved.bytes, rows - reserved.row_bytes
        if more != (0, 0, 0):
            await store.ledgers.correct(self.tx, owner, *more)
        if vault_uid is not None and not await store.vaults.add_usage(
            self.tx, owner, vault_uid, self._last, documents, size, self._retained, rows
        ):
            raise VaultNotFound
        used = CountedUsage(ledger.documents + more[0], ledger.bytes + more[1], row_bytes=ledger.row_bytes + more[2])
        require_quota(self.actor, self.limits, used, CountedUsage(documents, size, row_bytes=rows))
        return result


def require_quota(actor: Actor, limits: AccountLimits, used: CountedUsage, added: CountedUsage) -> None:
    """Refuse what brings an account over its quota; a write that adds nothing is allowed even beyond it."""
    most_rows = rules.row_limit(limits.bytes)
    rows = most_rows is not None and added.row_bytes > 0 and used.row_bytes > most_rows
    over = limits.documents is not None and added.documents > 0 and used.documents > limits.documents
    if rows or over or (limits.bytes is not None and added.bytes > 0 and used.bytes > limits.bytes):
        raise QuotaExceeded(
            _ROWS if rows else None,
            details=None
            if rules.is_restricted(actor)
            else {
                "limits": {"documents": limits.documents, "bytes": limits.bytes},
                "usage": {"documents": used.documents - added.documents, "bytes": used.bytes - added.bytes},
            },
        )


async def begin(
    tx: Tx,
    actor: Actor,
    limits: AccountLimits,
    *,
    timestamps: int = 1,
    documents: int = 0,
    size: int = 0,
    row_bytes: int = 0,
) -> AccountWrite:
    """Lock the account, advance its clock and reserve usage, in one statement.

    A write that adds exactly what was reserved needs no second statement for its usage.
    """
    ledger = await store.ledgers.advance(tx, actor.user_id, timestamps, documents, size, row_bytes)
    if ledger is None:
        raise Unauthorized if await store.accounts.is_deleted(tx, actor.user_id) else ImportUnfinished
    if actor.keyring_version is not None:
        await keyrings.require_newest(tx, actor, actor.keyring_version)
    return AccountWrite(tx, actor, limits, ledger, timestamps, CountedUsage(documents, size, row_bytes=row_bytes))
