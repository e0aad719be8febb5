"""Runs a server: serves behind its doors, reads its secrets anew on SIGHUP, ends well on a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from strongroom.server import memory, reloading, routes
from strongroom.server.app import App
from strongroom.server.monitoring.log import Forward
from strongroom.server.settings import BadSetting
from strongroom.server.transport import asgi, listeners
from strongroom.server.transport.connection import Connection, protocol, sweep

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from strongroom.server.monitoring.log import Log
    from strongroom.server.notify import Notifier
    from strongroom.server.settings import Settings
    from strongroom.server.transport.listeners import Listeners

_COLLECT: Final = 10_000  # objects that have gathered before somebody looks which of them are garbage
_OWN_FILES: Final = 200  # databases, their connections, lists, the log, listening sockets, those who watch
_SPARE: Final = 16  # connections for those who watch, when all others are taken


class _Uvicorn(uvicorn.Server):
    """uvicorn, except that a signal that was obeyed is not raised again: an orderly end is exit code 0."""

    on_started: Any = None
    on_draining: Any = None
    on_stopping: Any = None
    drain_seconds: float = 0
    on_hangup: Any = None
    sweep: Any = None
    beat: Any = None
    beat_seconds: float = 0
    watched: tuple[socket.socket, type[asyncio.Protocol]] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first signal ends in order, a second one at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        if self.watched is not None:
            bound, kind = self.watched
            made: Any = kind
            self.servers.append(await loop.create_server(lambda: made(server_state=self.server_state), sock=bound))
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self.on_hangup)
        self.sweeping = asyncio.create_task(self.sweep(self.server_state.connections))
        self.beating = asyncio.create_task(self._beat())
        if self.on_started is not None:
            self.on_started()

    async def _beat(self) -> None:
        """Give a sign of life again and again, for as long as the event loop turns."""
        while self.beat_seconds:
            self.beat()
            await asyncio.sleep(self.beat_seconds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that it ends, for as long as proxies need to hear it; then end, the sweep too.

        Streams end when the listener does: they would not end by themselves, and their clients come back elsewhere.
        """
        self.on_draining()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.expect_close()
        await self._drain()
        self.on_stopping()
        await super().shutdown(sockets)
        self.sweeping.cancel()
        self.beating.cancel()

    async def _drain(self) -> None:
        """Go on answering for a while; a second signal ends that."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.drain_seconds
        while not self.force_exit and (left := deadline - loop.time()) > 0:
            await self.on_tick(0)  # which keeps the time in answers right
            await asyncio.sleep(min(0.1, left))


class Runner:
    """One process that serves."""

    reload_at_start: Callable[[], bool] = staticmethod(lambda: False)  # whether SIGHUP came before it was heard

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
        most = context.settings.max_connections
        config = uvicorn.Config(
            partial(asgi.serve, app),
            interface="asgi3",
            http=protocol(app, most),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nobody's X-Forwarded-For counts
            server_header=False,
            timeout_graceful_shutdown=30,
        )
        config.load()
        config.ssl = self._tls = listeners.tls(context.settings)
        self._certificate = listeners.certificate_digest(context.settings)
        context.certificate_expires = listeners.expiry(context.settings)
        self._uvicorn = _Uvicorn(config)
        self._uvicorn.on_started = self._started
        if notifier is not None:
            beat = notifier.alive, notifier.every
        if beat is not None:
            self._uvicorn.beat, self._uvicorn.beat_seconds = beat
        self._uvicorn.on_draining = self._draining
        self._uvicorn.on_stopping = context.live.stop
        self._uvicorn.drain_seconds = context.settings.drain_seconds
        self._uvicorn.on_hangup = self.reload
        self._uvicorn.sweep = lambda connections: sweep(connections, context.buffers, context.log)
        if opened.metrics is not None:
            watching = App(context, routes.watching())
            self._uvicorn.watched = opened.metrics, protocol(watching, most + _SPARE)

    def _started(self) -> None:
        if threading.current_thread() is threading.main_thread():
            _collect_rarely()
        if self.reload_at_start():
            self._reload()
        self.started.set()
        self._on_started()
        if self._notifier is not None:
            self._notifier.ready()

    def _draining(self) -> None:
        if self._notifier is not None:
            self._notifier.stopping()
        self._context.stopping = True

    def run(self) -> None:
        """Serve until told to stop."""
        memory.configure()
        _have_enough_files(self._context.settings.max_connections, self._context.log)
        logger = logging.getLogger("uvicorn.error")
        logger.handlers = [Forward(self._context.log)]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._uvicorn.serve(sockets=[self._listeners.main]))
        self._context.log.close()

    def stop(self) -> None:
        """Finish the requests in hand, then end."""
        self._uvicorn.should_exit = True

    def reload(self) -> None:
        """Read secrets and certificate anew; what cannot be read leaves all as it was."""
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
        log.say("info", reloading.taken(running, read, certificate=before != self._certificate))
        metrics_slot = self._context.metrics_slot
        if metrics_slot is None or metrics_slot.number == 0:  # of several workers one says it
            for sentence in reloading.warnings(running, read):
                log.say("warning", sentence)


def _have_enough_files(connections: int, log: Log) -> None:
    """Raise the limit of open files as far as it may be, and warn where that is too low for so many connections."""
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


def _collect_rarely() -> None:
    """A request leaves no garbage that holds itself. What is here by now stays: it need not be looked through."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT, 20, 50)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # where it has no wheel
        return asyncio.new_event_loop
    return uvloop.new_event_loop
