"""Several processes that serve one address and one database. They share the socket and nothing else."""

from __future__ import annotations

import asyncio
import math
import os
import select
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from strongroom.server import open_server
from strongroom.server.monitoring.log import to_stderr
from strongroom.server.monitoring.shared_metrics import MetricsSlot, SharedMetrics
from strongroom.server.notify import Notifier
from strongroom.server.reloading import renewed
from strongroom.server.settings import BadSetting
from strongroom.server.transport import listeners
from strongroom.server.transport.runner import Runner
from strongroom.store.sqlite.database_file import DAMAGED_EXIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from strongroom.server.monitoring.log import Log
    from strongroom.server.settings import Settings
    from strongroom.server.transport.listeners import Listeners

_TOO_SOON: Final = 5.0  # a process that ends sooner than this after its start is not simply started again
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Workers:
    """The processes, and the one that watches them."""

    def __init__(
        self,
        settings: Settings,
        opened: Listeners,
        data: str,
        reread: Callable[[], Settings] | None = None,
        *,
        migrate: bool = True,
    ) -> None:
        self._settings = settings
        self._migrate = migrate
        self._data = data
        self._listeners = opened
        self._reread = reread
        self._metrics = SharedMetrics(settings.workers)
        self._started: dict[int, tuple[float, int]] = {}  # when, and its place on the board
        self._stopping = False
        self._hung_up = False  # in a new process: told to read secrets anew before it could
        self._own_log = self._log()  # each of the others has one too
        self._announced = False
        self._ready: set[int] = set()  # the places of those that have said so since the start, or since the last reload
        self._received: set[int] = set()  # signals that are to be obeyed
        self._notifier = Notifier()
        self._next_sign = 0.0
        self._ready_read, self._ready_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()  # every signal writes to it
        os.set_blocking(self._wake_write, False)
        self._life_read, self._life_write = os.pipe()  # closes when the watching process is gone, however it went

    def _log(self) -> Log:
        return to_stderr(self._settings.log_level, self._settings.log_format)

    def run(self) -> int:
        """Start them, keep their number, end when told to; the exit code."""
        for number in _SIGNALS:
            signal.signal(number, lambda number, _: self._received.add(number))  # the watch obeys, never amid a fork
        signal.signal(signal.SIGCHLD, lambda *_: None)  # which wakes the watch
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for slot in range(self._settings.workers):
            self._fork(slot)
        return self._watch()

    def _watch(self) -> int:
        code = 0
        while self._started:
            readable, _, _ = select.select([self._ready_read, self._wake_read], [], [], self._notifier.every or None)
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
            self._handle_signals()
            if self._ready_read in readable:
                self._note_ready(os.read(self._ready_read, 4096))
            for pid, status in self._ended():
                began, slot = self._started.pop(pid, (0.0, -1))
                if self._stopping or slot < 0:  # a child that is none of the workers: of a shell before, or an orphan
                    continue
                self._own_log.say(
                    "error", f"worker {pid} ended by itself with code {os.waitstatus_to_exitcode(status)}"
                )
                damaged = os.waitstatus_to_exitcode(status) == DAMAGED_EXIT
                if damaged or time.monotonic() - began < _TOO_SOON:
                    code = DAMAGED_EXIT if damaged else 1
                    self._stop()
                else:
                    self._fork(slot)
            self._give_sign_of_life()
        return code

    def _handle_signals(self) -> None:
        """Do what signals ask for. Every worker that was started is known by now, and so is told of it."""
        received, self._received = self._received, set()
        if signal.SIGHUP in received:
            self._hang_up()
        if received & {signal.SIGTERM, signal.SIGINT}:
            self._stop()

    @staticmethod
    def _ended() -> Iterator[tuple[int, int]]:
        """Those that have ended, each with its status."""
        with suppress(ChildProcessError):  # none is left
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                yield ended

    def _note_ready(self, slots: bytes) -> None:
        """Those of these places have begun to serve, or have reloaded, once or more: once all have, that is told."""
        self._ready |= set(slots)
        if len(self._ready) < self._settings.workers:
            return
        self._ready.clear()
        if not self._announced:
            self._announced = True
            listeners.announce(self._settings, self._data, self._listeners)
        self._notifier.ready()

    def _give_sign_of_life(self) -> None:
        """Tell systemd that all is well, if every worker has given a sign of life lately, or is just starting."""
        now = time.monotonic()
        if self._notifier.every and now >= self._next_sign and now - min(self._metrics.beats()) < self._notifier.every:
            self._notifier.alive()
            self._next_sign = now + self._notifier.every * 0.9

    def _stop(self) -> None:
        if not self._stopping:
            self._notifier.stopping()
        self._stopping = True
        self._listeners.release()
        self._send(signal.SIGTERM)

    def _hang_up(self) -> None:
        if self._reread is not None:
            with suppress(BadSetting, OSError, ValueError):  # the workers say so
                self._settings = renewed(self._settings, self._reread())  # for those that will be started later
        if self._announced:
            self._ready.clear()
            self._notifier.reloading()
        self._send(signal.SIGHUP)

    def _send(self, number: int) -> None:
        for pid in self._started:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, number)

    def _fork(self, slot: int) -> None:
        self._metrics.beat(slot, math.inf)  # it is starting
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until the new process knows what to do about one
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic(), slot
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, self._note_hang_up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        code = 1
        try:
            self._serve(slot)
            code = 0
        finally:
            os._exit(code)

    def _note_hang_up(self, _number: int, _frame: FrameType | None) -> None:
        """In the new process, before it serves: secrets are to be read anew as soon as it does."""
        self._hung_up = True

    def _serve(self, slot: int) -> None:
        """In the new process: its own group, so that Ctrl-C reaches it once, through the one that watches."""
        os.setpgid(0, 0)
        os.close(self._life_write)
        server = open_server(
            self._settings,
            log=self._log(),
            metrics_slot=MetricsSlot(self._metrics, slot),
            examine=False,
            migrate=self._migrate,
            wait=self._settings.db_wait_seconds,
        )
        beats = partial(self._metrics.beat, slot), min(1.0, self._notifier.every / 4)

        def told() -> None:
            """Say to the one that watches that this one serves, or has reloaded."""
            os.write(self._ready_write, bytes([slot]))

        runner = Runner(server.app, self._listeners, told, self._reread, beat=beats, on_reloaded=told)
        runner.reload_at_start = lambda: self._hung_up

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
    data = server.data_location
    asyncio.run(server.release())
    listeners.tls(settings)  # a certificate that cannot be read is a sentence too
    opened = listeners.open_listeners(settings)
    try:
        return _Workers(settings, opened, data, reread, migrate=migrate).run()
    finally:
        opened.close()
