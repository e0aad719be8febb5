"""A server that can be restarted and restored, and a network to it that loses and delays."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from strongroom import create_server, identifiers
from strongroom.actions import accounts
from strongroom.model import Origin
from strongroom.server import opening
from strongroom.store.postgres.connection import hosts_and_database
from strongroom.wire.requests import Register
from tests.conftest import SECRET, Clock
from tests.kit.servers.internals import context_of, purge
from tests.kit.servers.populated_database import alter
from tests.kit.servers.postgres import postgres
from tests.security.asgi_request import ask
from tests.sync.device import Lost, Op, Reply
from tests.sync.oracle import HISTORY_DAYS, HISTORY_VERSIONS, TRASH_DAYS, Oracle

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
        lives["database_url" if "://" in self.where else "db_path"] = self.where
        start = partial(create_server, jwt_secret=SECRET, clock=self.clock, **(lives | self._settings))
        self.server = opening.retry(start, 60, None)  # as `strongroom serve`: PostgreSQL may be slow to answer

    def restart(self) -> None:
        """End the server, and start another on the same database."""
        self.runner.run(self.server.release())
        self._start()

    def kill(self) -> None:
        """End the server without a word, and start another on what it leaves: on SQLite, a file and its log."""
        left = {} if "://" in self.where else {path: path.read_bytes() for path in self._files()}
        self.runner.run(self.server.release())
        for path, content in left.items():
            path.write_bytes(content)
        self._start()

    def _files(self) -> list[Path]:
        return [path for name in ("", "-wal") if (path := Path(f"{self.where}{name}")).exists()]

    def throw_away(self) -> None:
        """Let the server do its chores."""
        self.runner.run(purge(self.server))

    def backup(self) -> None:
        """Keep the database as it is now."""
        self.runner.run(self.server.release())
        self._copy(kept=True)
        self._start()

    def restore(self) -> None:
        """Go back to what was kept, as a new lineage."""
        self.runner.run(self.server.release())
        self._copy(kept=False)
        self.runner.run(alter(self.where, "DELETE FROM lineage"))
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
        self.runner.run(self.server.release())
        self.runner.close()

    def person(self) -> str:
        """The access token of somebody new, who needs no password: hashing one takes longer than a whole example."""
        room, now = context_of(self.server), self.clock()
        user_id, email = identifiers.new_uid(now), f"somebody{next(_people)}@example.com"
        pair = room.token_issuer.pair(user_id, identifiers.new_uid(now), now)
        wanted = Register(email=email, password="none of it counts")
        here = Origin("here", "tests")
        self.runner.run(room.db.write(accounts.register, user_id, email, "none", pair, here, wanted))
        return pair.access_token

    def ask(self, method: str, path: str, bearer: str | None = None, body: Any = None) -> Reply:
        """One request that does arrive, and whose answer does too."""
        answer = self.runner.run(ask(self.server, method, path, bearer, body))
        return Reply(answer.status, answer.json())


class Wire:
    """The way from the devices to the server. It loses, delays, and holds every answer to the oracle's."""

    def __init__(self, place: RestartableServer, bearer: str, oracle: Oracle) -> None:
        self.place = place
        self.bearer = bearer
        self.oracle = oracle
        self.fate = "good"
        self.late: list[Callable[[], Coroutine[Any, Any, Reply]]] = []

    async def write(self, op: Op) -> Reply:
        """Send one write."""
        return await self._carry(lambda: self._deliver(op))

    async def batch(self, vault: str, ops: list[Op]) -> Reply:
        """Send several writes, of which all are done or none."""
        return await self._carry(lambda: self._deliver_all(vault, ops))

    async def _carry(self, deliver: Callable[[], Coroutine[Any, Any, Reply]]) -> Reply:
        if self.fate == "late":
            self.late.append(deliver)
        if self.fate in {"late", "never"}:
            raise Lost
        reply = await deliver()
        if self.fate == "lost":
            raise Lost
        return reply

    async def _deliver_all(self, vault: str, ops: list[Op]) -> Reply:
        """Let a batch arrive; the answer must be the oracle's."""
        sent = [{"op": op.kind, "uid": op.uid, **op.body} for op in ops]
        reply = await self._sent("POST", f"/vaults/{vault}/batch", {"operations": sent})
        status, expected = self.oracle.expect_batch(ops)
        if status < 400:
            assert reply == (status, {"results": expected}), (ops, reply)
        else:
            assert (reply.status, reply.code) == (status, "batch_conflict"), (ops, reply)
            told = reply.body["error"]["details"]["operations"]
            assert [{**one, **failed} for one, failed in zip(told, expected, strict=True)] == told, (ops, reply)
        return reply

    async def _deliver(self, op: Op) -> Reply:
        """Let a write arrive; the answer must be the oracle's."""
        path = f"/vaults/{op.vault}/documents" + ("" if op.kind == "create" else f"/{op.uid}")
        method = {"create": "POST", "put": "PUT", "delete": "DELETE"}[op.kind]
        reply = await self._sent(method, path, op.body)
        status, expected = self.oracle.expect(op)
        if status < 400:
            assert reply == (status, expected), (op, reply)
        else:
            error = reply.body.get("error", {})
            assert (reply.status, error.get("code"), error.get("details")) == (status, *expected), (op, reply)
        return reply

    async def get(self, path: str, **query: Any) -> Reply:
        """Ask; a question that is lost on the way there or back makes no difference to the server."""
        if self.fate != "good":
            raise Lost
        given = {name: value for name, value in query.items() if value is not None}
        return await self._sent("GET", f"{path}?{urlencode(given)}" if given else path)

    async def _sent(self, method: str, path: str, body: Any = None) -> Reply:
        answer = await ask(self.place.server, method, path, self.bearer, body)
        return Reply(answer.status, answer.json())
