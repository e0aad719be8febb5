"""A write in an account: the timestamps that it draws from the account's clock, and what it adds to what is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from strongroom import rules, store
from strongroom.errors import ImportUnfinished, QuotaExceeded, VaultNotFound
from strongroom.model import Usage
from strongroom.store import RollbackWith

if TYPE_CHECKING:
    from strongroom.model import AccountLimits, Actor, Head
    from strongroom.store import Tx
    from strongroom.store.queries.ledgers import Ledger

R = TypeVar("R")


class AccountWrite:
    """One transaction's changes. Begun, it holds the account's lock: until commit, nobody else writes there."""

    __slots__ = (
        "_before",
        "_bytes",
        "_documents",
        "_drawn",
        "_kept",
        "_last",
        "_next",
        "_presumed",
        "actor",
        "limits",
        "seen",
        "tx",
    )

    def __init__(
        self, tx: Tx, actor: Actor, limits: AccountLimits, ledger: Ledger, timestamps: int, presumed: tuple[int, int]
    ) -> None:
        self.tx = tx
        self.actor = actor
        self.limits = limits
        self.seen: dict[str, Head | None] = {}  # documents of the vault, as they were before this write
        self._drawn = ledger
        self._next = ledger.clock - timestamps + 1
        self._presumed = presumed
        self._last = self._documents = self._bytes = self._kept = 0
        self._before: int | None = None  # what trash and history took before this write, once it was asked

    @property
    def changed(self) -> bool:
        """Whether anything was changed so far."""
        return self._last > 0

    def next_timestamp(self) -> int:
        """The next of the timestamps that were drawn, for a change that may come about."""
        self._next += 1
        return self._next - 1

    def note(self, timestamp: int, documents: int = 0, size: int = 0, kept: int = 0) -> None:
        """A change came about at this timestamp, and added so much: to what is live, and to trash and history."""
        self._last = timestamp
        self._documents += documents
        self._bytes += size
        self._kept += kept

    def free(self, size: int) -> None:
        """So much of trash and history was thrown away."""
        self._kept -= size

    async def over(self, more: int = 0) -> int:
        """How much more trash and history would take than they may, because of what this write adds to them."""
        most = rules.most_kept(self.limits.bytes)
        if most is None or self._kept + more <= 0:
            return 0
        if self._before is None:
            self._before = await store.kept.of_account(self.tx, self.actor.user_id)
        return max(0, self._before + self._kept + more - most)

    async def end(self, result: R, vault_uid: str | None = None) -> R:
        """Book what was added, to the account and to the vault in which it was; where nothing was changed, undo."""
        if not self.changed:
            raise RollbackWith(result)
        owner, documents, size = self.actor.user_id, self._documents, self._bytes
        more = documents - self._presumed[0], size - self._presumed[1]
        if more != (0, 0):
            await store.ledgers.correct(self.tx, owner, *more)
        used = Usage(self._drawn.documents + more[0], self._drawn.bytes + more[1])
        require_room(self.actor, self.limits, used, Usage(documents, size))
        if vault_uid is not None and not await store.vaults.add_usage(
            self.tx, owner, vault_uid, self._last, documents, size, self._kept
        ):
            raise VaultNotFound
        return result


def require_room(actor: Actor, limits: AccountLimits, used: Usage, added: Usage) -> None:
    """Refuse what is beyond a limit, if it is what is added that goes further beyond it."""
    over = limits.documents is not None and added.documents > 0 and used.documents > limits.documents
    if over or (limits.bytes is not None and added.bytes > 0 and used.bytes > limits.bytes):
        raise QuotaExceeded(
            details=None
            if rules.is_narrow(actor)
            else {
                "limits": {"documents": limits.documents, "bytes": limits.bytes},
                "usage": {"documents": used.documents - added.documents, "bytes": used.bytes - added.bytes},
            }
        )


async def begin(
    tx: Tx, actor: Actor, limits: AccountLimits, *, timestamps: int = 1, documents: int = 0, size: int = 0
) -> AccountWrite:
    """Draw timestamps, and presume what will be added: where that comes true, nothing needs to be corrected."""
    ledger = await store.ledgers.advance(tx, actor.user_id, timestamps, documents, size)
    if ledger is None:
        raise ImportUnfinished
    return AccountWrite(tx, actor, limits, ledger, timestamps, (documents, size))
