"""The trash: a deleted document can be revived for a while; then its ciphertext goes, and the tombstone stays."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from strongroom import store, wire
from strongroom.actions import documents, retention, vaults
from strongroom.model import AccountLimits, Actor, Expected, RetentionPolicy
from strongroom.rules import DAY
from strongroom.server.routes import trash as routes_trash
from strongroom.store import Tx, open_database
from strongroom.store.postgres.connection import connect
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of
from tests.kit.servers.postgres import postgres

PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}  # who is away for days stays logged in


async def trash(person: Person, vault: dict[str, Any], query: str = "") -> list[str]:
    """What is in the trash of a vault, as it is listed."""
    answer = await person("GET", f"/vaults/{vault['uid']}/documents?deleted=only{query}")
    assert answer.status_code == 200, answer.text
    return [document["uid"] for document in answer.json()["documents"]]


@async_test
async def test_ciphertext_goes_when_its_time_has_come(open_server: OpenServer, where: str) -> None:
    """With its history. Tombstone, version, moment and hmac stay, so nobody who has synced has anything to learn."""
    async with open_server(trash_days=3, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        document = await person.document(vault, data="SECRETAA", hmac="h")
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        await person("PUT", path, {"data": "SECRETBB", "hmac": "i", "version": 1})
        await person("DELETE", path)
        kept = (await person("GET", path)).json()
        before = await person("GET", f"/vault/{vault['uid']}")
        server.clock.pass_(3 * DAY - 10)
        await server.purge_expired()
        assert (await person("GET", path)).json() == kept
        assert await trash(person, vault) == [document["uid"]]
        server.clock.pass_(20)
        await server.purge_expired()
        assert (await person("GET", path)).json() == {**kept, "data": ""}
        assert (await person("GET", f"/vault/{vault['uid']}")).json() == before.json()
        assert (await person("GET", f"{path}/versions")).json() == {"versions": []}
        assert (await person("GET", f"{path}/versions/1")).status_code == 404
        assert (await person("GET", f"{path}/versions/3")).json()["data"] == ""
        assert await trash(person, vault) == []
        assert "SECRET" not in str(await rows_of(where))
        listed = (await person("GET", f"/vaults/{vault['uid']}/documents?since=0")).json()["documents"]
        assert [(one["version"], one["deletedAt"], one["data"]) for one in listed] == [(3, kept["deletedAt"], "")]


@async_test
async def test_two_accounts_may_use_one_uid(open_server: OpenServer, where: str) -> None:
    """Of documents with the same uid, deleted one after the other, each goes with its history."""
    async with open_server(trash_days=1, **PATIENT) as server:
        uid = str(uuid.uuid4())
        histories = []
        for _ in range(3):
            person = await server.person()
            vault = await person.vault()
            await person("POST", f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "SECRET", "uid": uid})
            path = f"/vaults/{vault['uid']}/documents/{uid}"
            await person("PUT", path, {"data": "SECRETS", "version": 1})
            await person("DELETE", path)
            histories.append((person, f"{path}/versions"))
        server.clock.pass_(DAY + 10)
        await server.purge_expired()
        for person, path in histories:
            assert (await person("GET", path)).json() == {"versions": []}
            assert (await person("GET", f"{path}/1")).status_code == 404
        assert "SECRET" not in str(await rows_of(where))


@async_test
async def test_what_is_thrown_away_does_not_come_back(open_server: OpenServer) -> None:
    """Neither by a put at any version nor by a create: the uid stays taken, and the answer says what to do."""
    async with open_server(trash_days=1, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        body = {"collection": "c", "data": "AAAA", "uid": str(uuid.uuid4())}
        path = f"/vaults/{vault['uid']}/documents"
        assert (await person("POST", path, body)).status_code == 201
        one = f"{path}/{body['uid']}"
        await person("DELETE", one)
        server.clock.pass_(DAY + 10)  # moments run ahead of a clock that stands
        await server.purge_expired()
        before = (await person("GET", f"/vault/{vault['uid']}")).json()
        for version in (1, 2, 3):
            answer = await person("PUT", one, {"data": "BBBB", "version": version})
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "document_not_found")
            assert "new uid" in answer.json()["error"]["message"]
        operation = {"op": "put", "uid": body["uid"], "data": "BBBB", "version": 2}
        refused = await person("POST", f"/vaults/{vault['uid']}/batch", {"operations": [operation]})
        [failed] = refused.json()["error"]["details"]["operations"]
        assert (failed["code"], failed["version"]) == ("document_not_found", 2)
        assert (await person("POST", path, body)).json()["error"]["code"] == "uid_taken"
        assert (await person("DELETE", one)).status_code == 404
        assert (await person("GET", f"/vault/{vault['uid']}")).json() == before


@async_test
async def test_until_then_a_document_can_be_revived(open_server: OpenServer) -> None:
    """It is alive and counted again, leaves the trash, and its time begins anew when it is deleted again."""
    async with open_server(trash_days=3, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        document = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        await person("DELETE", path)
        server.clock.pass_(2 * DAY)
        assert (await person("PUT", path, {"data": "BBBB", "version": 2})).status_code == 200
        assert await trash(person, vault) == []
        server.clock.pass_(2 * DAY)
        await server.purge_expired()
        assert (await person("GET", path)).json()["data"] == "BBBB"
        assert (await person("GET", f"{path}/versions/2")).json()["data"] == "AAAA"
        await person("DELETE", path)
        server.clock.pass_(2 * DAY)
        await server.purge_expired()
        assert await trash(person, vault) == [document["uid"]]


@async_test
async def test_the_trash_may_be_kept_for_ever(open_server: OpenServer) -> None:
    """Where the operator says so."""
    async with open_server(trash_days=0, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        document = await person.document(vault)
        await person("DELETE", f"/vaults/{vault['uid']}/documents/{document['uid']}")
        server.clock.pass_(4_000 * DAY)
        await server.purge_expired()
        assert await trash(person, vault, "") == [document["uid"]]


@async_test
async def test_the_trash_is_a_list_like_any_other(open_server: OpenServer) -> None:
    """With since, limit and collection, in order; nothing that lives is in it."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        path = f"/vaults/{vault['uid']}/documents"
        made = [await person.document(vault, collection="ab"[n % 2]) for n in range(6)]
        gone = [(await person("DELETE", f"{path}/{one['uid']}")).json() for one in (made[4], made[1], made[2])]
        uids = [one["uid"] for one in gone]
        assert await trash(person, vault) == uids
        assert await trash(person, vault, "&collection=a") == [uids[0], uids[2]]
        assert await trash(person, vault, f"&since={gone[0]['updatedAt']}") == uids[1:]
        page = (await person("GET", f"{path}?deleted=only&limit=2")).json()
        assert ([one["uid"] for one in page["documents"]], page["hasMore"]) == (uids[:2], True)
        assert page["next"] == gone[1]["updatedAt"]
        synced = (await person("GET", f"{path}/sync?deleted=only")).json()
        assert [one["uid"] for one in synced["documents"]] == uids
        key = await person.key(collections=["b"])
        listed = await person("GET", f"{path}?deleted=only", bearer=key)
        assert [one["uid"] for one in listed.json()["documents"]] == [uids[1]]
        for query in ("deleted=", "deleted=true", "deleted=ONLY", "deleted=only&includeDeleted=true"):
            bad = await person("GET", f"{path}?{query}")
            assert (bad.status_code, bad.json()["error"]["details"]["fields"].keys()) == (400, {"deleted"}), query


