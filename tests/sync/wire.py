"""A network between devices and a server that loses, delays, and compares every answer with the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from tests.kit.servers.reply import Reply
from tests.kit.servers.restartable_server import RestartableServer
from tests.security.asgi_request import ask
from tests.sync.device import Lost, Op
from tests.sync.oracle import Oracle


class Wire:
    """The way from the devices to the server. It loses, delays, and holds every answer to the oracle's."""

    def __init__(self, server: RestartableServer, bearer: str, oracle: Oracle) -> None:
        self.server = server
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
        answer = await ask(self.server.app, method, path, self.bearer, body)
        return Reply(answer.status, answer.json())
