"""A server in this process that can be restarted, killed and restored, and whose clock a test sets."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from strongroom import create_server, identifiers
from strongroom.actions import accounts
from strongroom.model import Origin
from strongroom.server import opening
from strongroom.store.postgres.connection import hosts_and_database
from strongroom.wire.requests import Register
from tests.kit.clock import Clock
from tests.kit.servers.internals import context_of, purge
from tests.kit.servers.populated_database import alter
from tests.kit.servers.postgres import postgres
from tests.kit.servers.reply import Reply
from tests.kit.servers.secret import SECRET
from tests.security.asgi_request import ask

HISTORY_VERSIONS, HISTORY_DAYS, TRASH_DAYS = 3, 4, 2
_people = itertools.count(1)


class RestartableServer:
    """A server on a database of its own, which can be ended and started again."""

    def __init__(self, where: str, **settings: Any) -> None:
        self._settings = settings
        self.clock = Clock()
        self.runner = asyncio.Runner()
        self.where = where
        self._start()

    def _start(self) -> None:
        lives: dict[str, Any] = {"jwt_access_expiry": "3650d", "jwt_refresh_expiry": "3650d"}
        lives |= {"history_versions": HISTORY_VERSIONS, "history_days": HISTORY_DAYS, "trash_days": TRASH_DAYS}
        lives["login_limit"] = 0  # tests that share an account log in often
        lives["database_url" if "://" in self.where else "db_path"] = self.where
        start = partial(create_server, jwt_secret=SECRET, clock=self.clock, **(lives | self._settings))
        self.app = opening.retry(start, 60, None)  # as `strongroom serve`: PostgreSQL may be slow to answer

    def restart(self) -> None:
        """End the server, and start another on the same database."""
        self.runner.run(self.app.release())
        self._start()

    def kill(self) -> None:
        """End the server without a word, and start another on what it leaves: on SQLite, a file and its log."""
        left = {} if "://" in self.where else {path: path.read_bytes() for path in self._files()}
        self.runner.run(self.app.release())
        for path, content in left.items():
            path.write_bytes(content)
        self._start()

    def _files(self) -> list[Path]:
        return [path for name in ("", "-wal") if (path := Path(f"{self.where}{name}")).exists()]

    def throw_away(self) -> None:
        """Let the server do its chores."""
        self.runner.run(purge(self.app))

    def backup(self) -> None:
        """Keep the database as it is now."""
        self.runner.run(self.app.release())
        self._copy(kept=True)
        self._start()

    def restore(self) -> None:
        """Go back to what was kept, as a new lineage."""
        self.runner.run(self.app.release())
        self._copy(kept=False)
        self.runner.run(alter(self.where, "DELETE FROM lineage"))
        self._start()

    def roll_back(self) -> None:
        """Go back to what was kept, and say nothing of it: the lineage stays."""
        self.runner.run(self.app.release())
        self._copy(kept=False)
        self._start()

    def _copy(self, *, kept: bool) -> None:
        """Copy the database, or copy it back."""
        here = hosts_and_database(self.where)[1] if "://" in self.where else self.where
        source, target = (here, f"{here}_kept") if kept else (f"{here}_kept", here)
        if "://" in self.where:
            postgres().sql(f'DROP DATABASE IF EXISTS "{target}"')
            postgres().sql(f'CREATE DATABASE "{target}" TEMPLATE "{source}"')
        else:
            shutil.copy(source, target)

    def close(self) -> None:
        """End it for good."""
        self.runner.run(self.app.release())
        self.runner.close()

    def person(self) -> str:
        """The access token of somebody new, who needs no password: hashing one takes longer than a whole example."""
        room, now = context_of(self.app), self.clock()
        user_id, email = identifiers.new_uid(now), f"somebody{next(_people)}@example.com"
        pair = room.token_issuer.pair(user_id, identifiers.new_uid(now), now)
        wanted = Register(email=email, password="none of it counts")
        here = Origin("here", "tests")
        self.runner.run(room.db.write(accounts.register, user_id, email, "none", pair, here, wanted))
        return pair.access_token

    def ask(self, method: str, path: str, bearer: str | None = None, body: Any = None) -> Reply:
        """One request that does arrive, and whose answer does too."""
        answer = self.runner.run(ask(self.app, method, path, bearer, body))
        return Reply(answer.status, answer.json())