@async_test
async def test_its_owner_empties_the_trash(open_server: OpenServer, where: str) -> None:
    """Of one collection or of all; ciphertext, history and usage go, the tombstones and what lives stay as they are."""
    async with open_server() as server:
        person, other = await server.person(), await server.person()
        vault, theirs = await person.vault(), await other.vault()
        path = f"/vaults/{vault['uid']}/documents"
        made = [await person.document(vault, collection="ab"[n % 2], data="SECRETAA") for n in range(150)]
        foreign = await other.document(theirs, collection="a", data="FOREIGNA")
        await other("DELETE", f"/vaults/{theirs['uid']}/documents/{foreign['uid']}")
        await person("PUT", f"{path}/{made[0]['uid']}", {"data": "SECRETBB", "version": 1})
        for one in made[:-1]:
            await person("DELETE", f"{path}/{one['uid']}")
        before = (await person("GET", f"{path}?since=0")).json()["documents"]
        clock = (await person("GET", f"/vault/{vault['uid']}")).json()
        purged = await person("DELETE", f"/vaults/{vault['uid']}/trash?collection=a")
        assert (purged.status_code, purged.json()) == (200, {"purged": 75, "hasMore": False})
        assert len(await trash(person, vault)) == 74
        assert (await person("GET", "/auth/me")).json()["usage"]["kept"] > 0
        purged = await person("DELETE", f"/vault/{vault['uid']}/trash")
        assert purged.json() == {"purged": 74, "hasMore": False}
        assert (await person("DELETE", f"/vaults/{vault['uid']}/trash")).json() == {"purged": 0, "hasMore": False}
        after = (await person("GET", f"{path}?since=0")).json()["documents"]
        assert after == [row if row["deletedAt"] is None else {**row, "data": ""} for row in before]
        assert (await person("GET", f"/vault/{vault['uid']}")).json() == clock
        assert (await person("GET", "/auth/me")).json()["usage"]["kept"] == 0
        assert str(await rows_of(where)).count("SECRET") == 1
        assert await trash(other, theirs) == [foreign["uid"]]
        assert (await person("DELETE", f"/vaults/{theirs['uid']}/trash")).json()["error"]["code"] == "vault_not_found"
        bad = await person("DELETE", f"/vaults/{vault['uid']}/trash?collection=")
        assert (bad.status_code, bad.json()["error"]["details"]["fields"].keys()) == (400, {"collection"})


