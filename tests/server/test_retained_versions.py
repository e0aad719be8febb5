"""Trash and history take at most as many bytes again as the quota, and no write is refused for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strongroom import rules
from strongroom.rules import DAY
from tests.export.files import came, exported, furnish, imported, sealed
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.populated_database import alter, rows_of
from tests.server.account_usage import kept_bytes, recounted_kept_bytes, usage

QUOTA = 20_000


@pytest.fixture(autouse=True)
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small quotas grant little."""
    monkeypatch.setattr(rules, "RETENTION_MINIMUM", 0)


async def stored(where: str, person: Person) -> int:
    """How many bytes of ciphertext the database holds for an account, whatever it says."""
    tables = await rows_of(where)
    texts = [row[4] for row in tables["documents"] if row[0] == person.id]
    texts += [row[5] for row in tables["versions"] if row[0] == person.id]
    texts += [row[3] for row in tables["blob_versions"] if row[0] == person.id]
    texts += [row[3] for row in tables["vaults"] if row[0] == person.id and row[3] is not None]
    return sum(len(text) for text in texts)


@async_test
async def test_creating_and_deleting_keeps_no_more_than_the_bound(open_server: OpenServer, where: str) -> None:
    """In a loop, at a usage of nothing: what the trash cannot take is thrown away, and no request is refused."""
    async with open_server(quota_bytes=QUOTA) as server:
        person = await server.person()
        vault = await person.vault()
        path = f"/vaults/{vault['uid']}/documents"
        for n in range(40):
            made = await person.document(vault, data="A" * 4_000)
            gone = await person("DELETE", f"{path}/{made['uid']}", {"version": 1})
            assert gone.status_code == 200, n
        assert await usage(person) == {"documents": 0, "bytes": 0}
        assert await stored(where, person) <= QUOTA
        assert 0 < await kept_bytes(person) <= QUOTA
        assert len((await person("GET", f"{path}?since=0")).json()["documents"]) == 40
        assert 0 < len((await person("GET", f"{path}?deleted=only")).json()["documents"]) < 5


@async_test
async def test_history_gives_way_before_a_write_is_refused(open_server: OpenServer, where: str) -> None:
    """The oldest versions of the very document or blob that is written go; what is written is never lost."""
    async with open_server(quota_bytes=QUOTA) as server:
        person = await server.person()
        vault = await person.vault(data="A" * 1_000, salt="")
        path = f"/vaults/{vault['uid']}/documents"
        made = await person.document(vault, data="A" * 4_000)
        for version in range(1, 30):
            put = await person("PUT", f"{path}/{made['uid']}", {"data": "B" * 4_000, "version": version})
            assert put.status_code == 200
            blob = await person("PUT", f"/vault/{vault['uid']}", {"data": "B" * 4_000, "salt": ""})
            assert blob.status_code == 200
        assert await kept_bytes(person) <= QUOTA
        assert await stored(where, person) <= 2 * QUOTA
        versions = (await person("GET", f"{path}/{made['uid']}/versions")).json()["versions"]
        blobs = (await person("GET", f"/vault/{vault['uid']}/versions")).json()["versions"]
        assert versions or blobs
        numbers = [one["version"] for one in versions]
        assert numbers == list(range(29, 29 - len(numbers), -1))
        tables = await rows_of(where)
        assert await kept_bytes(person) == recounted_kept_bytes(tables, person.id, vault["uid"])


@async_test
async def test_many_small_rows_are_bounded_too(open_server: OpenServer, where: str) -> None:
    """Each row counts 256 bytes beside what is in it."""
    async with open_server(quota_bytes=QUOTA) as server:
        person = await server.person()
        vault = await person.vault()
        create = [{"op": "create", "collection": "c", "data": "A"}] * 200
        batch = f"/vaults/{vault['uid']}/batch"
        made = (await person("POST", batch, {"operations": create})).json()["results"]
        gone = [{"op": "delete", "uid": one["uid"], "version": 1} for one in made]
        assert (await person("POST", batch, {"operations": gone})).status_code == 200
        tables = await rows_of(where)
        rows = [row for row in tables["documents"] if row[10] is None]
        assert len(rows) + len(tables["versions"]) <= QUOTA / 256
        assert await kept_bytes(person) == recounted_kept_bytes(tables, person.id, vault["uid"])


