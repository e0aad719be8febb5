"""Worker processes: a supervisor and several processes that serve one address and one database."""

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

_TOO_SOON: Final = 5.0  # a worker that exits sooner than this after its start is not restarted
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Workers:
    """The supervisor of the worker processes."""

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
        self._started: dict[int, tuple[float, int]] = {}  # the start, and its metrics slot
        self._stopping = False
        self._reload_wanted = False  # in a new worker: SIGHUP came before it served
        self._own_log = self._log()  # each worker has one too
        self._announced = False
        self._ready: set[int] = set()  # slots of workers that reported ready since the start, or since the last reload
        self._received: set[int] = set()  # signals that are not handled yet
        self._notifier = Notifier()
        self._next_watchdog = 0.0
        self._ready_read, self._ready_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()  # the wakeup descriptor of signals
        os.set_blocking(self._wake_write, False)
        self._life_read, self._life_write = os.pipe()  # closes when the supervisor is gone, however it ended

    def _log(self) -> Log:
        return to_stderr(self._settings.log_level, self._settings.log_format)

    def run(self) -> int:
        """Start the workers, restart those that fail, stop on a signal; the exit code."""
        for number in _SIGNALS:
            signal.signal(
                number, lambda number, _: self._received.add(number)
            )  # handled in `_supervise`, never amid a fork
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake `_supervise`
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for slot in range(self._settings.workers):
            self._fork(slot)
        return self._supervise()

    def _supervise(self) -> int:
        code = 0
        while self._started:
            readable, _, _ = select.select([self._ready_read, self._wake_read], [], [], self._notifier.every or None)
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
            self._handle_signals()
            if self._ready_read in readable:
                self._note_ready(os.read(self._ready_read, 4096))
            for pid, status in self._reap():
                began, slot = self._started.pop(pid, (0.0, -1))
                if self._stopping or slot < 0:  # a child that is no worker: of a shell before, or an orphan
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
            self._notify_watchdog()
        return code

    def _handle_signals(self) -> None:
        """Handle signals. Every worker that was started is known by now, and gets them too."""
        received, self._received = self._received, set()
        if signal.SIGHUP in received:
            self._reload()
        if received & {signal.SIGTERM, signal.SIGINT}:
            self._stop()

    @staticmethod
    def _reap() -> Iterator[tuple[int, int]]:
        """Child processes that have exited, each with its status."""
        with suppress(ChildProcessError):  # none is left
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                yield ended

    def _note_ready(self, slots: bytes) -> None:
        """Note workers that serve or have reloaded, by their slots; once all have, announce it."""
        self._ready |= set(slots)
        if len(self._ready) < self._settings.workers:
            return
        self._ready.clear()
        if not self._announced:
            self._announced = True
            listeners.announce(self._settings, self._data, self._listeners)
        self._notifier.ready()

    def _notify_watchdog(self) -> None:
        """Notify the watchdog of systemd, if every worker has sent a heartbeat lately, or is starting."""
        now = time.monotonic()
        if (
            self._notifier.every
            and now >= self._next_watchdog
            and now - min(self._metrics.beats()) < self._notifier.every
        ):
            self._notifier.alive()
            self._next_watchdog = now + self._notifier.every * 0.9

    def _stop(self) -> None:
        if not self._stopping:
            self._notifier.stopping()
        self._stopping = True
        self._listeners.release()
        self._send(signal.SIGTERM)

    def _reload(self) -> None:
        if self._reread is not None:
            with suppress(BadSetting, OSError, ValueError):  # the workers log it
                self._settings = renewed(self._settings, self._reread())  # for workers that are started later
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
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until the worker has its own handlers
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic(), slot
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, self._request_reload)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        code = 1
        try:
            self._serve(slot)
            code = 0
        finally:
            os._exit(code)

    def _request_reload(self, _number: int, _frame: FrameType | None) -> None:
        """In a new worker, before it serves: reload as soon as it does."""
        self._reload_wanted = True

    def _serve(self, slot: int) -> None:
        """Serve, in a new worker: in its own process group, so that Ctrl-C reaches it once, through the supervisor."""
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

        def report_ready() -> None:
            """Report to the supervisor that this worker serves, or has reloaded."""
            os.write(self._ready_write, bytes([slot]))

        runner = Runner(server.app, self._listeners, report_ready, self._reread, beat=beats, on_reloaded=report_ready)
        runner.reload_at_start = lambda: self._reload_wanted

        def stop_with_supervisor() -> None:
            """Stop when the supervisor is gone, however it ended."""
            os.read(self._life_read, 1)
            runner.stop()

        threading.Thread(target=stop_with_supervisor, daemon=True).start()
        runner.run()


def run(settings: Settings, reread: Callable[[], Settings] | None = None, *, migrate: bool = True) -> int:
    """Open the database once, to migrate it and to report errors; then serve with several workers."""
    log = to_stderr(settings.log_level, settings.log_format)
    server = open_server(settings, log=log, migrate=migrate, wait=settings.db_wait_seconds)
    data = server.data_location
    asyncio.run(server.release())
    listeners.tls(settings)  # reports a certificate that cannot be read
    opened = listeners.open_listeners(settings)
    try:
        return _Workers(settings, opened, data, reread, migrate=migrate).run()
    finally:
        opened.close()