@async_test
async def test_a_full_trash_is_emptied_in_steps(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request stops after some transactions, says that there is more, and the next one goes on."""
    monkeypatch.setattr(routes_trash, "MOST_STEPS", 2)
    monkeypatch.setattr(retention, "ROWS", 3)
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        for _ in range(4):
            made = await person.document(vault)
            await person("DELETE", f"/vaults/{vault['uid']}/documents/{made['uid']}")
        told = [(await person("DELETE", f"/vaults/{vault['uid']}/trash")).json() for _ in range(3)]
        assert told == [{"purged": 2, "hasMore": True}, {"purged": 2, "hasMore": True}, {"purged": 0, "hasMore": False}]


@async_test
async def test_one_deleted_document_is_purged(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the version that was seen, however large its history is; not a living one, and a second time harmlessly."""
    monkeypatch.setattr(retention, "ROWS", 2)
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        made, kept = await person.document(vault), await person.document(vault)
        path, bin_ = f"/vaults/{vault['uid']}/documents", f"/vaults/{vault['uid']}/trash"
        for version in range(1, 6):
            await person("PUT", f"{path}/{made['uid']}", {"data": "B" * version, "version": version})
        refused = await person("DELETE", f"{bin_}/{made['uid']}")
        assert (refused.status_code, refused.json()["error"]["details"]["version"]) == (409, 6)
        for one in (made, kept):
            await person("DELETE", f"{path}/{one['uid']}")
        assert (await person("DELETE", f"{bin_}/{made['uid']}", {"version": 6})).status_code == 409
        assert (await person("DELETE", f"{bin_}/{made['uid']}", headers={"if-match": '"6"'})).status_code == 412
        tombstone = (await person("GET", f"{path}/{made['uid']}")).json()
        for _ in range(2):
            purged = await person("DELETE", f"{bin_}/{made['uid']}", {"version": 7})
            assert (purged.status_code, purged.json()) == (200, {**tombstone, "data": ""})
        assert (await person("GET", f"{path}/{made['uid']}/versions")).json() == {"versions": []}
        assert await trash(person, vault) == [kept["uid"]]
        assert (await person("DELETE", f"{bin_}/{uuid.uuid4()}")).json()["error"]["code"] == "document_not_found"
        key = await person.key()
        for target in (bin_, f"{bin_}/{kept['uid']}"):
            assert (await person("DELETE", target, bearer=key)).status_code == 403


async def fill(tx: Tx, actor: Actor, uids: list[str], size: int) -> None:
    """Documents that were replaced once and then deleted."""
    for uid in uids:
        wanted = wire.requests.CreateDocument(collection="c", data="A" * size, uid=uid)
        await documents.create(tx, actor, AccountLimits(), "v", wanted)
        await documents.put(
            tx, actor, AccountLimits(), "v", uid, wire.requests.PutDocument(data="B" * size), Expected((1,))
        )
        await documents.delete(tx, actor, AccountLimits(), "v", uid, None)


async def settle_in(db: Any, user_id: str) -> Actor:
    """An account with a vault."""
    await db.write(store.accounts.insert, user_id, f"{user_id}@x", "hash")
    await db.write(vaults.create, Actor(user_id), AccountLimits(), wire.requests.CreateVault(name="v", uid="v"))
    return Actor(user_id)


async def left(where: str) -> tuple[int, int, int]:
    """How many tombstones have their ciphertext, how many versions there are, and the bytes of both."""
    tables = await rows_of(where)
    held = [row for row in tables["documents"] if row[4]]
    size = sum(len(row[4]) for row in held) + sum(len(row[5]) for row in tables["versions"])
    return len(held), len(tables["versions"]), size


@async_test
async def test_no_transaction_throws_away_much(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded in rows and in bytes, however much is due; what is left is done after a restart."""
    monkeypatch.setattr(retention, "BYTES", retention.BYTES // 16)
    db = open_database(where, clock)
    for user_id, count, size in (("a", 40, 10), ("b", 30, 10), ("c", 6, retention.BYTES * 6 // 7)):
        actor = await settle_in(db, user_id)
        for start in range(0, count, 5):
            uids = [f"{user_id}{n:04}" for n in range(start, min(count, start + 5))]
            await db.write_long(fill, actor, uids, size)
    clock.pass_(31 * DAY)
    now, steps, sweep = await left(where), 0, retention.Sweep()
    assert now[:2] == (76, 152)
    while await db.write_long(retention.purge_some, RetentionPolicy(1_000, 30), sweep):
        before, now, steps = now, await left(where), steps + 1
        gone = [was - is_ for was, is_ in zip(before, now, strict=True)]
        assert 0 < gone[0] + gone[1] <= retention.ROWS
        assert gone[2] <= retention.BYTES
        if steps == 3:
            await db.close()
            db, sweep = open_database(where, clock), retention.Sweep()
    assert now == (0, 0, 0)
    assert steps > 10
    await db.close()


@async_test
async def test_one_large_document_is_no_stone_in_the_way(where: str, clock: Clock) -> None:
    """What is larger than a step takes one to itself, a version at a time."""
    db = open_database(where, clock)
    actor = await settle_in(db, "a")
    await db.write_long(fill, actor, ["large", "small"], retention.BYTES + 1)
    clock.pass_(31 * DAY)
    sizes, sweep = [], retention.Sweep()
    while await db.write_long(retention.purge_some, RetentionPolicy(1_000, 30), sweep):
        sizes.append((await left(where))[:2])
    assert sizes == [(2, 3), (2, 2), (1, 2), (1, 1), (1, 0), (0, 0)]
    await db.close()


@async_test
async def test_who_is_revived_in_the_same_moment_keeps_everything(clock: Clock) -> None:
    """On PostgreSQL, a put that holds the account while the purge comes for the document: the purge leaves it alone."""
    where = postgres().fresh()
    db = open_database(where, clock)
    actor = await settle_in(db, "a")
    await db.write(fill, actor, ["d"], 10)
    clock.pass_(31 * DAY)
    holds, go = asyncio.Event(), asyncio.Event()

    async def revive(tx: Tx) -> None:
        await documents.put(tx, actor, AccountLimits(), "v", "d", wire.requests.PutDocument(data="CC"), Expected((3,)))
        holds.set()
        await go.wait()

    reviving = asyncio.create_task(db.write(revive))
    await holds.wait()
    purge = asyncio.create_task(db.write_long(retention.purge_some, RetentionPolicy(1_000, 30), retention.Sweep()))
    watcher = await connect(where)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while not await watcher.fetchval(waiting):
        assert not purge.done()
        await asyncio.sleep(0.01)
    await watcher.close()
    go.set()
    await reviving
    await purge
    assert not await db.write_long(retention.purge_some, RetentionPolicy(1_000, 30), retention.Sweep())
    tables = await rows_of(where)
    assert [row[4] for row in tables["documents"]] == ["CC"]
    assert sorted(row[2] for row in tables["versions"]) == [1, 2, 3]
    await db.close()
