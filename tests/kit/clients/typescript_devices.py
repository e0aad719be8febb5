"""Devices with the TypeScript client on a network, and in a process, that a test has in its hand.

Each has a process of Node.js of its own, which is killed for real: in the middle of a request, just after one, in the
middle of a write to its file, or just after one.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from strongroom.client.net.effects import NoResponse, Request
from tests.kit.clients.crew import Crew
from tests.kit.clients.typescript import Gone, Node, Thing
from tests.kit.network.unreliable_network import URL, Crash, ReplicaDevice, World
from tests.kit.servers.restartable_server import RestartableServer

R = TypeVar("R")
_one_at_a_time = threading.Lock()  # the server runs in this process, on one event loop


class Nodes:
    """Processes of Node.js: those that were not killed are used again."""

    def __init__(self) -> None:
        self._free: list[Node] = []
        self._all: list[Node] = []

    def take(self) -> Node:
        """A process that nobody uses."""
        while self._free:
            if not (found := self._free.pop()).has_ended:
                return found
        self._all.append(Node())
        return self._all[-1]

    def give_back(self, node: Node) -> None:
        """It is not needed any more."""
        self._free.append(node)

    def close(self) -> None:
        """End all."""
        for node in self._all:
            node.close()


@cache
def shared_nodes() -> Nodes:
    """The processes that all devices of a session of tests share."""
    nodes = Nodes()
    atexit.register(nodes.close)
    return nodes


def carried_client(node: Node, world: World, token: str = "") -> Thing:
    """A client whose requests go through a world: that of its attribute `_driver`."""
    found: list[Thing] = []

    def carry(method: str, target: str, bearer: str | None, version: str | None, body: str) -> Any:
        parts = urlsplit(target)
        wanted = Request(
            method=method,
            path=parts.path,
            query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
            bearer=bearer,
            body=body.encode() if body else None,
            max_bytes=1 << 31,
            keyring_version=None if version is None else int(version),
        )
        try:
            with _one_at_a_time:
                answer = (found[0]._driver if found else world)._perform(wanted)
        except NoResponse as none:
            return "ECONNRESET" if none.sent else "ECONNREFUSED"
        except Crash:
            node.kill()
            raise Gone from None
        after = "" if answer.retry_after is None else str(answer.retry_after)
        return [answer.status, answer.body, after]

    found.append(node.ask("carried", name=token, args=(URL, carry)))
    found[0]._driver = world
    return found[0]


class TypeScriptDevice(ReplicaDevice):
    """A replica in a file, and a process of Node.js that has it open and may be killed at any moment."""

    client: Any
    replica: Any

    def __init__(self, take: Callable[[], Node], world: World, client: Any, path: str) -> None:
        self._take = take
        self._tokens: list[str] = []
        ReplicaDevice.__init__(self, world, client, path)

    @property
    def node(self) -> Node:
        """The process."""
        process: Node = self.client._node
        return process

    def epochs(self) -> set[str]:
        """The epochs of the server that the replica has synced its vaults with."""
        return set(self._inside("epochs"))

    def was_sent(self, vault: str, uid: str) -> bool:
        """Whether a change of a document was sent without a response."""
        return bool(self._inside("wasSent", vault, uid))

    def _inside(self, name: str, *args: Any) -> Any:
        return self.node.ask("replica", self.replica._number, name, args)

    def run(self, work: Callable[[], R], fates: list[str], crash: tuple[int, bool] | None, password: str) -> R | None:
        """Do something that the wire and the process may end: every other crash is at a write to the file."""
        self._keep_tokens()
        self.world.fates = fates.copy()
        self.world.left, self.world.after = None, False
        if crash is not None:
            step, after = crash[0] // 2, crash[1]
            if crash[0] % 2:
                self.node.ask("dieAt", args=(step, after))
            else:
                self.world.left, self.world.after = step, after
        try:
            result = work()
            self.node.ask("dieAt", args=(-1, False))
        except Gone:
            self.begin_again(password)
            return None
        else:
            return result
        finally:
            self.world.fates, self.world.left = [], None

    def begin_again(self, password: str) -> None:
        """Another process knows what the file has, and the tokens of the session; nothing else."""
        self.end_process()
        self.client = carried_client(self._take(), self.world)
        self.client.unlock(self.path, password)
        if self._tokens:
            self.client.inside("useTokens", *self._tokens)
        self.replica = self._open()

    def end_process(self) -> None:
        """Kill the process."""
        self.world.fates, self.world.left = [], None
        if self.node.has_ended:
            self.node.wait()
        else:
            self._keep_tokens()
            self.node.kill()

    def _keep_tokens(self) -> None:
        """A process that is killed cannot be asked for its tokens."""
        self._tokens = self.client.inside("tokensHeld")


class MixedCrew(Crew):
    """The devices of one account, of both languages: whether the device of a number is TypeScript's, the test says.

    Clients that are no device's are of the language of the first one.
    """

    def __init__(self, server: RestartableServer, most: int, nodes: Nodes, typescript: Callable[[int], bool]) -> None:
        self._nodes = nodes
        self._typescript = typescript
        self._numbers = iter(range(most))
        self._taken: list[Node] = []
        super().__init__(server, most)

    def client(self) -> Any:
        """A client that nobody has logged in with."""
        if not self._typescript(next(self._numbers, 0)):
            return super().client()
        return carried_client(self.take(), World(self.server, self.late))

    def take(self) -> Node:
        """A process that nobody uses."""
        self._taken.append(self._nodes.take())
        return self._taken[-1]

    def device(self, number: int, path: str) -> ReplicaDevice:
        """A device with the client of this number, whose replica is in a new file."""
        if not self._typescript(number):
            return super().device(number, path)
        return TypeScriptDevice(self.take, World(self.server, self.late), self.clients[number], path)

    def close(self) -> None:
        """Let others use the processes."""
        for node in self._taken:
            self._nodes.give_back(node)
