"""Runs a server: binds its address, tells where it listens, ends well on a signal."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from strongroom.server.observe import Forward
from strongroom.server.settings import BadSetting
from strongroom.server.transport import protocol, sweep

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from strongroom.server import Server
    from strongroom.server.settings import Settings


class _Uvicorn(uvicorn.Server):
    """uvicorn, except that a signal that was obeyed is not raised again: an orderly end is exit code 0."""

    on_started: Any = None
    on_stopping: Any = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first signal ends in order, a second one at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        self.sweeping = asyncio.create_task(sweep(self.server_state.connections))
        if self.on_started is not None:
            self.on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, the sweep too. Streams end first: they would not end by themselves."""
        if self.on_stopping is not None:
            self.on_stopping()
        await super().shutdown(sockets)
        self.sweeping.cancel()


class Runner:
    """One process that serves."""

    def __init__(self, server: Server, bound: socket.socket, on_started: Callable[[], None]) -> None:
        self._server = server
        self._socket = bound
        self.url = url_of(bound)
        self.started = threading.Event()
        self._on_started = on_started
        config = uvicorn.Config(
            server,
            http=protocol(server.app, server.settings.max_connections),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nobody's X-Forwarded-For counts
            server_header=False,
            timeout_graceful_shutdown=30,
        )
        self._uvicorn = _Uvicorn(config)
        self._uvicorn.on_started = self._started
        self._uvicorn.on_stopping = server.stopping

    def _started(self) -> None:
        self.started.set()
        self._on_started()

    def run(self) -> None:
        """Serve until told to stop."""
        logger = logging.getLogger("uvicorn.error")
        logger.handlers = [Forward(self._server.log)]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._uvicorn.serve(sockets=[self._socket]))
        self._server.log.flush()

    def stop(self) -> None:
        """Finish the requests in hand, then end."""
        self._uvicorn.should_exit = True


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # where it has no wheel
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def announce(settings: Settings, data: str, url: str) -> None:
    """Tell where it listens, what it serves, where the data lies and where the documentation is."""
    serves = {
        "both": "document vaults and blob vaults",
        "document": "document vaults (Variant A)",
        "blob": "blob vaults (Variant B)",
    }[settings.vault_variant.value]
    lines = (
        f"strongroom listens on {url}",
        f"  serves  {serves}",
        f"  data    {data}",
        f"  docs    {url}/docs",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def url_of(bound: socket.socket) -> str:
    """The address of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, port: int) -> socket.socket:
    """Bind now, so that a taken port is a sentence and not a traceback."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadSetting(f"Cannot listen on {host} port {port}: {reason}. Choose another with HOST and PORT.") from None
    return bound
