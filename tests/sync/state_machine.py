"""A Hypothesis state machine: several devices in any interleaving, a lossy network, restarts, a clock that jumps."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.kit.clock import START
from tests.kit.servers.restartable_server import RestartableServer
from tests.sync.device import Lost, Marks, ReferenceDevice, opened
from tests.sync.oracle import DAY, Oracle, State
from tests.sync.wire import Wire

COLLECTIONS = ("a", "b")
HOUR = 3_600_000
ROUNDS = 60  # of pushing and pulling by all devices, after which they must agree

fates = st.sampled_from(["good", "good", "good", "lost", "never", "late"])
limits = st.sampled_from([1, 2, 3, None])


class Sync(RuleBasedStateMachine):
    """The devices of one account."""

    server: RestartableServer

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.clock = self.server.clock
        self.clock.now = START
        self.oracle = Oracle(self.clock)
        self.said: dict[str, set[str]] = {}  # every mark that a user made, by document
        self.unsaid: dict[str, set[str]] = {}  # those that a user saw when deleting the document
        self.undone: set[str] = set()  # documents whose deletion the operator may have undone

    @initialize(kinds=st.lists(st.sampled_from([None, None, "a"]), min_size=2, max_size=4), old=st.integers(0, 6))
    def begin(self, kinds: list[str | None], old: int) -> None:
        """Register somebody with vaults and devices."""
        self.wire = Wire(self.server, self.server.person(), self.oracle)
        self.vaults = []
        for name in ("first", "second"):
            made = self.server.ask("POST", "/vault", self.wire.bearer, {"name": name})
            assert (made.status, made.body.get("updatedAt")) == (201, self.oracle.vault())
            self.vaults.append(made.body["uid"])
        self.devices = [self._device(f"{n}", kind) for n, kind in enumerate(kinds)]
        for n in range(old):
            uid = self._begun(self.devices[n % len(kinds)], self.vaults[n % len(self.vaults)], COLLECTIONS[n % 2])
            while uid in self.devices[n % len(kinds)].busy:
                self.run("good", self.devices[n % len(kinds)].push(uid))

    def run(self, fate: str, step: Any) -> Any:
        """Let a device take one step, under this fate."""
        self.wire.fate = fate
        try:
            return self.server.runner.run(step)
        except Lost:
            return None
        finally:
            self.wire.fate = "good"

    def break_off(self) -> None:
        """Connections are lost: whoever had one looks first whether the server is the same."""
        for device in self.devices:
            device.sure = False

    def _device(self, name: str, collection: str | None) -> ReferenceDevice:
        return ReferenceDevice(name, self.wire, self.vaults, collection, self._moved)

    def _moved(self, uid: str, marks: Marks) -> str:
        """What was said under one uid goes on under another."""
        new = f"00000000-0000-7000-8000-{next(self.numbers):012x}"
        self.said[uid] -= marks
        self.said[new] = set(marks)
        return new

    def _begun(self, device: ReferenceDevice, vault: str, collection: str) -> str:
        number = next(self.numbers)  # every example uses these uids again, in another account: neither may notice
        uid, mark = f"00000000-0000-7000-8000-{number:012x}", f"m{number}"
        device.write(vault, device.collection or collection, uid, mark)
        self.said[uid] = {mark}
        return uid

    def shown(self) -> Any:
        """Every document that somebody sees, with the device."""
        return [(device, uid) for device in self.devices for uid in sorted(device.shown())]

    def busy(self) -> Any:
        """Every change that waits, with the device."""
        return [(device, uid) for device in self.devices for uid in device.busy]

    # Users, whose devices push at once or later

    @rule(data=st.data(), collection=st.sampled_from(COLLECTIONS), fate=fates, online=st.booleans())
    def write(self, data: st.DataObject, collection: str, fate: str, *, online: bool) -> None:
        """Somebody begins a document."""
        device = data.draw(st.sampled_from(self.devices))
        uid = self._begun(device, data.draw(st.sampled_from(self.vaults)), collection)
        self.push_if(device, uid, fate, online=online)

    @precondition(shown)
    @rule(data=st.data(), fate=fates, online=st.booleans())
    def edit(self, data: st.DataObject, fate: str, *, online: bool) -> None:
        """Somebody adds to a document."""
        device, uid = data.draw(st.sampled_from(self.shown()))
        mark = f"m{next(self.numbers)}"
        device.edit(uid, mark)
        self.said[uid].add(mark)
        self.push_if(device, uid, fate, online=online)

    @precondition(shown)
    @rule(data=st.data(), fate=fates, online=st.booleans())
    def delete(self, data: st.DataObject, fate: str, *, online: bool) -> None:
        """Somebody deletes a document."""
        device, uid = data.draw(st.sampled_from(self.shown()))
        self.unsaid.setdefault(uid, set()).update(device.delete(uid))
        self.push_if(device, uid, fate, online=online)

    def push_if(self, device: ReferenceDevice, uid: str, fate: str, *, online: bool) -> None:
        """Push a change right away, or leave it in the queue."""
        if online and uid in device.busy:
            self.run(fate, device.push(uid))

    # Devices

    @precondition(busy)
    @rule(data=st.data(), fate=fates)
    def push(self, data: st.DataObject, fate: str) -> None:
        """A device sends one change."""
        device, uid = data.draw(st.sampled_from(self.busy()))
        self.run(fate, device.push(uid))

    @precondition(busy)
    @rule(data=st.data(), fate=fates)
    def push_all(self, data: st.DataObject, fate: str) -> None:
        """A device sends all its changes in a vault as one batch."""
        device, uid = data.draw(st.sampled_from(self.busy()))
        self.run(fate, device.push_all(device.entries[uid].vault))

    @rule(data=st.data(), fate=fates, limit=limits, pages=st.sampled_from([1, 2, 9]))
    def pull(self, data: st.DataObject, fate: str, limit: int | None, pages: int) -> None:
        """A device asks for a page, or for a few."""
        device, vault = data.draw(st.sampled_from(self.devices)), data.draw(st.sampled_from(self.vaults))
        for _ in range(pages):
            if not self.run(fate, device.pull(vault, limit)):
                break

    @rule(data=st.data(), limit=limits, pages=st.integers(0, 3))
    def replace(self, data: st.DataObject, limit: int | None, pages: int) -> None:
        """A device is lost, and another begins with nothing. It may get into the middle of its first download."""
        device = data.draw(st.sampled_from(self.devices))
        if device.busy or not device.sure:
            return
        new = self._device(device.name, device.collection)
        self.devices[self.devices.index(device)] = new
        for _ in range(pages):
            self.run("good", new.pull(self.vaults[0], limit))

    @precondition(lambda self: self.wire.late)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """A request that was taken for lost arrives after all."""
        deliver = self.wire.late.pop(data.draw(st.integers(0, len(self.wire.late) - 1)))
        self.run("good", deliver())

    # The server

    @rule(_none=st.none())  # the rule with the fewest arguments fills the simplest examples: not this
    def restart(self, _none: None) -> None:
        """The server is ended and started again."""
        self.server.restart()
        self.break_off()

    @rule(by=st.sampled_from([1, 7, HOUR, DAY, -1, -HOUR, -DAY]))
    def jump(self, by: int) -> None:
        """The machine's clock is set."""
        self.clock.pass_(by)

    @rule(days=st.integers(0, 5))
    def throw_away(self, days: int) -> None:
        """Some days pass, and the server throws away what was kept for long enough."""
        self.clock.pass_(days * DAY)
        self.server.throw_away()
        self.oracle.throw_away()

    @precondition(lambda self: self.oracle.documents)
    @rule(data=st.data())
    def remember(self, data: st.DataObject) -> None:
        """What a document was before is what the oracle says, as far as it is kept."""
        uid = data.draw(st.sampled_from(sorted(self.oracle.documents)))
        current = self.oracle.documents[uid]
        path = f"/vaults/{current['vaultUid']}/documents/{uid}/versions"
        assert self.run("good", self.wire.get(path)) == (200, {"versions": self.oracle.history(uid)})
        kept = {one["version"]: one for one in [*self.oracle.versions.get(uid, []), current]}
        version = data.draw(st.integers(1, current["version"]))
        reply = self.run("good", self.wire.get(f"{path}/{version}"))
        if version in kept:
            assert (reply.status, kept[version] | reply.body) == (200, kept[version])
        else:
            assert (reply.status, reply.code) == (404, "version_not_found")

    @rule(
        data=st.data(),
        limit=limits,
        collection=st.sampled_from([None, *COLLECTIONS, "c"]),
        deleted=st.sampled_from([None, "true", "false", "only"]),
    )
    def look(self, data: st.DataObject, limit: int | None, collection: str | None, deleted: str | None) -> None:
        """Any list, from any moment, is what the oracle says."""
        moments = sorted(document["updatedAt"] for document in self.oracle.documents.values())
        since = data.draw(st.sampled_from([None, 0, *moments, *(moment - 1 for moment in moments)]))
        vault = data.draw(st.sampled_from(self.vaults))
        query = {"since": since, "limit": limit, "collection": collection}
        shown = {"deleted" if deleted == "only" else "includeDeleted": deleted}
        reply = self.run("good", self.wire.get(f"/vaults/{vault}/documents", **shown, **query))
        assert reply == (200, self.oracle.listed(vault, deleted=deleted, **query))

    def settle(self) -> None:
        """Once the network works, all devices come to agree with the server, and nothing is lost or comes back."""
        for _ in range(ROUNDS):
            before = self.oracle.moment
            for device in self.devices:
                for uid in device.busy:
                    self.run("good", device.push(uid))
                for vault in device.vaults:
                    while self.run("good", device.pull(vault, None)):
                        pass
            if self.oracle.moment == before and not any(device.busy for device in self.devices):
                break
        else:
            raise AssertionError("the devices do not come to an end")
        for device in self.devices:
            self._agrees(device)
        for uid, said in self.said.items():
            stored = self.oracle.documents.get(uid)
            there = frozenset() if stored is None or stored["deletedAt"] is not None else opened(stored["data"])
            self._kept(uid, said, self.unsaid.get(uid, set()), there)

    def _agrees(self, device: ReferenceDevice) -> None:
        """The device has what the server has, as far as it follows."""
        live = {
            uid: document
            for uid, document in self.oracle.documents.items()
            if document["deletedAt"] is None and device.collection in {None, document["collection"]}
        }
        held = {uid: entry.base for uid, entry in device.entries.items() if entry.view is not None}
        assert held == live, device.name

    def _kept(self, uid: str, said: set[str], unsaid: set[str], there: Marks) -> None:
        """What nobody deleted is there; what is there, somebody said who did not know of the deletion."""
        assert said - unsaid <= there, f"lost of {uid}: {said - unsaid - there}"
        assert uid in self.undone or not there or there - unsaid, f"{uid} came back"

    def teardown(self) -> None:
        """Whatever happened, it ends well; and the server holds what the oracle says, to the letter."""
        if not hasattr(self, "devices"):
            return
        self.settle()
        for vault in self.vaults:
            self._holds(vault)
        me = self.server.ask("GET", "/auth/me", self.wire.bearer).body
        assert me["usage"] == self.oracle.usage(*self.vaults)

    def _holds(self, vault: str) -> None:
        """The server has what the oracle has, and has counted it."""
        reply = self.run("good", self.wire.get(f"/vaults/{vault}/documents", since=0))
        assert reply == (200, self.oracle.listed(vault, since=0, limit=None, collection=None, deleted=None))
        shown = self.run("good", self.wire.get(f"/vault/{vault}")).body
        counted = self.oracle.usage(vault)
        assert (shown["documents"], shown["bytes"]) == (counted["documents"], counted["bytes"])


class Restored(Sync):
    """The same, with an operator who once goes back to a backup."""

    kept: State | None = None
    restored = False

    @precondition(lambda self: self.kept is None)
    @rule()
    def keep(self) -> None:
        """The operator makes a backup."""
        self.server.backup()
        self.kept = self.oracle.state()
        self.break_off()

    @precondition(lambda self: self.kept is not None and not self.restored)
    @rule()
    def go_back(self) -> None:
        """The operator restores it. What nobody holds any more is lost, and nothing else."""
        assert self.kept is not None
        self.restored = True
        self.server.restore()
        self.oracle.go_back(self.kept)
        self.wire.late.clear()
        self.break_off()
        for uid, said in self.said.items():
            held = [device.entries[uid].held for device in self.devices if uid in device.entries]
            stored = self.oracle.documents.get(uid)
            said.intersection_update(frozenset().union(*held, opened(stored["data"]) if stored is not None else ()))
        self.undone = set(self.said)
