"""The machine of convergence of a whole account, with devices and agents of both languages."""

from __future__ import annotations

import itertools
from typing import Any

from strongroom.client import Client
from tests.client.account_convergence import AccountOwner, Agent, ConvergeAccount, Ground, OwnDevice
from tests.kit.clients.typescript import Node
from tests.kit.clients.typescript_devices import Nodes, TypeScriptDevice, carried_client
from tests.kit.network.unreliable_network import World
from tests.kit.servers.restartable_server import RestartableServer


class MixedGround(Ground):
    """What all examples share: a server, and processes of Node.js."""

    def __init__(self, server: RestartableServer, nodes: Nodes) -> None:
        super().__init__(server)
        self.nodes = nodes


class TypeScriptOwnDevice(TypeScriptDevice, OwnDevice):
    """A device of the owner with the TypeScript client."""

    def __init__(self, nodes: Nodes, person: AccountOwner, path: str) -> None:
        self.person = person
        self.nodes = nodes
        self._process: Node | None = None
        self.world = World(person.server, person.late)
        TypeScriptDevice.__init__(self, nodes.take, self.world, person.log_in(self.new_client()), path)

    def new_client(self) -> Any:
        """A client that nobody has logged in with: in the same process, unless that has ended."""
        if self._process is None or self._process.has_ended:
            self._process = self.nodes.take()
        return carried_client(self._process, self.world)

    @property
    def seen(self) -> int:
        """The version of the keyring that its file has."""
        return int(self._inside("fact", "keyring version") or 0)

    def begin_again(self, password: str = "") -> None:
        """Another process knows what the file has, and the tokens of the session; nothing else."""
        del password
        self.end_process()
        self.client = self.new_client()
        self.person.with_password(lambda one: self.client.unlock(self.path, one))
        if self._tokens:
            self.client.inside("useTokens", *self._tokens)
        self.replica = self._open()


class TypeScriptAgent(TypeScriptDevice, Agent):
    """A device that has a token, with the TypeScript client."""

    def __init__(
        self, nodes: Nodes, person: AccountOwner, token: str, path: str, collection: str | None, *, writes: bool
    ) -> None:
        self.nodes = nodes
        self.person = person
        self.collection = collection
        self.writes = writes
        self.token = token
        world = World(person.server, person.late)
        TypeScriptDevice.__init__(self, nodes.take, world, self._client(world), path)

    def _client(self, world: World) -> Any:
        return carried_client(self.nodes.take(), world, self.token)

    def begin_again(self, password: str = "") -> None:
        """Another process has the token and the file."""
        del password
        self.end_process()
        self.client = self._client(self.world)
        self.replica = self._open()


class ConvergeMixedAccount(ConvergeAccount):
    """Every other device and every other agent has the TypeScript client."""

    crew: MixedGround
    made = itertools.count()

    def own_device(self, client: Client | None = None) -> OwnDevice:
        """A new device of the owner, with a client that has logged in."""
        if client or next(self.made) % 2:
            return super().own_device(client)
        return TypeScriptOwnDevice(self.crew.nodes, self.person, self._path())

    def agent(self, token: str, collection: str | None, *, writes: bool) -> Agent:
        """A new agent."""
        if next(self.made) % 2:
            return super().agent(token, collection, writes=writes)
        return TypeScriptAgent(self.crew.nodes, self.person, token, self._path(), collection, writes=writes)

    def teardown(self) -> None:
        """Whatever happened, it ends well; others use the processes."""
        try:
            super().teardown()
        finally:
            for device in getattr(self, "devices", []):
                if isinstance(device, TypeScriptDevice):
                    self.crew.nodes.give_back(device.node)
