"""An unreliable network for a device: requests are lost or late, and the process may end at any step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode

from strongroom.client import Client
from strongroom.client.net.driver import Driver
from strongroom.client.net.effects import (
    Ask,
    Compute,
    Effect,
    NoResponse,
    Request,
    Response,
    SendAndCompute,
    Sleep,
    WithLock,
)
from strongroom.client.replica.replica import Replica
from tests.kit.servers.restartable_server import RestartableServer
from tests.security.asgi_request import ask

R = TypeVar("R")
URL = "http://127.0.0.1:1"  # nobody is there: every step goes through the world


class Crash(BaseException):
    """The process ends here."""


class World(Driver):
    """Takes the steps of one device. `fates` befall its next requests; after `left` steps the process ends."""

    def __init__(self, server: RestartableServer, late: list[Callable[[], Any]]) -> None:
        self._server = server
        self._late = late
        self.fates: list[str] = []
        self.left: int | None = None
        self.after = False
        self.ends_at_a_batch = ""  # before the server has it, or after
        self.lie: Callable[[Request, Any], None] | None = None  # changes the JSON of a response
        self.sent: list[Request] = []

    def _perform(self, step: Effect) -> Any:
        if isinstance(step, WithLock):
            return self.run(step.effects)
        if self.left is None:
            return self._took(step)
        self.left -= 1
        if self.left < 0 and not self.after:
            raise Crash
        result = self._took(step)
        if self.left < 0:
            raise Crash
        return result

    def _took(self, step: Effect) -> Any:
        if isinstance(step, Sleep):
            return None
        if isinstance(step, Request):
            return self._carry(step)
        if isinstance(step, SendAndCompute):
            result = step.run()
            try:
                return self._carry(step.request), result
            except NoResponse as none:
                return none, result
        assert isinstance(step, Ask | Compute), "a sync follows no events"
        return step.run()

    def _carry(self, wanted: Request) -> Response:
        fate = self.fates.pop(0) if self.fates else "good"
        if fate == "late":
            self._late.append(lambda: self._deliver(wanted))
        if fate in {"late", "never"}:
            raise NoResponse(sent=True)
        if fate == "off":
            raise NoResponse(sent=False)
        ends = self.ends_at_a_batch if wanted.path.endswith("/batch") else ""
        if ends == "before":
            raise Crash
        answer = self._deliver(wanted)
        if ends == "after":
            raise Crash
        if fate == "lost":
            raise NoResponse(sent=True)
        return answer

    def _deliver(self, wanted: Request) -> Response:
        self.sent.append(wanted)
        target = wanted.path + (f"?{urlencode(wanted.query)}" if wanted.query else "")
        version = wanted.keyring_version
        headers = () if version is None else (("keyring-version", str(version)),)
        asked = ask(self._server.app, wanted.method, target, wanted.bearer, wanted.body, headers=headers)
        answer = self._server.runner.run(asked)
        assert len(answer.body) <= wanted.max_bytes
        after = answer.header("retry-after")
        body = answer.body
        if self.lie is not None and answer.status < 300 and body:
            told = json.loads(body)
            self.lie(wanted, told)
            body = json.dumps(told).encode()
        return Response(answer.status, body, int(after) if after else None)

    def close(self) -> None:
        """There is nothing to hang up."""


def world_of(client: Client) -> World:
    """The network of a client."""
    world = client._driver
    assert isinstance(world, World)
    return world


class ReplicaDevice:
    """A replica in a file, and a process that has it open and may end at any moment."""

    def __init__(self, world: World, client: Client, path: str) -> None:
        self.world = world
        self.client = client
        self.path = path
        self.replica = self._open()

    def _open(self) -> Replica:
        client = self.client
        client._driver = self.world
        return client.open_replica(self.path)

    def epochs(self) -> set[str]:
        """The epochs of the server that the replica has synced its vaults with."""
        return {kept.epoch for kept in self.replica._local.file.vaults.all()}

    def was_sent(self, vault: str, uid: str) -> bool:
        """Whether a change of a document was sent without a response."""
        return self.replica._local.file.outbox.was_sent(vault, uid)

    def run(self, work: Callable[[], R], fates: list[str], crash: tuple[int, bool] | None, password: str) -> R | None:
        """Do something that the wire and the process may end. After a crash another process opens the file."""
        self.world.fates = fates.copy()
        self.world.left, self.world.after = (None, False) if crash is None else crash
        try:
            return work()
        except Crash:
            self.begin_again(password)
            return None
        finally:
            self.world.fates, self.world.left = [], None

    def begin_again(self, password: str) -> None:
        """Another process knows what the file has, and the tokens of the session; nothing else."""
        session = self.client._core.session
        tokens = session._access, session._refresh
        self.replica.close()
        self.world.fates, self.world.left = [], None
        self.client = Client(URL)
        self.client._driver = self.world
        self.client.unlock(self.path, password)
        self.client._core.session._access, self.client._core.session._refresh = tokens
        self.replica = self._open()
