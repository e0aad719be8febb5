"""The HTTP server. `create_server` creates one: an ASGI application, or a server of its own with `listen`."""

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
    """A strongroom server. Embed it as an ASGI application, or run it with `listen`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._app = App(context)
        self._runner: Runner | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        await asgi.serve(self._app, scope, receive, send)

    def listen(
        self, port: int | None = None, host: str | None = None, *, reread: Callable[[], Settings] | None = None
    ) -> None:
        """Serve until a signal or `close`; open requests are finished first. SIGHUP calls `reread` for new settings."""
        from strongroom.server import notify
        from strongroom.server.transport import listeners, runner

        opened = listeners.open_listeners(self.settings, host, port)
        try:
            announce = partial(listeners.announce, self.settings, self.data_location, opened)
            self._runner = runner.Runner(self._app, opened, announce, reread, notifier=notify.Notifier())
            self._runner.run()
        finally:
            opened.close()

    def close(self) -> None:
        """Stop a listening server; safe to call from another thread."""
        if self._runner is not None:
            self._runner.stop()

    async def release(self) -> None:
        """Close the database of a server that was opened and never listened."""
        await self._context.close()

    @property
    def app(self) -> App:
        """The HTTP application of this server."""
        return self._app

    @property
    def settings(self) -> Settings:
        """The settings of this server."""
        return self._context.settings

    @property
    def url(self) -> str | None:
        """The address that the server listens on; None while it does not."""
        return None if self._runner is None else self._runner.url

    @property
    def data_location(self) -> str:
        """The location of the database, for people to read."""
        return self._context.db.describe

    @property
    def log(self) -> Log:
        """The server's log."""
        return self._context.log


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
    """Open the database and create a server on it; raises CannotOpen.

    `wait` is the number of seconds to retry while the database cannot be reached.
    """
    if wait:
        given: dict[str, Any] = {"clock": clock, "metrics_slot": metrics_slot, "examine": examine, "migrate": migrate}
        return opening.retry(partial(open_server, settings, log=log, **given), wait, log)
    db = open_database(
        settings.database,
        clock,
        pool=settings.db_pool,
        migrate=migrate,
        recover=True,
        pooler_url=settings.database_pooler_url if settings.database_url else "",
    )
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
    """Create a server. Further settings are named like their variables, in lower case: `max_body_bytes=1_000_000`."""
    given = {name.upper(): _setting_text(value) for name, value in settings.items()}
    unknown = sorted(given.keys() - {option.variable for option in TABLE})
    if unknown:
        raise TypeError(f"create_server has no setting {unknown[0].lower()!r}")
    environment = {**given, "JWT_SECRET": jwt_secret, "DB_PATH": str(db_path), "VAULT_VARIANT": str(variant)}
    return open_server(resolve(environment), log=log, clock=clock)


def _setting_text(value: Any) -> str:
    return ",".join(value) if isinstance(value, (list, tuple)) else str(value)
