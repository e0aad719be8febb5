"""Counts are exact and quotas hold to the last byte under concurrent writes; timestamps are unique and in order."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any

import httpx2
import pytest

from strongroom import rules
from strongroom.model import CountedUsage
from strongroom.rules import DAY
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of
from tests.server.account_usage import kept_bytes, recounted_kept_bytes, usage

DOCUMENT = {"collection": "c", "data": "AAAA"}


async def vaults(person: Person) -> list[dict[str, Any]]:
    """The vaults as they are listed."""
    found: list[dict[str, Any]] = (await person("GET", "/vault")).json()["vaults"]
    return found


async def recounted(where: str) -> dict[tuple[str, str], CountedUsage]:
    """What each vault holds, counted row by row behind the server's back."""
    tables = await rows_of(where)
    found: dict[tuple[str, str], CountedUsage] = {}
    for owner, uid, _name, data, salt, *_ in tables["vaults"]:
        alive = [row for row in tables["documents"] if (row[0], row[2], row[9]) == (owner, uid, None)]
        texts = [data, salt, *(row[4] for row in alive), *(row[5] for row in alive)]
        size = sum(len(text.encode()) for text in texts if text is not None)
        waiting = {(row[0], row[1]): row[2] for row in tables["deletions"] if row[4] is None}
        own = [row for row in tables["documents"] if (row[0], row[2]) == (owner, uid)]
        rows = sum(256 + len(row[3].encode()) for row in own if row[8] > waiting.get((owner, uid), 0))
        found[owner, uid] = CountedUsage(len(alive), size, recounted_kept_bytes(tables, owner, uid), rows)
    return found


@async_test
async def test_counts_are_exact_whatever_happens(open_server: OpenServer, where: str) -> None:
    """After any mixture of writes, retries and refusals, every vault and every ledger says what a recount says."""
    await mix(open_server, where, history_versions=3)


