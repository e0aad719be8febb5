"""How a process learns that something was committed: its own commits at once, those of others through the engine.

A nudge says what to look at, never what happened: who is nudged reads the database. So a nudge may come twice, or for
nothing; one that was lost is made up for by comparing clocks now and then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet


class Nudge(NamedTuple):
    """Something of this account changed: a vault, or (None) who may call for it."""

    user_id: str
    vault_uid: str | None


class Telling:
    """A transaction that remembers whom to nudge once it is committed."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: set[Nudge] = set()

    def tell(self, user_id: str, vault_uid: str | None) -> None:
        """Nudge those who follow this vault, or (None) look again at who may follow anything of this account."""
        self.told.add(Nudge(user_id, vault_uid))


class Nudges:
    """What an engine shares: what this process committed is passed on as it is."""

    def __init__(self) -> None:
        self._on_nudge: Callable[[AbstractSet[Nudge]], None] | None = None
        self._on_doubt: Callable[[], None] | None = None
        self.watching = False

    def listen(self, on_nudge: Callable[[AbstractSet[Nudge]], None], on_doubt: Callable[[], None]) -> None:
        """Whom to call: with nudges, or when anything may have changed elsewhere."""
        self._on_nudge, self._on_doubt = on_nudge, on_doubt

    def committed(self, told: AbstractSet[Nudge]) -> None:
        """This process has committed these. That is done, whatever becomes of the nudge."""
        if not told or self._on_nudge is None:
            return
        try:
            self._on_nudge(told)
        except Exception as error:  # noqa: BLE001 - clocks are compared all the same
            asyncio.get_running_loop().call_exception_handler({"message": "a nudge failed", "exception": error})

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