@async_test
async def test_a_small_quota_leaves_a_megabyte(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little may live, what was deleted by mistake can be revived."""
    monkeypatch.undo()
    async with open_server(quota_bytes=10) as server:
        person = await server.person()
        vault = await person.vault()
        made = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{made['uid']}"
        assert (await person("DELETE", path)).status_code == 200
        assert (await person("PUT", path, {"data": "BBBB", "version": 2})).status_code == 200


@async_test
async def test_a_lowered_quota_locks_nobody_out(open_server: OpenServer) -> None:
    """Who keeps more than is granted now may still delete, put by less and empty the vault."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        made = [await person.document(vault, data="A" * 1_000) for _ in range(3)]
        path = f"/vaults/{vault['uid']}/documents"
        for version in (1, 2, 3):
            await person("PUT", f"{path}/{made[0]['uid']}", {"data": "A" * 1_000, "version": version})
    async with open_server(quota_bytes=100) as server:
        person.http = server.http
        before = await kept_bytes(person)
        put = await person("PUT", f"{path}/{made[0]['uid']}", {"data": "A" * 10, "version": 4})
        assert put.status_code == 200
        assert await kept_bytes(person) < before
        assert (await person("DELETE", f"{path}/{made[1]['uid']}")).status_code == 200
        assert (await person("DELETE", f"/vault/{vault['uid']}")).status_code == 200
        assert await kept_bytes(person) == 0


def tombstones(server: InProcessServer, count: int, size: int, ahead: int = 0) -> list[dict[str, Any]]:
    """The lines of a file with nothing but deleted documents."""
    uid, now = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", server.clock.now + ahead
    header = {"kind": "header", "format": "strongroom-export", "version": 2, "id": uid, "epoch": "e"}
    vault = {"kind": "vault", "uid": uid, "name": "v", "version": 1, "createdAt": 1, "updatedAt": now}
    dead = [
        {
            "kind": "document",
            "uid": f"0192f0c1-2b3c-7d4e-8f90-{n:012}",
            "vaultUid": uid,
            "collection": "c",
            "version": 2,
            "createdAt": 1,
            "updatedAt": now - count + n,
            "deletedAt": now - count + n,
            "data": "A" * size,
        }
        for n in range(count)
    ]
    return [{**header, "exportedAt": now, "clock": now}, vault, *dead]


@async_test
async def test_an_import_of_tombstones_is_bounded(open_server: OpenServer, where: str) -> None:
    """What does not fit comes in without its content; all of them are told as deleted."""
    async with open_server(quota_bytes=QUOTA) as server:
        person = await server.person()
        answer = await imported(person, sealed(tombstones(server, 600, 1_000)))
        assert answer.status_code == 200, answer.text
        assert await stored(where, person) <= QUOTA
        [vault] = (await person("GET", "/vault")).json()["vaults"]
        found = (await person("GET", f"/vaults/{vault['uid']}/documents?since=0")).json()["documents"]
        assert len(found) == 600
        assert await kept_bytes(person) == recounted_kept_bytes(await rows_of(where), person.id, vault["uid"]) <= QUOTA


@async_test
async def test_history_that_does_not_fit_is_left_out_of_an_import(open_server: OpenServer, where: str) -> None:
    """The answer says how many lines; whatever lives comes in."""
    async with open_server() as server:
        ann = await server.person()
        await furnish(ann, documents=30, size=400)
        file = await exported(ann)
        live = await usage(ann)
        assert await kept_bytes(ann) > live["bytes"]
    async with open_server(quota_bytes=live["bytes"]) as server:
        bob = await server.person()
        answer = await imported(bob, file)
        assert answer.status_code == 200, answer.text
        assert answer.json()["leftOut"] > 0
        assert {**answer.json(), "leftOut": 0} == came(file)
        assert await usage(bob) == live
        tables = await rows_of(where)
        vaults = (await bob("GET", "/vault")).json()["vaults"]
        assert (
            await kept_bytes(bob)
            == sum(recounted_kept_bytes(tables, bob.id, vault["uid"]) for vault in vaults)
            <= live["bytes"]
        )


@pytest.mark.parametrize("ahead", [DAY + 1, 1_000 * DAY])
@async_test
async def test_no_moment_far_beyond_now_is_taken(open_server: OpenServer, ahead: int) -> None:
    """The line and the field are named; nothing comes in."""
    async with open_server() as server:
        person = await server.person()
        refused = await imported(person, sealed(tombstones(server, 3, 10, ahead)))
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (400, "validation_error")
        assert "Line 1" in json.dumps(error)
        assert "clock" in json.dumps(error)
        assert "24 hours ahead" in json.dumps(error)
        assert (await person("GET", "/vault")).json()["vaults"] == []


@pytest.mark.parametrize(("field", "line"), [("purgedAt", 3), ("replacedAt", 4)])
@async_test
async def test_no_field_hides_a_moment_far_beyond_now(open_server: OpenServer, field: str, line: int) -> None:
    """Those that the account's clock does not bound are looked at too."""
    async with open_server() as server:
        person = await server.person()
        written = tombstones(server, 1, 10)
        if field == "purgedAt":
            written[2] = {**{name: value for name, value in written[2].items() if name != "data"}, field: 2**50}
        else:
            version = {**written[2], "kind": "version", "version": 1, "replacedAt": 2**50, "deletedAt": None}
            written.append(version)
        refused = await imported(person, sealed(written))
        assert refused.status_code == 400
        assert f"Line {line}" in refused.text
        assert field in refused.text


@async_test
async def test_what_came_in_slightly_ahead_is_purged_in_its_time(open_server: OpenServer) -> None:
    """A clock that ran ahead by less than a day delays the end of the trash by less than a day."""
    async with open_server(trash_days=30) as server:
        person = await server.person()
        assert (await imported(person, sealed(tombstones(server, 5, 10, DAY - 1)))).status_code == 200
        assert await kept_bytes(person) == 5 * (256 + 10)
        server.clock.pass_(31 * DAY)
        await server.purge_expired()
        person.access = (await server.login(person.email)).json()["accessToken"]
        assert await kept_bytes(person) == 0


@async_test
async def test_what_was_there_is_counted_once_by_the_upgrade(open_server: OpenServer, where: str) -> None:
    """A database of the schema before: its trash and history count from the first start on."""
    async with open_server() as server:
        person = await server.person()
        await furnish(person, documents=12)
        before = await kept_bytes(person)
    for table, column in (("vaults", "kept"), ("vaults", "row_bytes"), ("ledgers", "row_bytes")):
        await alter(where, f"ALTER TABLE {table} DROP COLUMN {column}")
    await alter(where, "DROP TABLE keyring_versions")
    await alter(where, "ALTER TABLE sessions DROP COLUMN device_name")
    await alter(where, "DROP TABLE invitations")
    await alter(where, "ALTER TABLE blob_versions DROP COLUMN name")
    factors = ("one_time_codes", "recovery_codes", "login_tickets", "passkeys", "challenges")
    for table in (*factors, "key_shares", "deletions"):
        await alter(where, f"DROP TABLE {table}")
    await alter(where, "DELETE FROM schema_migrations WHERE number >= 7")
    async with open_server() as server:
        person.http = server.http
        assert await kept_bytes(person) == before > 0