@async_test
async def test_counts_are_exact_where_trash_and_history_are_full(
    open_server: OpenServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where most of what would be kept does not fit."""
    monkeypatch.setattr(rules, "RETENTION_MINIMUM", 0)
    await mix(open_server, where, quota_bytes=1_200, history_versions=3)


async def mix(open_server: OpenServer, where: str, **settings: Any) -> None:
    """Let two people write anything, and count after it."""
    chance = random.Random(7)  # noqa: S311
    async with open_server(**settings) as server:
        people = [await server.person(), await server.person()]
        for _ in range(150):
            await something(chance, chance.choice(people))
            if chance.random() < 0.03:
                server.clock.pass_(chance.choice((20, 31, 100)) * DAY)
                for person in people:
                    person.access = (await server.login(person.email)).json()["accessToken"]
                await server.purge_expired()
        counts = await recounted(where)
        tables = await rows_of(where)
        assert {(row[0], row[1]): CountedUsage(*row[8:12]) for row in tables["vaults"]} == counts
        for owner, rows in ((row[0], row[5]) for row in tables["ledgers"]):
            assert rows == sum(count.row_bytes for (user_id, _), count in counts.items() if user_id == owner)
        assert sum(count.kept for count in counts.values()) > 1_000
        assert sum(count.documents for count in counts.values()) > 5
        for person in people:
            own = [count for (owner, _), count in counts.items() if owner == person.id]
            total = {"documents": sum(c.documents for c in own), "bytes": sum(c.bytes for c in own)}
            assert await usage(person) == total
            assert await kept_bytes(person) == sum(c.kept for c in own)
            shown = {vault["uid"]: (vault["documents"], vault["bytes"]) for vault in await vaults(person)}
            mine = {uid: count for (owner, uid), count in counts.items() if owner == person.id}
            assert shown == {uid: (count.documents, count.bytes) for uid, count in mine.items()}


async def something(chance: random.Random, person: Person) -> None:
    """One request of any kind, to any thing of this person, good or stale."""
    listed = await vaults(person)
    if not listed or chance.random() < 0.08:
        blob = {"data": "é" * chance.randrange(1, 30), "salt": "AAAA"} if chance.random() < 0.5 else {}
        await person.vault(**blob)
        return
    vault = chance.choice(listed)
    path = f"/vaults/{vault['uid']}/documents"
    documents = (await person("GET", f"{path}?since=0")).json()["documents"]
    data = "A" * chance.randrange(1, 100)
    one: dict[str, Any] = chance.choice(documents) if documents else {"uid": str(uuid.uuid4()), "version": 1}
    version = one["version"] - chance.choice((0, 0, 0, 1))
    match chance.randrange(12):
        case 0 | 1 | 2:
            await person("POST", path, {"collection": "c", "data": data, "hmac": chance.choice((None, "é\0"))})
        case 3:
            await person("POST", path, {"collection": "c", "data": data, "uid": one["uid"]})
        case 4 | 5 | 6 | 7:
            body = {"data": data, "version": version, "hmac": chance.choice((None, "h"))}
            for _ in range(chance.choice((1, 1, 2))):
                await person("PUT", f"{path}/{one['uid']}", body)
        case 8 | 9:
            await person("DELETE", f"{path}/{one['uid']}", {"version": version})
        case 10:
            await person("PUT", f"/vault/{vault['uid']}", {"data": data, "salt": "", "version": vault["version"]})
        case _:
            await person("DELETE", f"/vault/{vault['uid']}", headers={"if-match": f'"{chance.randrange(1, 3)}"'})


@async_test
async def test_moments_are_unique_in_the_account_and_retries_draw_none(open_server: OpenServer, where: str) -> None:
    """Documents of all vaults, and the vaults' own changes, share no moment, even while the machine's time stands."""
    async with open_server() as server:
        person = await server.person()
        one, two = await person.vault(), await person.vault(data="x", salt="")
        body = {**DOCUMENT, "uid": str(uuid.uuid4())}
        for vault in (one, two):
            await asyncio.gather(*(person.document(vault) for _ in range(10)))
        first = await person("POST", f"/vaults/{one['uid']}/documents", body)
        before = await vaults(person)
        again = await person("POST", f"/vaults/{one['uid']}/documents", body)
        assert (first.status_code, again.status_code, first.json()) == (201, 200, again.json())
        assert await vaults(person) == before
        await person("PUT", f"/vault/{one['uid']}", {"name": "other", "version": 1})
        await person("PUT", f"/vault/{two['uid']}", {"name": "third", "data": "y", "salt": "", "version": 1})
        await person("DELETE", f"/vault/{two['uid']}")
        tables = await rows_of(where)
        changes = sorted(row[1:] for row in tables["vault_changes"])
        assert [(uid, kind, version) for _, uid, kind, _, version in changes] == [
            (one["uid"], "created", 1),
            (two["uid"], "created", 1),
            (one["uid"], "renamed", 2),
            (two["uid"], "blob", 2),
            (two["uid"], "deleted", 2),
        ]
        assert [name for *_, name, _ in changes][2:] == ["other", "third", "third"]
        moments = [row[8] for row in tables["documents"]] + [change[0] for change in changes]
        assert len(set(moments)) == len(moments)
        assert tables["ledgers"][0][1] == max(moments) == server.clock.now + 25


@async_test
async def test_a_vault_that_is_made_again_goes_on_with_later_moments(open_server: OpenServer) -> None:
    """A cursor from before its deletion cannot overlook what came after, though the machine's time runs back."""
    async with open_server() as server:
        person = await server.person()
        uid = str(uuid.uuid4())
        vault = await person.vault(uid=uid)
        seen = [(await person.document(vault))["updatedAt"] for _ in range(5)]
        await person("DELETE", f"/vault/{uid}")
        server.clock.pass_(-3_600_000)
        assert (await person.vault(uid=uid))["updatedAt"] > seen[-1]
        await person.document(vault)
        found = (await person("GET", f"/vaults/{uid}/documents?since={seen[-1]}")).json()["documents"]
        assert len(found) == 1


@async_test
async def test_the_same_uid_of_another_account_is_not_counted(open_server: OpenServer) -> None:
    """Two accounts with a vault of one uid: a write moves, counts and deletes its own only."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        uid = str(uuid.uuid4())
        vault = await ann.vault(uid=uid)
        await bob.vault(uid=uid)
        before = await vaults(bob)
        await ann.document(vault)
        assert (await vaults(ann))[0]["documents"] == 1
        assert await vaults(bob) == before
        assert (await ann("DELETE", f"/vault/{uid}")).status_code == 200
        assert (await vaults(ann), await vaults(bob)) == ([], before)


@async_test
async def test_no_two_writers_take_the_last_place(open_server: OpenServer) -> None:
    """Forty at once for ten places: ten are taken, in several vaults and on several processes' worth of locks."""
    async with open_server(quota_documents=10) as server:
        person = await server.person()
        places = [await person.vault() for _ in range(4)]

        async def one(n: int) -> int:
            answer: httpx2.Response = await person("POST", f"/vaults/{places[n % 4]['uid']}/documents", DOCUMENT)
            if answer.status_code == 507:
                error = answer.json()["error"]
                assert error["code"] == "quota_exceeded"
                assert error["details"]["limits"] == {"documents": 10, "bytes": None}
                assert error["details"]["usage"]["documents"] == 10
            return answer.status_code

        statuses = await asyncio.gather(*(one(n) for n in range(40)))
        assert sorted(statuses) == [201] * 10 + [507] * 30
        assert await usage(person) == {"documents": 10, "bytes": 40}


@async_test
async def test_bytes_are_granted_to_the_last(open_server: OpenServer) -> None:
    """Exactly the limit fits; one more does not, by any road; what does not add goes on."""
    async with open_server(quota_bytes=100) as server:
        person = await server.person()
        vault = await person.vault(data="é" * 10, salt="AAAA")
        path = f"/vaults/{vault['uid']}/documents"
        full = await person("POST", path, {"collection": "c", "data": "A" * 74, "hmac": "é"})
        assert (full.status_code, await usage(person)) == (201, {"documents": 1, "bytes": 100})
        uid = full.json()["uid"]
        assert await exceeds_quota(person, "POST", path, {"collection": "c", "data": "A"})
        assert await exceeds_quota(person, "PUT", f"{path}/{uid}", {"data": "A" * 77, "version": 1})
        assert await exceeds_quota(person, "PUT", f"/vault/{vault['uid']}", {"data": "é" * 13, "salt": ""})
        assert await exceeds_quota(person, "POST", "/vault", {"name": "another", "data": "x", "salt": ""})
        assert (await person("POST", "/vault", {"name": "another"})).status_code == 201
        assert (await person("PUT", f"/vault/{vault['uid']}", {"name": "new", "version": 1})).status_code == 200
        assert (await person("PUT", f"{path}/{uid}", {"data": "B" * 76, "version": 1})).status_code == 200
        assert (await person("PUT", f"{path}/{uid}", {"data": "B" * 76, "version": 1})).status_code == 200
        assert (await person("GET", path)).status_code == 200
        gone = await person("DELETE", f"{path}/{uid}")
        assert (gone.status_code, await usage(person)) == (200, {"documents": 0, "bytes": 24})
        assert await exceeds_quota(person, "PUT", f"{path}/{uid}", {"data": "A" * 77, "version": 3})
        assert (await person("PUT", f"{path}/{uid}", {"data": "A" * 76, "version": 3})).status_code == 200
        assert (await person("DELETE", f"/vault/{vault['uid']}")).status_code == 200
        assert await usage(person) == {"documents": 0, "bytes": 0}


async def exceeds_quota(person: Person, method: str, path: str, body: dict[str, Any]) -> bool:
    """Whether a write is refused for lack of room, and moves nothing."""
    before = await vaults(person), await usage(person)
    answer = await person(method, path, body)
    assert before == (await vaults(person), await usage(person))
    return (answer.status_code, answer.json()["error"]["code"]) == (507, "quota_exceeded")


@async_test
async def test_a_lowered_quota_lets_an_account_shrink(open_server: OpenServer) -> None:
    """Who is over the quota may read, delete, and replace by less, but not add."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        made = [await person.document(vault, data="A" * 40) for _ in range(3)]
    async with open_server(quota_documents=1, quota_bytes=50) as server:
        person.http = server.http
        path = f"/vaults/{vault['uid']}/documents"
        assert await exceeds_quota(person, "POST", path, DOCUMENT)
        assert await exceeds_quota(person, "PUT", f"{path}/{made[0]['uid']}", {"data": "A" * 41, "version": 1})
        assert (await person("PUT", f"{path}/{made[0]['uid']}", {"data": "A" * 39, "version": 1})).status_code == 200
        assert (await person("DELETE", f"{path}/{made[1]['uid']}")).status_code == 200
        assert await usage(person) == {"documents": 2, "bytes": 79}


@async_test
async def test_who_is_told_what_an_account_uses(open_server: OpenServer) -> None:
    """The owner and keys that reach all of it; a key that reaches less learns neither from itself nor from vaults."""
    async with open_server(quota_documents=1) as server:
        person = await server.person()
        told = (await person("GET", "/auth/me")).json()
        assert (told["usage"], told["limits"]) == (
            {"documents": 0, "bytes": 0, "kept": 0},
            {"documents": 1, "bytes": None},
        )
        vault = await person.vault()
        await person.document(vault)
        assert await usage(person, bearer=await person.key(permissions=["write"])) == {"documents": 1, "bytes": 4}
        of_vault = await person.key(vaultUids=[vault["uid"]])
        of_collection = await person.key(collections=["c"])
        for key in (of_vault, of_collection):
            assert (await person("GET", "/auth/me", bearer=key)).json().keys() == {"user", "apiKey"}
            over = await person("POST", f"/vaults/{vault['uid']}/documents", DOCUMENT, bearer=key)
            assert over.status_code == 507
            assert "details" not in over.json()["error"]
        shown = await shown_to(person, of_vault, vault)
        assert [(one["documents"], one["bytes"]) for one in shown] == [(1, 4)] * 3
        assert all(not one.keys() & {"documents", "bytes"} for one in await shown_to(person, of_collection, vault))


async def shown_to(person: Person, key: str, vault: dict[str, Any]) -> list[dict[str, Any]]:
    """A vault by each road that shows it."""
    roads = (f"/vault/{vault['uid']}", f"/vault/by-name/{vault['name']}", "/vault")
    answers = [(await person("GET", road, bearer=key)).json() for road in roads]
    return [*answers[:2], answers[2]["vaults"][0]]
