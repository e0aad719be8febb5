"""How a process learns that something was committed: its own commits at once, those of others through the engine.

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
    """Something of this account changed: a vault, or (None) who may call for it."""

    user_id: str
    vault_uid: str | None


class NotifyingTransaction:
    """A transaction that remembers whom to notify once it is committed."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: set[ChangeHint] = set()

    def notify(self, user_id: str, vault_uid: str | None) -> None:
        """ChangeHint those who follow this vault, or (None) look again at who may follow anything of this account."""
        self.pending.add(ChangeHint(user_id, vault_uid))


class ChangeNotifications:
    """What an engine shares: what this process committed is passed on as it is."""

    def __init__(self) -> None:
        self._on_change: Callable[[AbstractSet[ChangeHint]], None] | None = None
        self._on_doubt: Callable[[], None] | None = None
        self.watching = False

    def listen(self, on_change: Callable[[AbstractSet[ChangeHint]], None], on_doubt: Callable[[], None]) -> None:
        """Whom to call: with notifications, or when anything may have changed elsewhere."""
        self._on_change, self._on_doubt = on_change, on_doubt

    def committed(self, hints: AbstractSet[ChangeHint]) -> None:
        """This process has committed these. That is done, whatever becomes of the hint."""
        if not hints or self._on_change is None:
            return
        try:
            self._on_change(hints)
        except Exception as error:  # noqa: BLE001 - clocks are compared all the same
            asyncio.get_running_loop().call_exception_handler({"message": "a change hint failed", "exception": error})

    def doubt(self) -> None:
        """Somebody else may have committed something."""
        if self.watching and self._on_doubt is not None:
            self._on_doubt()

    def watch(self, *, wanted: bool) -> None:
        """Whether to look out for what others commit: only while somebody here wants to know."""
        self.watching = wanted

    async def close(self) -> None:
        """Look out no more."""
        self.watch(wanted=False)
