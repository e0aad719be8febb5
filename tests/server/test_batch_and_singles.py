"""The same operations, one by one and as a batch, come to the same: results, refusals and what is stored."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.kit.people.person import Person
from tests.kit.samples import rounds
from tests.kit.servers.in_process import InProcessServer, OpenServer

Json = dict[str, Any]
_numbers = itertools.count(1)
PLACES = 3  # uids that an example plays with

_place = st.integers(0, PLACES - 1)
_data = st.sampled_from(["AAAA", "BBBB", "CCCCCC"])
_hmac = st.sampled_from([None, "é"])
_version = st.integers(0, 4)
_create = st.fixed_dictionaries(
    {"op": st.just("create"), "collection": st.sampled_from(["in", "out"]), "data": _data, "hmac": _hmac},
    optional={"uid": _place},
)
_put = st.fixed_dictionaries({"op": st.just("put"), "uid": _place, "data": _data, "hmac": _hmac, "version": _version})
_delete = st.fixed_dictionaries({"op": st.just("delete"), "uid": _place}, optional={"version": _version})
_named = _create.map(lambda operation: {"uid": 0, **operation})
_operations = st.lists(_create | _put | _delete, min_size=1, max_size=8)
_caller = st.sampled_from(["user", "write", "writes and deletes", "in"])
SCOPES: dict[str, Json] = {
    "write": {"permissions": ["write"]},
    "writes and deletes": {"permissions": ["write", "delete"]},
    "in": {"collections": ["in"]},
}
TIMES = ("createdAt", "updatedAt", "deletedAt")


class Twin:
    """One of two people who have the same uids, and a bearer of each kind."""

    def __init__(self, person: Person, bearers: dict[str, str]) -> None:
        self.person = person
        self.bearers = bearers

    @classmethod
    async def make(cls, server: InProcessServer) -> Twin:
        person = await server.person()
        keys = {name: await person.key(**scope) for name, scope in SCOPES.items()}
        return cls(person, {"user": person.access, **keys})

    async def single(self, vault: str, operation: Json, caller: str) -> tuple[int, Json]:
        """Do one operation by itself."""
        path = f"/vaults/{vault}/documents"
        body = {key: value for key, value in operation.items() if key != "op"}
        bearer = self.bearers[caller]
        if operation["op"] == "create":
            answer = await self.person("POST", path, body, bearer=bearer)
        else:
            uid = body.pop("uid")
            method = "PUT" if operation["op"] == "put" else "DELETE"
            answer = await self.person(method, f"{path}/{uid}", body, bearer=bearer)
        return answer.status_code, answer.json()

    async def state(self, vault: str) -> tuple[list[Json], Json]:
        """All that is stored, as its owner sees it."""
        documents = (await self.person("GET", f"/vaults/{vault}/documents?since=0")).json()["documents"]
        return documents, (await self.person("GET", f"/vault/{vault}")).json()


def timeless(results: list[Json], state: tuple[list[Json], Json], made: dict[str, str]) -> Any:
    """Results and state with each moment replaced by its rank, and each uid of the server's making by its place."""
    documents, vault = state
    rows = [*results, *documents]
    ranks = {moment: n for n, moment in enumerate(sorted({row[t] for row in rows for t in TIMES if row[t]}))}
    shown = [{**row, **{t: ranks.get(row[t]) for t in TIMES}, "uid": made.get(row["uid"], row["uid"])} for row in rows]
    latest = max((row["updatedAt"] for row in documents), default=vault["updatedAt"])
    return shown, vault["documents"], vault["bytes"], vault["updatedAt"] == latest


def bare(operation: Json, result: Json) -> Json:
    """A single result as a batch shows it: a tombstone without its ciphertext."""
    shown = {key: value for key, value in result.items() if key != "success"}
    return {**shown, "data": "", "hmac": None} if operation["op"] == "delete" else shown


async def compare(one: Twin, two: Twin, before: list[Json], operations: list[Json], caller: str) -> None:
    """Prepare both alike, then do the operations one by one here and together there."""
    number = next(_numbers)
    uids = [str(uuid.UUID(int=number * 10 + place, version=4)) for place in range(PLACES + 1)]
    vault = uids[-1]
    before, operations = (
        [{**op, "uid": uids[op["uid"]]} if "uid" in op else op for op in ops] for ops in (before, operations)
    )
    for twin in (one, two):
        await twin.person.vault(uid=vault)
        for operation in before:
            await twin.single(vault, operation, "user")
    start = await two.state(vault)
    singles = [await one.single(vault, operation, caller) for operation in operations]
    answer = await two.person("POST", f"/vaults/{vault}/batch", {"operations": operations}, bearer=two.bearers[caller])
    failed = [(n, body["error"]) for n, (status, body) in enumerate(singles) if status >= 400]
    if any(status == 403 for status, _ in singles):
        assert answer.status_code == 403, answer.text
        assert await two.state(vault) == start
    elif failed:
        assert answer.status_code == 409, answer.text
        told = answer.json()["error"]["details"]["operations"]
        assert [(t["index"], t["code"], t["message"]) for t in told] == [
            (n, error["code"], error["message"]) for n, error in failed
        ]
        stored = {row["uid"]: row for row in start[0] if caller != "in" or row["collection"] == "in"}
        for t in told:
            row = stored.get(t["uid"])
            assert (t["version"], t["updatedAt"]) == ((row["version"], row["updatedAt"]) if row else (None, None))
        assert await two.state(vault) == start
    else:
        assert answer.status_code == 200, answer.text
        mine = [bare(op, body) for op, (_, body) in zip(operations, singles, strict=True)]
        theirs = answer.json()["results"]
        unnamed = [n for n, op in enumerate(operations) if "uid" not in op]
        made = {rows[n]["uid"]: f"made {n}" for rows in (mine, theirs) for n in unnamed}
        assert timeless(mine, await one.state(vault), made) == timeless(theirs, await two.state(vault), made)


def test_one_by_one_and_together_come_to_the_same(open_server: OpenServer) -> None:
    """Any operations, by any caller, on anything that was there before."""
    with asyncio.Runner() as runner:
        block = open_server()
        server = runner.run(block.__aenter__())
        one, two = runner.run(Twin.make(server)), runner.run(Twin.make(server))

        @settings(max_examples=rounds(40, 400), database=None)
        @given(before=st.lists(_named | _put | _delete, max_size=6), operations=_operations, caller=_caller)
        def check(before: list[Json], operations: list[Json], caller: str) -> None:
            runner.run(compare(one, two, before, operations, caller))

        try:
            check()
        finally:
            runner.run(block.__aexit__(None, None, None))
