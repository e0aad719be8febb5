"""Change notifications between processes on one SQLite file: a poll of the file's data version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strongroom.store.change_notifications import ChangeNotifications
from strongroom.store.sqlite.database_file import DAMAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

POLL_SECONDS: Final = 0.02  # between two polls of a file that other processes may write to


class FileNotifications(ChangeNotifications):
    """Notices commits of other processes on one SQLite file, without a broker.

    `PRAGMA data_version` on the connection that writes changes with every commit but its own. It is read between two
    transactions of ours, and at the beginning of each; never while the writer's thread has the connection.
    """

    def __init__(
        self, writer: apsw.Connection, is_busy: Callable[[], bool], damaged: Callable[[apsw.Error], object]
    ) -> None:
        super().__init__()
        self._damaged = damaged
        self._writer = writer
        self._is_busy = is_busy
        self._version: object = None
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, *, wanted: bool) -> None:
        """Start or stop polling, every few milliseconds."""
        super().watch(wanted=wanted)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wanted:
            self._version = None  # the first poll invalidates: anything may have happened before it
            self._poll_again()

    def _poll_again(self) -> None:
        if not self._is_busy():
            self.poll()
        self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll_again)

    def poll(self) -> None:
        """Invalidate if another process has committed since the last poll; only while the connection is not in use."""
        if not self.watching:
            return
        try:
            version = self._writer.pragma("data_version")
        except DAMAGE as error:
            self._damaged(error)
            return
        if version != self._version:
            self._version = version
            self.invalidate()
