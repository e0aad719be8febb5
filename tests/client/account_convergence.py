"""The machine of convergence, with everything that an account goes through besides documents.

Passwords and recovery keys change, keys are rotated, agents come with tokens and lose them, the server is restored to
before any of it, and every process may end in the middle. Beside each device is a person who knows all passwords that
were ever set, and who does what an error says and docs/client.md explains: log in again, make a new token, or mend the
credentials of a restored server on the device that has seen the most.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from strongroom.client import Client, CredentialsRolledBack, Document, Locked, RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.errors import (
    DocumentNotFound,
    InvalidCredentials,
    InvalidRefreshToken,
    Refusal,
    Unauthorized,
    Unavailable,
)
from tests.client.convergence import COLLECTIONS, Converge, crashes, fates
from tests.kit.network.unreliable_network import URL, ReplicaDevice, World
from tests.kit.people.credentials import unique_email
from tests.kit.servers.restartable_server import RestartableServer

SHUT_OUT = (Unauthorized, InvalidRefreshToken, InvalidCredentials, Locked)  # log in again, or ask for a new token
MOST_AGENTS = 2
agents = st.tuples(st.sampled_from([None, *COLLECTIONS]), st.booleans())  # of the vault or a collection; may it write
MOST_RESTORES = 2


class AccountOwner:
    """The owner of an account: every password that was ever set, the newest last, and every recovery key."""

    def __init__(self, server: RestartableServer, late: list[Callable[[], Any]]) -> None:
        self.server = server
        self.late = late
        self.email = unique_email()
        self.passwords: list[str] = []
        self.recovery_keys: list[str] = []

    def new_password(self) -> str:
        """A password that was never used. It is written down before it is set."""
        self.passwords.append(f"a password, number {len(self.passwords)}")
        return self.passwords[-1]

    def client(self, world: World | None = None) -> Client:
        """A client that nobody has logged in with."""
        client = Client(URL)
        client._driver = world or World(self.server, self.late)
        return client

    def with_password(self, action: Callable[[str], Any]) -> Any:
        """Do something with the password, as a person does who is not sure which one it is."""
        for password in reversed(self.passwords.copy()):
            try:
                return action(password)
            except InvalidCredentials:
                continue
        raise InvalidCredentials

    def log_in(self, client: Client) -> Client:
        """Log in with the password that the server knows."""
        self.with_password(lambda password: client.login(self.email, password))
        return client


class Ground:
    """What all examples share: a server."""

    def __init__(self, server: RestartableServer) -> None:
        self.server = server
        self.late: list[Callable[[], Any]] = []


class OwnDevice(ReplicaDevice):
    """A device of the owner. `restores`: of the server, those that it has compared everything with."""

    restores = 0

    def __init__(self, person: AccountOwner, client: Client, path: str) -> None:
        self.person = person
        super().__init__(World(person.server, person.late), client, path)

    def new_client(self) -> Any:
        """A client that nobody has logged in with, on the network of this device."""
        return self.person.client(self.world)

    @property
    def seen(self) -> int:
        """The version of the keyring that its file has."""
        return int(self.replica._local.file.fact("keyring version") or 0)

    def begin_again(self, password: str = "") -> None:
        """Another process knows what the file has, and the tokens of the session; nothing else."""
        del password
        session = self.client._core.session
        tokens = session._access, session._refresh
        self.replica.close()
        self.world.fates, self.world.left = [], None
        self.client = self.new_client()
        self.person.with_password(lambda one: self.client.unlock(self.path, one))
        self.client._core.session._access, self.client._core.session._refresh = tokens
        self.replica = self._open()

    def log_in_again(self) -> None:
        """The person logs in. Where the replica does not open with that, it stays open as it was."""
        client = self.person.log_in(self.new_client())
        self.go_on_with(client)

    def go_on_with(self, client: Client) -> None:
        """Open the replica with a client that is logged in."""
        self.replica.close()
        self.client = client
        try:
            self.replica = self._open()
        except Refusal:
            self.begin_again()
            raise

    def mend(self) -> None:
        """The server knows a password of before: the one of this replica is set again, as a new one."""
        self.replica.close()
        client = self.new_client()
        self.person.with_password(lambda one: client.unlock(self.path, one))
        old, new = self.person.passwords.copy(), self.person.new_password()
        try:
            _first(old, lambda one: client.change_password(one, new))
        except Refusal:
            self.begin_again()
            raise
        self.go_on_with(client)


class Agent(ReplicaDevice):
    """A device that has a token, of the vault or of one collection."""

    def __init__(self, person: AccountOwner, token: str, path: str, collection: str | None, *, writes: bool) -> None:
        self.person = person
        self.collection = collection
        self.writes = writes
        self.token = token
        world = World(person.server, person.late)
        super().__init__(world, self._client(world), path)

    def _client(self, world: World) -> Any:
        client = Client.with_token(URL, self.token)
        client._driver = world
        return client

    def begin_again(self, password: str = "") -> None:
        """Another process has the token and the file."""
        del password
        self.replica.close()
        self.world.fates, self.world.left = [], None
        self.client = self._client(self.world)
        self.replica = self._open()

    def take(self, token: str) -> None:
        """Go on with another token."""
        self.token = token
        self.begin_again()


class ConvergeAccount(Converge):
    """The devices and agents of one account, each example with an account of its own."""

    crew: Any
    happened: Counter[str] = Counter()
    passing = (Unavailable, *SHUT_OUT, CredentialsRolledBack)
    devices: list[Any]

    @initialize(count=st.integers(2, 3), old=st.integers(0, 4), agents=st.lists(agents, max_size=MOST_AGENTS))
    def begin(self, count: int, old: int, agents: list[tuple[str | None, bool]] | None = None) -> None:
        """Register somebody with a vault, and devices that have nothing; a backup of that is the first."""
        self.late.clear()
        self.person = AccountOwner(self.server, self.late)
        self.name = "vault"
        self.folder = tempfile.TemporaryDirectory()
        self.files = 0
        self.kept = self.astray = False
        self.restores = 0
        first = self.person.client()
        first.register(self.person.email, self.person.new_password())
        vault = first.vault(self.name, create=True)
        for number in range(old):
            vault.collection(COLLECTIONS[number % 2]).create([self._mark()])
        self.devices = [self.own_device(first), *(self.own_device() for _ in range(count - 1))]
        for device in self.devices:
            device.replica.sync()
        for collection, writes in agents or []:
            self._hire(collection, writes=writes)
        self.keep(None)

    def own_device(self, client: Client | None = None) -> OwnDevice:
        """A new device of the owner, with a client that has logged in."""
        return OwnDevice(self.person, client or self.person.log_in(self.person.client()), self._path())

    def agent(self, token: str, collection: str | None, *, writes: bool) -> Agent:
        """A new agent."""
        return Agent(self.person, token, self._path(), collection, writes=writes)

    def _path(self) -> str:
        self.files += 1
        return str(Path(self.folder.name) / f"{self.files}")

    # What the base asks for

    def _notes(self, device: ReplicaDevice, name: str) -> Any:
        if isinstance(device, Agent) and device.collection is not None:
            return device.replica.collection()
        return super()._notes(device, name)

    def documents(self, device: ReplicaDevice) -> Iterable[Document]:
        """Every document that a device shows."""
        if isinstance(device, Agent) and device.collection is not None:
            return device.replica.collection()
        return super().documents(device)

    def writers(self) -> list[ReplicaDevice]:
        """The devices that may write."""
        return [device for device in self.devices if not isinstance(device, Agent) or device.writes]

    def reader(self) -> Client:
        """A client that has seen nothing yet takes the server as it is."""
        return self.person.log_in(self.person.client())

    def decides(self, device: ReplicaDevice, how: str) -> str:
        """How conflicts on a device are decided: with a token that may not write, the server's side stays."""
        return "reader" if isinstance(device, Agent) and not device.writes else how

    def own(self) -> list[OwnDevice]:
        """The owner's devices."""
        return [device for device in self.devices if isinstance(device, OwnDevice)]

    # The owner

    def _do(
        self, what: str, device: OwnDevice, work: Callable[[], Any], fate: list[str], crash: tuple[int, bool] | None
    ) -> None:
        """Something of the account, as far as it gets. Whether it was done, the person learns by trying passwords."""

        def attempt() -> None:
            try:
                work()
                self.happened[f"{what}, done"] += 1
            except self.passing as refused:
                self.happened[f"{what}, {type(refused).__name__}"] += 1

        if device.restores < self.restores:  # a client outside its replica goes on when that has compared everything
            self._attended(device)
        try:
            device.run(attempt, fate, crash, "")
        except (RolledBack, Tampered):
            if not self.restores:
                raise
            self._in_a_new_process(device, attempt)

    def _in_a_new_process(self, device: OwnDevice, work: Callable[[], Any]) -> None:
        """Do something again. Outside its replica, a client misses what it saw and the server has lost."""
        self.happened["a new process, because the client has seen more than its replica"] += 1
        device.begin_again()
        work()

    @precondition(lambda self: not self.astray)
    @rule(data=st.data(), fate=fates, crash=crashes)
    def change_password(self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None) -> None:
        """Somebody sets another password."""
        device = data.draw(st.sampled_from(self.own()))
        old = self.person.passwords.copy()
        new = self.person.new_password()

        def work() -> None:
            _first(old, lambda one: device.client.change_password(one, new))

        self._do("password", device, work, fate, crash)

    @precondition(lambda self: not self.astray)
    @rule(data=st.data(), fate=fates, crash=crashes, renewed=st.booleans())
    def rotate_keys(
        self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None, *, renewed: bool
    ) -> None:
        """Somebody rotates the keys of the account, with another password or the same."""
        device = data.draw(st.sampled_from(self.own()))
        old = self.person.passwords.copy()
        new = self.person.new_password() if renewed else None

        def work() -> None:
            key = _first(old, lambda one: device.client.rotate_keys(one, new_password=new)).recovery_key
            self.person.recovery_keys += [] if key is None else [key]

        self._do("rotation of the account", device, work, fate, crash)

    @precondition(lambda self: not self.astray)
    @rule(data=st.data(), fate=fates, crash=crashes)
    def rotate_vault(self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None) -> None:
        """Somebody rotates the key of the vault."""
        device = data.draw(st.sampled_from(self.own()))
        self._do("rotation of a vault", device, lambda: device.client.vault(self.name).rotate(), fate, crash)

    @precondition(lambda self: not self.astray)
    @rule(data=st.data(), fate=fates, crash=crashes)
    def finish_rotation(self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None) -> None:
        """Somebody finishes what may be left of a rotation, and accepts what the device had not read."""
        device = data.draw(st.sampled_from(self.own()))

        def work() -> None:
            device.client.finish_rotation(accept=device.client.finish_rotation().unseen)

        self._do("end of a rotation", device, work, fate, crash)

    @precondition(lambda self: not self.astray)
    @rule(data=st.data(), fate=fates, crash=crashes, removed=st.booleans())
    def recovery_key(
        self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None, *, removed: bool
    ) -> None:
        """Somebody prints a new recovery key, or removes the one that is there."""
        device = data.draw(st.sampled_from(self.own()))

        def work() -> None:
            if removed:
                self.person.with_password(device.client.remove_recovery_key)
            else:
                self.person.recovery_keys.append(self.person.with_password(device.client.make_recovery_key))

        self._do("recovery key", device, work, fate, crash)

    @precondition(lambda self: not self.astray and self.person.recovery_keys)
    @rule(data=st.data(), fate=fates)
    def recover(self, data: st.DataObject, fate: list[str]) -> None:
        """Somebody has forgotten every password, and has a recovery key, of today or of before."""
        device = data.draw(st.sampled_from(self.own()))
        key = data.draw(st.sampled_from(self.person.recovery_keys))
        new, client = self.person.new_password(), device.new_client()

        def work() -> None:
            client.recover(self.person.email, key, new)
            device.go_on_with(client)

        self._do("recovery", device, work, fate, None)

    # Agents

    def _token(self, collection: str | None, *, writes: bool) -> str:
        owner = self.own()[0]
        self._attended(owner)
        vault = owner.client.vault(self.name)
        place = vault if collection is None else vault.collection(collection)
        # A replica may hold what was written before a rotation.
        return place.token("an agent", permissions=None if writes else ["read"], older_keys=True)

    @precondition(lambda self: not self.astray and len(self.devices) - len(self.own()) < MOST_AGENTS)
    @rule(agent=agents)
    def hire(self, agent: tuple[str | None, bool]) -> None:
        """An agent comes, with a token and no file."""
        self._hire(agent[0], writes=agent[1])

    def _hire(self, collection: str | None, *, writes: bool) -> None:
        token = self._token(collection, writes=writes)
        self.devices.append(self.agent(token, collection, writes=writes))
        self._attended(self.devices[-1])
        self.happened["agent"] += 1

    # People beside the devices

    @rule(data=st.data())
    def attend(self, data: st.DataObject) -> None:
        """Somebody looks after a device."""
        device = data.draw(st.sampled_from(self.devices))
        if self.astray:
            self._lead_back()
        self._attended(device)

    def _attended(self, device: Any) -> Any:
        """A sync, with somebody who does what the errors say."""
        for _ in range(6):
            try:
                report = device.replica.sync(self.resolver(self.decides(device, "merge")))
            except SHUT_OUT as refused:
                self.happened[f"attended: {type(refused).__name__}"] += 1
                if isinstance(device, Agent):
                    device.take(self._token(device.collection, writes=device.writes))
                else:
                    self._logged_in(device)
            except CredentialsRolledBack:
                self.happened["attended: CredentialsRolledBack"] += 1
                device.mend()
            else:
                device.restores = self.restores
                return report
        raise AssertionError("whatever one does, the device does not sync")

    def _logged_in(self, device: OwnDevice) -> None:
        try:
            device.log_in_again()
        except CredentialsRolledBack:
            self.happened["login: CredentialsRolledBack"] += 1
            device.mend()

    def _lead_back(self) -> None:
        """After a restore: first the device that has seen the most."""
        first = max(self.own(), key=lambda device: device.seen)
        self._attended(first)
        for key in first.client.api_keys():  # those that had been revoked are there again
            first.client.revoke_api_key(key.uid)
        self.astray = False

    @rule(data=st.data(), _none=st.none())
    def begin_anew(self, data: st.DataObject, _none: None) -> None:
        """A device is lost that has sent everything, and another begins with nothing."""
        device = data.draw(st.sampled_from(self.devices))
        if self.astray:
            self._lead_back()
        if device.replica.pending or device.replica.conflicts() or not self._is_spare(device):
            return
        epochs = device.epochs()
        device.path = self._path()
        if isinstance(device, Agent):
            device.begin_again()
        else:
            device.replica.close()
            device.client = self.person.log_in(device.new_client())
            device.replica = device._open()
        self._attended(device)
        if epochs != device.epochs():
            self._forget_what_nobody_holds()

    def _is_spare(self, device: Any) -> bool:
        """Whether a device may be lost: of the owner's, none that has seen a restore.

        The keyrings between the backup's and the newest are not on the server any more. A new device cannot learn what
        the newest one follows on, and could not mend another restore.
        """
        return isinstance(device, Agent) or not self.restores

    # The server

    @rule(_none=st.none())
    def kill(self, _none: None) -> None:
        """The server is killed and started again."""
        self.server.kill()

    @rule(_none=st.none())
    def keep(self, _none: None) -> None:
        """The operator makes a backup."""
        self.server.backup()
        self.kept = True

    @precondition(lambda self: self.kept and self.restores < MOST_RESTORES)
    @rule(_none=st.none())
    def go_back(self, _none: None) -> None:
        """The operator restores it. What nobody holds any more is lost, and nothing else."""
        self.restores += 1
        self.happened["restore"] += 1
        self.undone = self.astray = True
        self.server.restore()
        self.late.clear()
        self._forget_what_nobody_holds()

    # The end

    def settle_one(self, device: ReplicaDevice) -> bool:
        """Sync a device, with somebody beside it who decides what no resolver may; whether that changed anything."""
        report = self._attended(device)
        for conflict in report.conflicts:
            conflict.resolve(self.resolver(self.decides(device, "merge")))
        return bool(report.changed)

    def reaches(self, device: ReplicaDevice, uid: str) -> bool:
        """Whether a device is to show a document."""
        if not isinstance(device, Agent) or device.collection is None:
            return True
        with_all = self.own()[0].replica.vault(self.name).collection(device.collection)
        try:
            with_all.get(uid)
        except DocumentNotFound:
            return False
        return True

    def settle(self) -> None:
        """All agree; then the keys are rotated once more, to the end, and all agree again under the newest keys."""
        self.late.clear()
        if self.astray:
            self._lead_back()
        super().settle()
        owner, agents = self.own()[0], [device for device in self.devices if isinstance(device, Agent)]
        old = self.person.passwords.copy()
        new = self.person.new_password()

        def rotate() -> None:
            _first([*old, new], lambda one: owner.client.rotate_keys(one, new_password=new))

        try:
            rotate()
        except (RolledBack, Tampered):
            if not self.restores:
                raise
            self._in_a_new_process(owner, rotate)
        for agent in agents:
            try:
                agent.replica.sync()
            except Unauthorized:
                continue
            raise AssertionError("an agent goes on after a rotation")
        super().settle()
        reader = self.reader()
        [entry] = reader._core.keyring().vaults
        newest = entry.keys[-1][0]
        assert {seal.read_proof(note.proof).generation for note in reader.vault(self.name)} <= {newest}

    def teardown(self) -> None:
        """Whatever happened, it ends well."""
        if not hasattr(self, "devices"):
            return
        try:
            self.settle()
            self.happened["example"] += 1
            self.person.with_password(self.own()[0].client.delete_account)
        finally:
            for device in self.devices:
                device.replica.close()
            self.folder.cleanup()


def _first(passwords: list[str], action: Callable[[str], Any]) -> Any:
    """Do something with the first password that is right, the newest first."""
    for password in reversed(passwords):
        try:
            return action(password)
        except InvalidCredentials:
            continue
    raise InvalidCredentials
