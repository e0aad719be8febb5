"""Copies the write-ahead log into the file beside the writer, on a thread and a connection of its own.

A checkpoint in the writer's queue would keep all writes waiting for as long as it takes. This one does not; what was
committed meanwhile is left for a checkpoint of the writer's, which is short then and lets the log begin anew.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Checkpointer:
    """Copies the log into the file; one copy at a time."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self.running = False
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="sqlite-checkpointer")

    def start(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        """Begin to copy; `then` is called on the loop when it is done, or has failed."""
        self.running = True

        def finished(_future: object) -> None:
            self.running = False
            then()

        loop.run_in_executor(self._executor, self._copy).add_done_callback(finished)

    def _copy(self) -> None:
        with suppress(apsw.Error):  # the writer's checkpoint meets the same, and knows what it means
            if self._connection is None:
                self._connection = self._connect()
                self._connection.set_busy_timeout(0)
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        """Close the connection; nothing is being copied any more."""
        self._executor.shutdown()
        if self._connection is not None:
            self._connection.close()
