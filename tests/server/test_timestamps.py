"""Timestamps go up whatever the machine's clock does, and a cursor misses nothing and repeats nothing."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any

from strongroom.rules import DAY, HOUR
from tests.kit.asynchronous import async_test
from tests.kit.network.event_stream import following
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of

JUMPS = (0, -HOUR, 1, DAY, -HOUR, -DAY, 5, -30 * DAY, 400 * DAY, -1)
PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}


class Reader:
    """Follows one vault by its cursor, in pages of any size, and keeps every change that it is shown."""

    def __init__(self, person: Person, vault: str, limit: int | None) -> None:
        self.person, self.vault, self.limit = person, vault, limit
        self.since = 0
        self.seen: list[tuple[str, int, int]] = []

    async def poll(self) -> None:
        """Ask until there is no more."""
        more = True
        while more:
            limit = f"&limit={self.limit}" if self.limit else ""
            page = (await self.person("GET", f"/vaults/{self.vault}/documents?since={self.since}{limit}")).json()
            rows = page["documents"]
            assert [row["updatedAt"] for row in rows] == sorted(row["updatedAt"] for row in rows)
            assert all(row["updatedAt"] > self.since for row in rows)
            self.seen += [(row["uid"], row["version"], row["updatedAt"]) for row in rows]
            self.since, more = page["next"], page["hasMore"]


class Writer:
    """Changes one vault in every way, and remembers what was acknowledged, in order."""

    def __init__(self, person: Person, vault: str) -> None:
        self.person, self.vault = person, vault
        self.acknowledged: list[tuple[str, int, int]] = []
        self.versions: dict[str, int] = {}
        self.chance = random.Random(vault)  # noqa: S311

    async def write(self) -> None:
        """A create, a put, a delete or a batch of them."""
        path = f"/vaults/{self.vault}"
        operations = [self._operation() for _ in range(self.chance.choice((1, 1, 1, 4)))]
        if len(operations) > 1:
            answer = await self.person("POST", f"{path}/batch", {"operations": operations})
            self._noted(answer, answer.json().get("results", []))
            return
        [operation] = operations
        body = {key: value for key, value in operation.items() if key != "op"}
        if operation["op"] == "create":
            answer = await self.person("POST", f"{path}/documents", body)
        else:
            method = {"put": "PUT", "delete": "DELETE"}[operation["op"]]
            answer = await self.person(method, f"{path}/documents/{body.pop('uid')}", body)
        self._noted(answer, [answer.json()])

    def _noted(self, answer: Any, results: list[Any]) -> None:
        assert answer.is_success, answer.text
        self.acknowledged += [(one["uid"], one["version"], one["updatedAt"]) for one in results]

    def _operation(self) -> dict[str, Any]:
        if not self.versions or self.chance.random() < 0.4:
            uid = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
            self.versions[uid] = 1
            return {"op": "create", "uid": uid, "collection": "c", "data": "AAAA"}
        uid = self.chance.choice(list(self.versions))
        version = self.versions[uid]
        if self.chance.random() < 0.2:
            del self.versions[uid]
            return {"op": "delete", "uid": uid, "version": version}
        self.versions[uid] = version + 1
        return {"op": "put", "uid": uid, "data": "B" * 4 * version, "version": version}


@async_test
async def test_the_machines_clock_may_jump(open_server: OpenServer, where: str) -> None:
    """Back an hour, forward a day, and worse, between writes and across restarts."""
    async with open_server(**PATIENT) as server:
        person = await server.person()
        vaults = [(await person.vault())["uid"] for _ in range(2)]
    readers = [Reader(person, vault, limit) for vault in vaults for limit in (None, 1, 3)]
    writers = [Writer(person, vault) for vault in vaults]
    order: list[int] = []
    for jump in JUMPS:
        async with open_server(**PATIENT) as server:
            person.http = server.http
            server.clock.pass_(jump)
            for n in range(6):
                writer = writers[n % 2]
                before = len(writer.acknowledged)
                await writer.write()
                order += [moment for *_, moment in writer.acknowledged[before:]]
            renamed = await person("PUT", f"/vault/{vaults[0]}", {"name": str(uuid.uuid4())}, headers={"if-match": "*"})
            order.append(renamed.json()["updatedAt"])
            await asyncio.gather(*(reader.poll() for reader in readers))
            server.clock.pass_(-jump // 2)
            await asyncio.gather(*(writer.write() for writer in writers))
            order += sorted(writer.acknowledged[-1][2] for writer in writers)
            await asyncio.gather(*(reader.poll() for reader in readers))
    assert order == sorted(set(order)), "moments are not in the order in which the writes were acknowledged"
    for reader in readers:
        [writer] = [writer for writer in writers if writer.vault == reader.vault]
        assert len(reader.seen) == len(set(reader.seen))
        assert set(reader.seen) <= set(writer.acknowledged)
        latest = {uid: (version, moment) for uid, version, moment in writer.acknowledged}
        assert {uid: (version, moment) for uid, version, moment in reader.seen} == latest
    everything = sorted((moment, uid, version) for one in writers for uid, version, moment in one.acknowledged)
    async with open_server(**PATIENT) as server, following(server, person, "/events?since=0") as stream:
        events = [await stream.next() for _ in range(len(everything) + len(vaults) + len(JUMPS))]
        told = [event for event in events if event.name == "document"]
        assert [(event.id, event.data["uid"], event.data["version"]) for event in told] == everything
        assert stream.waiting == []
    tables = await rows_of(where)
    moments = [row[8] for row in tables["documents"]] + [row[8] for row in tables["versions"]]
    moments += [row[1] for row in tables["vault_changes"]]
    assert len(set(moments)) == len(moments)
    assert tables["ledgers"][0][1] == max(moments)
