"""Everything that knows HTTP. `create_server` makes a server; it is an ASGI application, and `listen` runs it."""

from __future__ import annotations

import sys
import time
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from strongroom.actions import epochs
from strongroom.descriptors import Decoys
from strongroom.options import TABLE
from strongroom.server import opening
from strongroom.server.app import App
from strongroom.server.context import AppContext
from strongroom.server.monitoring.log import Log, Silent
from strongroom.server.settings import Settings, resolve
from strongroom.server.transport import asgi
from strongroom.store import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.server.monitoring.shared_metrics import MetricsSlot
    from strongroom.server.transport.asgi import Receive, Scope, Send
    from strongroom.server.transport.runner import Runner

__all__ = ["Server", "create_server", "open_server"]


def _clock() -> int:
    return time.time_ns() // 1_000_000


class Server:
    """A strongroom. Embed it as an ASGI application, or let it `listen`."""

    def __init__(self, context: AppContext) -> None:
        self._room = context
        self._app = App(context)
        self._runner: Runner | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Response as an ASGI application."""
        await asgi.serve(self._app, scope, receive, send)

    def listen(
        self, port: int | None = None, host: str | None = None, *, reread: Callable[[], Settings] | None = None
    ) -> None:
        """Serve until a signal or `close`; requests in hand are finished first. On SIGHUP the settings are `reread`."""
        from strongroom.server import notify
        from strongroom.server.transport import listeners, runner

        opened = listeners.open_listeners(self.settings, host, port)
        try:
            told = self.settings, self.data_lies_in, opened
            announce = partial(listeners.announce, *told)
            self._runner = runner.Runner(self._app, opened, announce, reread, notifier=notify.Notifier())
            self._runner.run()
        finally:
            opened.close()

    def close(self) -> None:
        """Ask a listening server to finish; safe to call from another thread."""
        if self._runner is not None:
            self._runner.stop()

    async def release(self) -> None:
        """Let go of the database; for a server that was opened and never listened."""
        await self._room.close()

    @property
    def app(self) -> App:
        """The application behind it."""
        return self._app

    @property
    def settings(self) -> Settings:
        """What this server runs with."""
        return self._room.settings

    @property
    def url(self) -> str | None:
        """Where the server listens; None while it does not."""
        return None if self._runner is None else self._runner.url

    @property
    def data_lies_in(self) -> str:
        """Where the data is, in a few words."""
        return self._room.db.describe

    @property
    def log(self) -> Log:
        """The server's log."""
        return self._room.log


def open_server(
    settings: Settings,
    *,
    log: Log | None = None,
    clock: Callable[[], int] = _clock,
    metrics_slot: MetricsSlot | None = None,
    examine: bool = True,
    migrate: bool = True,
    wait: int = 0,
) -> Server:
    """A server with these settings. Opens the database, and so raises CannotOpen where that fails.

    A database that cannot be reached is waited for, for so many seconds.
    """
    if wait:
        given: dict[str, Any] = {"clock": clock, "metrics_slot": metrics_slot, "examine": examine, "migrate": migrate}
        return opening.retry(partial(open_server, settings, log=log, **given), wait, log)
    db = open_database(settings.where, clock, pool=settings.db_pool, migrate=migrate, recover=True)
    if db.notice is not None:
        print(f"strongroom: {db.notice}", file=sys.stderr, flush=True)  # noqa: T201
        (log or Silent()).say("error", db.notice)
    if examine:
        db.examine()
    decoys = Decoys(db.at_start(epochs.decoy_secret))
    return Server(AppContext(settings, db, clock, log or Silent(), db.at_start(epochs.epoch), decoys, metrics_slot))


def create_server(
    *,
    jwt_secret: str,
    db_path: str | PathLike[str] = "./data/vault.db",
    variant: str = "both",
    log: Log | None = None,
    clock: Callable[[], int] = _clock,
    **settings: Any,
) -> Server:
    """A server from Python. Further settings go by their variables in lower case: `max_body_bytes=1_000_000`."""
    given = {name.upper(): _spelled(value) for name, value in settings.items()}
    unknown = sorted(given.keys() - {option.variable for option in TABLE})
    if unknown:
        raise TypeError(f"create_server has no setting {unknown[0].lower()!r}")
    environment = {**given, "JWT_SECRET": jwt_secret, "DB_PATH": str(db_path), "VAULT_VARIANT": str(variant)}
    return open_server(resolve(environment), log=log, clock=clock)


def _spelled(value: Any) -> str:
    return ",".join(value) if isinstance(value, (list, tuple)) else str(value)
