"""Change notifications: how a process learns of commits, its own at once, those of other processes by the engine.

A change hint says what to read, not what happened: the receiver reads the database. So a hint may come twice, or for
nothing; one that was lost is made up for by comparing clocks now and then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet


class ChangeHint(NamedTuple):
    """Something of this account changed: a vault, or (None) its sessions, keys or status."""

    user_id: str
    vault_uid: str | None


class NotifyingTransaction:
    """A transaction that collects change hints, which are sent once it is committed."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: set[ChangeHint] = set()

    def notify(self, user_id: str, vault_uid: str | None) -> None:
        """Notify the followers of this vault, or (None) have the access of all followers of the account checked."""
        self.pending.add(ChangeHint(user_id, vault_uid))


class ChangeNotifications:
    """Passes on the commits of this process; each engine adds those of other processes."""

    def __init__(self) -> None:
        self._on_change: Callable[[AbstractSet[ChangeHint]], None] | None = None
        self._on_invalidate: Callable[[], None] | None = None
        self.watching = False

    def listen(self, on_change: Callable[[AbstractSet[ChangeHint]], None], on_invalidate: Callable[[], None]) -> None:
        """Set the callbacks: with change hints, or when anything may have changed elsewhere."""
        self._on_change, self._on_invalidate = on_change, on_invalidate

    def committed(self, hints: AbstractSet[ChangeHint]) -> None:
        """Pass on the hints of a commit of this process. Best effort: a failure is logged, the commit stands."""
        if not hints or self._on_change is None:
            return
        try:
            self._on_change(hints)
        except Exception as error:  # noqa: BLE001 - clocks are compared all the same
            asyncio.get_running_loop().call_exception_handler({"message": "a change hint failed", "exception": error})

    def invalidate(self) -> None:
        """Report that another process may have committed anything."""
        if self.watching and self._on_invalidate is not None:
            self._on_invalidate()

    def watch(self, *, wanted: bool) -> None:
        """Watch for commits of other processes, or stop: only while there are followers here."""
        self.watching = wanted

    async def close(self) -> None:
        """Stop watching."""
        self.watch(wanted=False)
