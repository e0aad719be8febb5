"""Any interleaving of several replicas, a network that loses, processes that end at any step, a server that restarts.

What a document says is a set of marks, and merging is joining the sets. So "nothing is lost" can be checked.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strongroom.client import Client, Conflict, Document, Resolution, keep_both, keep_mine, keep_theirs, merged
from strongroom.errors import DocumentNotFound, Refusal, Unavailable
from tests.kit.clients.crew import DAY, Crew
from tests.kit.clock import START
from tests.kit.network.unreliable_network import ReplicaDevice
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.restartable_server import RestartableServer

ROUNDS = 30  # of syncs by all devices, after which they must agree
COLLECTIONS = ("a", "b")

fates = st.lists(st.sampled_from(["good", "good", "good", "lost", "never", "late", "off"]), max_size=8)
decisions = st.sampled_from(["merge", "merge", "mine", "theirs", "both", ""])
crashes = st.one_of(st.none(), st.none(), st.tuples(st.integers(0, 14), st.booleans()))


def marks(document: Document) -> frozenset[str]:
    """What a document says; a deleted one nothing."""
    return frozenset() if document.deleted else frozenset(document.value)


class Converge(RuleBasedStateMachine):
    """The replicas of one account."""

    crew: Crew
    numbers = itertools.count(1)
    passing: tuple[type[Refusal], ...] = (Unavailable,)  # what a sync may end with, and the next one not

    def __init__(self) -> None:
        super().__init__()
        self.server.clock.now = START
        self.said: set[str] = set()  # every mark that a user made
        self.unsaid: set[str] = set()  # those that a user saw when deleting a document, or decided against
        self.forked: set[str] = set()  # those in more than one document, or that were decided about more than once
        self.undone = False
        self._shown: Any = None

    @property
    def server(self) -> RestartableServer:
        """The server."""
        return self.crew.server

    @property
    def late(self) -> list[Callable[[], Any]]:
        """Requests that were taken for lost, and may arrive after all."""
        return self.crew.late

    @initialize(count=st.integers(2, 3), old=st.integers(0, 5))
    def begin(self, count: int, old: int) -> None:
        """Make a vault, and devices that have nothing."""
        self.late.clear()
        self.name = f"vault {next(self.numbers)}"
        self.owner = self.crew.clients[0]
        vault = self.owner.vault(self.name, create=True)
        for number in range(old):
            mark = self._mark()
            vault.collection(COLLECTIONS[number % 2]).create([mark])
        self.folder = tempfile.TemporaryDirectory()
        self.devices = [
            self.crew.device(at, str(Path(self.folder.name) / f"{at}")) for at in range(len(self.crew.clients[:count]))
        ]
        for device in self.devices:
            device.replica.sync()

    def _mark(self) -> str:
        mark = f"m{next(self.numbers):09}"  # of one length: they sort as they were made, whatever came before
        self.said.add(mark)
        return mark

    def _notes(self, device: ReplicaDevice, name: str) -> Any:
        return device.replica.vault(self.name).collection(name)

    def documents(self, device: ReplicaDevice) -> Iterable[Document]:
        """Every document that a device shows."""
        return device.replica.vault(self.name)

    def writers(self) -> list[ReplicaDevice]:
        """The devices that may write."""
        return self.devices

    def reader(self) -> Client:
        """A client that says what the server has."""
        return self.owner

    def shown(self) -> Any:
        """Every document that a writer sees, with the device, in an order that does not depend on uids."""
        if self._shown is None:
            found = [(device, note) for device in self.writers() for note in self.documents(device)]
            self._shown = sorted(found, key=lambda pair: (self.devices.index(pair[0]), sorted(marks(pair[1]))))
        return self._shown

    @invariant()
    def look_again(self) -> None:
        """After each rule, documents are read anew: once, however many preconditions ask for them."""
        self._shown = None

    # Users

    @rule(data=st.data(), collection=st.sampled_from(COLLECTIONS))
    def write(self, data: st.DataObject, collection: str) -> None:
        """Somebody begins a document."""
        device = data.draw(st.sampled_from(self.writers()))
        self._notes(device, collection).create([self._mark()])

    @precondition(shown)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        """Somebody adds to a document."""
        device, note = data.draw(st.sampled_from(self.shown()))
        self._notes(device, note.collection).replace(note, [*note.value, self._mark()])

    @precondition(shown)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Somebody deletes a document."""
        device, note = data.draw(st.sampled_from(self.shown()))
        self._notes(device, note.collection).delete(note)
        self.unsaid |= marks(note)

    @precondition(lambda self: self._shared())
    @rule(data=st.data())
    def clash(self, data: st.DataObject) -> None:
        """Two people add to one document, each on a device of their own."""
        uid = data.draw(st.sampled_from(self._shared()))
        for device, note in self.shown():
            if note.uid == uid:
                self._notes(device, note.collection).replace(note, [*note.value, self._mark()])

    def _shared(self) -> list[str]:
        """The documents that more than one device shows, in an order that does not depend on uids."""
        uids = [note.uid for _, note in self.shown()]
        return [uid for uid in dict.fromkeys(uids) if uids.count(uid) > 1]

    @precondition(shown)
    @rule(data=st.data(), when=st.sampled_from(["before", "after"]))
    def edit_and_end(self, data: st.DataObject, when: str) -> None:
        """Somebody adds to a document; the process ends just before or after it is sent; somebody adds to it again."""
        device, note = data.draw(st.sampled_from(self.shown()))
        note = self._notes(device, note.collection).replace(note, [*note.value, self._mark()])
        device.world.ends_at_a_batch = when
        self._sync(device, "", [], None)
        device.world.ends_at_a_batch = ""
        try:
            again = self._notes(device, note.collection).get(note.uid)
        except DocumentNotFound:
            return
        self._notes(device, note.collection).replace(again, [*again.value, self._mark()])

    # Devices

    def resolver(self, how: str) -> Callable[[Conflict], Resolution]:
        """One who decides conflicts, and whose decisions count as what users said."""

        def join(conflict: Conflict) -> Resolution:
            mine, theirs = marks(conflict.mine), marks(conflict.theirs)
            if how == "reader":
                self._decided_against((mine - theirs).difference(*self._held(self.writers())))
                return keep_theirs(conflict)
            if conflict.mine.deleted and conflict.base is not None and theirs == marks(conflict.base):
                return keep_mine(conflict)  # they say nothing new: a rotation has sealed it anew
            if conflict.mine.deleted or mine <= frozenset(conflict.theirs.value or ()):
                return keep_theirs(conflict)  # it says all that is here, or said so when it was deleted (docs/sync.md)
            if conflict.theirs.deleted:
                return keep_mine(conflict)
            if how == "mine":
                self._decided_against(theirs - mine)
                return keep_mine(conflict)
            if how == "theirs":
                self._decided_against(mine - theirs)
                return keep_theirs(conflict)
            if how == "both":
                self.forked |= mine | theirs
                return keep_both(conflict)
            return merged(sorted(mine | theirs))

        return join

    def _decided_against(self, some: frozenset[str]) -> None:
        """They need not be there in the end; and where a later decision was for them, they may."""
        self.unsaid |= some
        self.forked |= some

    @rule(data=st.data(), fate=fates, crash=crashes, how=decisions)
    def sync(self, data: st.DataObject, fate: list[str], crash: tuple[int, bool] | None, how: str) -> None:
        """A device syncs, as far as it gets."""
        device = data.draw(st.sampled_from(self.devices))
        self._sync(device, how, fate, crash)

    def _sync(self, device: ReplicaDevice, how: str, fate: list[str], crash: tuple[int, bool] | None) -> Any:
        def work() -> Any:
            try:
                return device.replica.sync(self.resolver(self.decides(device, how)) if how else None)
            except self.passing:
                return None

        return device.run(work, fate, crash, PASSWORD)

    def decides(self, device: ReplicaDevice, how: str) -> str:  # noqa: ARG002
        """How conflicts on a device are decided."""
        return how

    @rule(data=st.data())
    def end_process(self, data: st.DataObject) -> None:
        """A process ends, and another opens the file."""
        data.draw(st.sampled_from(self.devices)).begin_again(PASSWORD)

    @rule(data=st.data(), _none=st.none())  # the rule with the fewest arguments fills the simplest examples: not this
    def begin_anew(self, data: st.DataObject, _none: None) -> None:
        """A device is lost that has sent everything, and another begins with nothing."""
        device = data.draw(st.sampled_from(self.devices))
        if device.replica.pending or device.replica.conflicts():
            return
        epochs = device.epochs()
        device.replica.close()
        device.path = f"{device.path}+"
        device.replica = device._open()
        device.replica.sync()
        if epochs != device.epochs():
            self._forget_what_nobody_holds()  # it was lost after a restore, before it could bring anything back

    def _forget_what_nobody_holds(self) -> None:
        """What is on no device and not on the server is lost, and nothing else."""
        self._shown = None
        held = self._held(self.devices) + [marks(note) for note in self.reader().vault(self.name)]
        self.said &= frozenset().union(*held)

    def _held(self, devices: Sequence[ReplicaDevice]) -> list[frozenset[str]]:
        """What these devices show, or have in conflicts."""
        shown = [marks(note) for device in devices for note in self.documents(device)]
        return shown + [
            marks(one)
            for device in devices
            for conflict in device.replica.conflicts()
            for one in (conflict.mine, conflict.theirs)
        ]

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """A request that was taken for lost arrives after all."""
        self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))()

    # The server

    @rule(_none=st.none())  # the rule with the fewest arguments fills the simplest examples: not this
    def restart(self, _none: None) -> None:
        """The server is ended and started again."""
        self.server.restart()

    @rule(by=st.sampled_from([1, 3_600_000, DAY, -3_600_000]))
    def jump(self, by: int) -> None:
        """The machine's clock is set."""
        self.server.clock.pass_(by)

    @rule(days=st.integers(0, 5))
    def throw_away(self, days: int) -> None:
        """Some days pass, and the server throws away what was kept for long enough."""
        self.server.clock.pass_(days * DAY)
        self.server.throw_away()
        for device in self.devices:
            self.forked |= self._beyond_proof(device)

    def _beyond_proof(self, device: ReplicaDevice) -> set[str]:
        """What a device sent, without an answer, of documents whose content and history the server has thrown away.

        Nothing is left to tell whether the one who deleted such a document had seen it, so the device keeps it.
        """
        vault = self.reader().vault(self.name)
        found: set[str] = set()
        for note in self.documents(device):
            if device.was_sent(note.vault, note.uid):
                with contextlib.suppress(DocumentNotFound):
                    stored = vault.collection(note.collection).get(note.uid, deleted=True)
                    found |= marks(note) if stored.deleted and stored.value is None else set()
        return found

    def settle(self) -> None:
        """Once the network works, all devices come to agree with the server, and nothing is lost or comes back."""
        for _ in range(ROUNDS):
            changes = [self.settle_one(device) for device in self.devices]
            if not any(changes):
                break
        else:
            raise AssertionError("the devices do not come to an end")
        stored = {note.uid: marks(note) for note in self.reader().vault(self.name)}
        for device in self.devices:
            assert device.replica.pending == 0
            here = {note.uid: marks(note) for note in self.documents(device)}
            assert here == {uid: stored[uid] for uid in stored if self.reaches(device, uid)}
        there: frozenset[str] = frozenset().union(*stored.values())
        assert self.said - self.unsaid <= there, f"lost: {self.said - self.unsaid - there}"
        for found in stored.values():
            assert self.undone or found & self.forked or found - self.unsaid, f"{sorted(found)} came back"

    def settle_one(self, device: ReplicaDevice) -> bool:
        """Sync a device; whether that changed anything."""
        return bool(self._sync(device, "merge", [], None).changed)

    def reaches(self, device: ReplicaDevice, uid: str) -> bool:  # noqa: ARG002
        """Whether a device is to show a document."""
        return True

    def teardown(self) -> None:
        """Whatever happened, it ends well."""
        if not hasattr(self, "devices"):
            return
        try:
            self.owner = self.devices[0].client
            self.settle()
            self.owner.vault(self.name).delete()
            for device in self.devices:
                device.replica.sync()
            self.crew.clients[: len(self.devices)] = [device.client for device in self.devices]
        finally:
            for device in self.devices:
                device.replica.close()
            self.folder.cleanup()


class ConvergeRestored(Converge):
    """The same, with an operator who once goes back to a backup."""

    kept = restored = False

    @precondition(lambda self: not self.kept)
    @rule()
    def keep(self) -> None:
        """The operator makes a backup."""
        self.server.backup()
        self.kept = True

    @precondition(lambda self: self.kept and not self.restored)
    @rule()
    def go_back(self) -> None:
        """The operator restores it. What nobody holds any more is lost, and nothing else."""
        self.restored = self.undone = True
        self.server.restore()
        self.late.clear()
        self.devices[0].begin_again(PASSWORD)  # a process that has seen nothing yet takes the server as it is
        self.owner = self.devices[0].client
        self._forget_what_nobody_holds()

    def settle_one(self, device: ReplicaDevice) -> bool:
        """Sync a device, with somebody beside it who decides what no resolver may; whether that changed anything."""
        report = self._sync(device, "merge", [], None)
        for conflict in report.conflicts:
            conflict.resolve(self.resolver("merge"))
        return bool(report.changed)
