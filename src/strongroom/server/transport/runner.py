"""The server process: accepts connections, reloads on SIGHUP, shuts down gracefully on SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from strongroom.server import memory, reloading, routes
from strongroom.server.app import App
from strongroom.server.settings import BadSetting
from strongroom.server.transport import listeners
from strongroom.server.transport.connection import ServerState, protocol, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from strongroom.server.monitoring.log import Log
    from strongroom.server.notify import Notifier
    from strongroom.server.settings import Settings
    from strongroom.server.transport.listeners import Listeners

_COLLECT: Final = 10_000  # allocations between two garbage collections
_OWN_FILES: Final = 200  # databases, their connections, snapshots, the log, listening sockets, metrics
_BACKLOG: Final = 2048  # connections that the kernel keeps until they are accepted
_TICK_SECONDS: Final = 0.1  # between two checks for signals, and of the time for the Date header
_FINISH_SECONDS: Final = 30.0  # for requests under way when the server stops
_SPARE: Final = 16  # connections to the metrics port beyond the limit


class Runner:
    """Runs the server in this process."""

    reload_at_start: Callable[[], bool] = staticmethod(lambda: False)  # whether SIGHUP came before it was handled

    def __init__(
        self,
        app: App,
        opened: Listeners,
        on_started: Callable[[], None],
        reread: Callable[[], Settings] | None = None,
        *,
        notifier: Notifier | None = None,
        beat: tuple[Callable[[], None], float] | None = None,
        on_reloaded: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        context = self._context = app.context
        self._listeners = opened
        self._reread = reread
        self._notifier = notifier
        self._on_reloaded = on_reloaded
        self.url = opened.url
        self.started = threading.Event()
        self._on_started = on_started
        self._beat, self._beat_seconds = beat or (lambda: None, 0.0)
        if notifier is not None:
            self._beat, self._beat_seconds = notifier.alive, notifier.every
        self._state = ServerState()
        self._stop_wanted = self._force_wanted = self._reload_wanted = False  # set by signals and other threads
        self._tls = listeners.tls(context.settings)
        self._certificate = listeners.certificate_digest(context.settings)
        context.certificate_expires = listeners.expiry(context.settings)

    def _started(self) -> None:
        if threading.current_thread() is threading.main_thread():
            _tune_garbage_collector()
        if self.reload_at_start():
            self._reload()
        self.started.set()
        self._on_started()
        if self._notifier is not None:
            self._notifier.ready()

    def run(self) -> None:
        """Serve until a signal or `stop`."""
        memory.configure()
        _raise_file_limit(self._context.settings.max_connections, self._context.log)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())
        self._context.log.close()

    def stop(self) -> None:
        """Shut down gracefully; safe to call from another thread."""
        self._stop_wanted = True

    async def _serve(self) -> None:
        """Start, accept connections until a stop is wanted, drain, finish, close."""
        with self._signals():
            await self._app.start()
            servers = await self._accept()
            connections = self._state.connections
            sweeping = asyncio.create_task(sweep(connections, self._context.buffers, self._context.log))
            beating = asyncio.create_task(self._beat_regularly())
            self._started()
            while not self._stop_wanted:
                await self._tick()
            await self._drain()
            await self._finish(servers)
            sweeping.cancel()
            beating.cancel()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Install signal handlers, which only the main thread may; restore the previous ones at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.signal(number, self._handle_signal) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        """Reload on SIGHUP. The first of the others stops in order, a second one at once."""
        if number == getattr(signal, "SIGHUP", None):
            self._reload_wanted = True
        else:
            self._force_wanted = self._stop_wanted
            self._stop_wanted = True

    async def _accept(self) -> list[asyncio.Server]:
        """Listen on every socket."""
        loop, state, most = asyncio.get_running_loop(), self._state, self._context.settings.max_connections
        main = protocol(self._app, most)
        servers = [
            await loop.create_server(
                lambda: main(server_state=state), sock=self._listeners.main, ssl=self._tls, backlog=_BACKLOG
            )
        ]
        if self._listeners.metrics is not None:
            monitoring = protocol(App(self._context, routes.monitoring_router()), most + _SPARE)
            servers.append(
                await loop.create_server(lambda: monitoring(server_state=state), sock=self._listeners.metrics)
            )
        return servers

    async def _beat_regularly(self) -> None:
        """Send heartbeats, for as long as the event loop turns."""
        while self._beat_seconds:
            self._beat()
            await asyncio.sleep(self._beat_seconds)

    async def _tick(self, seconds: float = _TICK_SECONDS) -> None:
        """Renew the Date header, reload if that is wanted, wait."""
        self._state.renew_date()
        if self._reload_wanted:
            self._reload_wanted = False
            self.reload()
        await asyncio.sleep(seconds)

    async def _drain(self) -> None:
        """Serve on for as long as proxies need to notice that the server stops; a second signal ends that."""
        if self._notifier is not None:
            self._notifier.stopping()
        self._context.stopping = True
        for connection in list(self._state.connections):
            connection.expect_close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._context.settings.drain_seconds
        while not self._force_wanted and (left := deadline - loop.time()) > 0:
            await self._tick(min(_TICK_SECONDS, left))

    async def _finish(self, servers: list[asyncio.Server]) -> None:
        """Accept no more connections, wait for the requests under way, close the application.

        Streams end when the listener does: they would not end by themselves, and their clients come back elsewhere.
        """
        self._context.live.stop()
        for server in servers:
            server.close()
        self._listeners.release()
        connections, tasks = self._state.connections, self._state.tasks
        for connection in list(connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FINISH_SECONDS
        await self._tick()
        while (connections or tasks) and not self._force_wanted and loop.time() < deadline:
            await self._tick()
        if self._force_wanted:
            return
        if connections or tasks:
            self._context.log.say("error", f"Cancelled {len(tasks)} requests that were not finished in time.")
            for task in list(tasks):
                task.cancel()
        try:
            await self._app.close()
        except Exception as error:  # noqa: BLE001 - what was promised is done: nothing is left to refuse
            self._context.log.fault(error, "close")

    def reload(self) -> None:
        """Reload secrets and certificate; if one cannot be read, nothing changes."""
        if self._notifier is not None:
            self._notifier.reloading()
        self._reload()
        if self._notifier is not None:
            self._notifier.ready()
        if self._on_reloaded is not None:
            self._on_reloaded()

    def _reload(self) -> None:
        log, running = self._context.log, self._context.settings
        try:
            read = running if self._reread is None else self._reread()
            if self._tls is not None:
                listeners.load_certificate(self._tls, running)
                self._context.certificate_expires = listeners.expiry(running)
        except BadSetting as error:
            log.say("error", f"Nothing was reloaded: {error}")
            return
        before, self._certificate = self._certificate, listeners.certificate_digest(running)
        self._context.renew(read)
        log.say("info", reloading.summary(running, read, certificate=before != self._certificate))
        metrics_slot = self._context.metrics_slot
        if metrics_slot is None or metrics_slot.number == 0:  # only one of several workers logs it
            for sentence in reloading.warnings(running, read):
                log.say("warning", sentence)


def _raise_file_limit(connections: int, log: Log) -> None:
    """Raise the limit of open files, and warn where it stays too low for so many connections."""
    try:
        import resource
    except ImportError:  # where there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OWN_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        log.say(
            "warning",
            f"This process may open {soft} files, and MAX_CONNECTIONS={connections} needs {needed}: raise the limit "
            "(ulimit -n, or LimitNOFILE= of systemd) or lower MAX_CONNECTIONS.",
        )


def _tune_garbage_collector() -> None:
    """Collect garbage rarely: a request leaves no cycles. Objects from the start are frozen, and not scanned again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT, 20, 50)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # where it has no wheel
        return asyncio.new_event_loop
    return uvloop.new_event_loop
