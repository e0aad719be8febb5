"""Any interleaving of several devices, a network that loses, a server that restarts, a clock that jumps."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from strongroom import create_server, identifiers
from strongroom.actions import accounts
from strongroom.model import Origin
from strongroom.wire import Register
from tests.conftest import SECRET, START, Clock
from tests.security.asking import ask
from tests.sync.device import Device, Lost, Marks, Op, Reply, opened
from tests.sync.oracle import Oracle

COLLECTIONS = ("a", "b")
HOUR, DAY = 3_600_000, 86_400_000
ROUNDS = 60  # of pushing and pulling by all devices, after which they must agree
_people = itertools.count(1)

fates = st.sampled_from(["good", "good", "good", "lost", "never", "late"])
limits = st.sampled_from([1, 2, 3, None])


class Place:
    """A server on a database of its own, which can be ended and started again."""

    def __init__(self, where: str) -> None:
        self.clock = Clock()
        self.runner = asyncio.Runner()
        self._where: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
        self._start()

    def _start(self) -> None:
        lives: dict[str, Any] = {"jwt_access_expiry": "3650d", "jwt_refresh_expiry": "3650d"}
        self.server = create_server(jwt_secret=SECRET, clock=self.clock, **lives, **self._where)

    def restart(self) -> None:
        """End the server, and start another on the same database."""
        self.runner.run(self.server.release())
        self._start()

    def close(self) -> None:
        """End it for good."""
        self.runner.run(self.server.release())
        self.runner.close()

    def person(self) -> str:
        """The access token of somebody new, who needs no password: hashing one takes longer than a whole example."""
        room, now = self.server._room, self.clock()
        user_id, email = identifiers.new_uid(now), f"somebody{next(_people)}@example.com"
        pair = room.mint.pair(user_id, identifiers.new_uid(now), now)
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

    def __init__(self, place: Place, bearer: str, oracle: Oracle) -> None:
        self.place = place
        self.bearer = bearer
        self.oracle = oracle
        self.fate = "good"
        self.late: list[Op] = []

    async def write(self, op: Op) -> Reply:
        """Send one write."""
        if self.fate == "late":
            self.late.append(op)
        if self.fate in {"late", "never"}:
            raise Lost
        reply = await self.deliver(op)
        if self.fate == "lost":
            raise Lost
        return reply

    async def deliver(self, op: Op) -> Reply:
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


class Sync(RuleBasedStateMachine):
    """The devices of one account."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.clock = self.place.clock
        self.clock.now = START
        self.oracle = Oracle(self.clock)
        self.said: dict[str, set[str]] = {}  # every mark that a user made, by document
        self.unsaid: dict[str, set[str]] = {}  # those that a user saw when deleting the document

    @initialize(kinds=st.lists(st.sampled_from([None, None, "a"]), min_size=2, max_size=4), old=st.integers(0, 6))
    def begin(self, kinds: list[str | None], old: int) -> None:
        """Register somebody with vaults and devices."""
        self.wire = Wire(self.place, self.place.person(), self.oracle)
        self.vaults = []
        for name in ("first", "second"):
            made = self.place.ask("POST", "/vault", self.wire.bearer, {"name": name}).body
            assert made["updatedAt"] == self.oracle.draw()
            self.vaults.append(made["uid"])
        self.devices = [Device(f"{n}", self.wire, self.vaults, kind) for n, kind in enumerate(kinds)]
        for n in range(old):
            uid = self._begun(self.devices[n % len(kinds)], self.vaults[n % len(self.vaults)], COLLECTIONS[n % 2])
            while uid in self.devices[n % len(kinds)].busy:
                self.run("good", self.devices[n % len(kinds)].push(uid))

    def run(self, fate: str, step: Any) -> Any:
        """Let a device take one step, under this fate."""
        self.wire.fate = fate
        try:
            return self.place.runner.run(step)
        except Lost:
            return None
        finally:
            self.wire.fate = "good"

    def _begun(self, device: Device, vault: str, collection: str) -> str:
        number = next(self.numbers)
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

    def push_if(self, device: Device, uid: str, fate: str, *, online: bool) -> None:
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
        if device.busy:
            return
        new = Device(device.name, self.wire, self.vaults, device.collection)
        self.devices[self.devices.index(device)] = new
        for _ in range(pages):
            self.run("good", new.pull(self.vaults[0], limit))

    @precondition(lambda self: self.wire.late)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """A request that was taken for lost arrives after all."""
        op = self.wire.late.pop(data.draw(st.integers(0, len(self.wire.late) - 1)))
        self.run("good", self.wire.deliver(op))

    # The server

    @rule()
    def restart(self) -> None:
        """The server is ended and started again."""
        self.place.restart()

    @rule(by=st.sampled_from([1, 7, HOUR, DAY, -1, -HOUR, -DAY]))
    def jump(self, by: int) -> None:
        """The machine's clock is set."""
        self.clock.pass_(by)

    @rule(
        data=st.data(),
        limit=limits,
        collection=st.sampled_from([None, *COLLECTIONS, "c"]),
        deleted=st.sampled_from([None, True, False]),
    )
    def look(self, data: st.DataObject, limit: int | None, collection: str | None, *, deleted: bool | None) -> None:
        """Any list, from any moment, is what the oracle says."""
        moments = sorted(document["updatedAt"] for document in self.oracle.documents.values())
        since = data.draw(st.sampled_from([None, 0, *moments, *(moment - 1 for moment in moments)]))
        vault = data.draw(st.sampled_from(self.vaults))
        query = {"since": since, "limit": limit, "collection": collection}
        shown = None if deleted is None else str(deleted).lower()
        reply = self.run("good", self.wire.get(f"/vaults/{vault}/documents", includeDeleted=shown, **query))
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
            self._kept(uid, said, self.unsaid.get(uid, set()))

    def _agrees(self, device: Device) -> None:
        """The device has what the server has, as far as it follows."""
        live = {
            uid: document
            for uid, document in self.oracle.documents.items()
            if document["deletedAt"] is None and device.collection in {None, document["collection"]}
        }
        held = {uid: entry.base for uid, entry in device.entries.items() if entry.view is not None}
        assert held == live, device.name

    def _kept(self, uid: str, said: set[str], unsaid: set[str]) -> None:
        """What nobody deleted is there; what is there, somebody said who did not know of the deletion."""
        stored = self.oracle.documents.get(uid)
        there: Marks = opened(stored["data"]) if stored is not None and stored["deletedAt"] is None else frozenset()
        assert said - unsaid <= there, f"lost of {uid}: {said - unsaid - there}"
        assert not there or there - unsaid, f"{uid} came back"

    def teardown(self) -> None:
        """Whatever happened, it ends well; and the server holds what the oracle says, to the letter."""
        if not hasattr(self, "devices"):
            return
        self.settle()
        for vault in self.vaults:
            self._holds(vault)
        me = self.place.ask("GET", "/auth/me", self.wire.bearer).body
        assert me["usage"] == self.oracle.usage(*self.vaults)

    def _holds(self, vault: str) -> None:
        """The server has what the oracle has, and has counted it."""
        reply = self.run("good", self.wire.get(f"/vaults/{vault}/documents", since=0))
        assert reply == (200, self.oracle.listed(vault, since=0, limit=None, collection=None, deleted=None))
        shown = self.run("good", self.wire.get(f"/vault/{vault}")).body
        assert {name: shown[name] for name in ("documents", "bytes")} == self.oracle.usage(vault)
