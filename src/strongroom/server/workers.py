"""Several processes that serve one address and one database. They share the socket and nothing else."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strongroom.server import listening, open_server
from strongroom.server.board import Board, Place
from strongroom.server.observe import to_stderr
from strongroom.server.reloading import renewed
from strongroom.server.run import Runner
from strongroom.server.settings import BadSetting
from strongroom.store.disk import DAMAGED_EXIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from strongroom.server.listening import Doors
    from strongroom.server.observe import Log
    from strongroom.server.settings import Settings

_TOO_SOON: Final = 5.0  # a process that ends sooner than this after its start is not simply started again


class _Workers:
    """The processes, and the one that watches them."""

    def __init__(
        self,
        settings: Settings,
        doors: Doors,
        data: str,
        reread: Callable[[], Settings] | None = None,
        *,
        migrate: bool = True,
    ) -> None:
        self._settings = settings
        self._migrate = migrate
        self._data = data
        self._doors = doors
        self._reread = reread
        self._board = Board(settings.workers)
        self._started: dict[int, tuple[float, int]] = {}  # when, and its place on the board
        self._stopping = False
        self._own_log = self._log()  # each of the others has one too
        self._ready_read, self._ready_write = os.pipe()
        self._life_read, self._life_write = os.pipe()  # closes when the watching process is gone, however it went

    def _log(self) -> Log:
        return to_stderr(self._settings.log_level, self._settings.log_format)

    def run(self) -> int:
        """Start them, keep their number, end when told to; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)
        for place in range(self._settings.workers):
            if not self._stopping:
                self._fork(place)
        ready = 0
        while ready < self._settings.workers and not self._stopping and not self._has_ended():
            if select.select([self._ready_read], [], [], 0.1)[0]:
                ready += len(os.read(self._ready_read, self._settings.workers))
        if ready == self._settings.workers:
            listening.announce(self._settings, self._data, self._doors)
        return self._watch()

    @staticmethod
    def _has_ended() -> bool:
        """Whether one of them has ended already; it is left for the watch to find."""
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _watch(self) -> int:
        code = 0
        while self._started:
            pid, status = os.wait()
            began, place = self._started.pop(pid)
            if self._stopping:
                continue
            self._own_log.say("error", f"worker {pid} ended by itself with code {os.waitstatus_to_exitcode(status)}")
            damaged = os.waitstatus_to_exitcode(status) == DAMAGED_EXIT
            if damaged or time.monotonic() - began < _TOO_SOON:
                code = DAMAGED_EXIT if damaged else 1
                self._stop()
            else:
                self._fork(place)
        return code

    def _stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        self._stopping = True
        self._doors.release()
        for pid in self._started:
            os.kill(pid, signal.SIGTERM)

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        if self._reread is not None:
            with suppress(BadSetting):  # the workers say so
                self._settings = renewed(self._settings, self._reread())  # for those that will be started later
        for pid in self._started:
            os.kill(pid, signal.SIGHUP)

    def _fork(self, place: int) -> None:
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic(), place
            return
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read anew
        code = 1
        try:
            self._serve(place)
            code = 0
        finally:
            os._exit(code)

    def _tell_ready(self) -> None:
        os.write(self._ready_write, b".")

    def _serve(self, place: int) -> None:
        """In the new process: its own group, so that Ctrl-C reaches it once, through the one that watches."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.close(self._life_write)
        server = open_server(
            self._settings,
            log=self._log(),
            place=Place(self._board, place),
            examine=False,
            migrate=self._migrate,
            wait=self._settings.db_wait_seconds,
        )
        runner = Runner(server, self._doors, self._tell_ready, self._reread)

        def follow() -> None:
            """End with the one that watches, however that ended."""
            os.read(self._life_read, 1)
            runner.stop()

        threading.Thread(target=follow, daemon=True).start()
        runner.run()


def run(settings: Settings, reread: Callable[[], Settings] | None = None, *, migrate: bool = True) -> int:
    """Open the database once, so that it is up to date and any fault is a sentence; then serve with many."""
    log = to_stderr(settings.log_level, settings.log_format)
    server = open_server(settings, log=log, migrate=migrate, wait=settings.db_wait_seconds)
    data = server.data_lies_in
    asyncio.run(server.release())
    listening.tls(settings)  # a certificate that cannot be read is a sentence too
    doors = listening.open_doors(settings)
    try:
        return _Workers(settings, doors, data, reread, migrate=migrate).run()
    finally:
        doors.close()
