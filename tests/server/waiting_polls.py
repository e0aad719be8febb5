"""Long polls that wait in a server of this process."""

from __future__ import annotations

from typing import Any

from tests.kit.servers.internals import context_of
from tests.kit.waiting import until_async


async def until_waiting(server: Any, count: int) -> None:
    """Wait until so many wait."""
    await until_async(
        lambda: sum(len(account.waiters) for account in context_of(server.app).live._accounts.values()) == count
    )
