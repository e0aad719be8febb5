"""History: what a change replaced can be read for a while, and no more than a number of versions of it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from strongroom.rules import DAY
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of
from tests.server.kept_versions import kept_versions

PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}  # who is away for days stays logged in


async def put(person: Person, path: str, data: str, version: int) -> dict[str, Any]:
    done = await person("PUT", path, {"data": data, "version": version, "hmac": f"of {data}"})
    assert done.status_code == 200, done.text
    body: dict[str, Any] = done.json()
    return body


@async_test
async def test_every_version_of_a_document_can_be_read(open_server: OpenServer) -> None:
    """Replaced, deleted and revived: newest first in the list, and word for word as each was answered."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        first = await person.document(vault, data="AAAA", hmac="é\0")
        path = f"/vaults/{vault['uid']}/documents/{first['uid']}"
        assert await kept_versions(person, path) == []
        server.clock.pass_(1_000)
        second = await put(person, path, "BBBBBB", 1)
        gone = (await person("DELETE", path)).json()
        gone.pop("success")
        fourth = await put(person, path, "CC", 3)
        listed = (await person("GET", f"{path}/versions")).json()["versions"]
        assert listed == [
            {
                "version": old["version"],
                "updatedAt": old["updatedAt"],
                "deletedAt": old["deletedAt"],
                "replacedAt": new["updatedAt"],
                "bytes": len(old["data"]) + len(old["hmac"].encode()),
            }
            for old, new in ((gone, fourth), (second, gone), (first, second))
        ]
        for one in (first, second, gone, fourth):
            assert (await person("GET", f"{path}/versions/{one['version']}")).json() == one
        also = await person("GET", f"/vault/{vault['uid']}/documents/{first['uid']}/versions/2")
        assert also.json() == second
        for unknown in ("0", "5", "x", "-1", "1.0", str(2**63), "9" * 400):
            answer = await person("GET", f"{path}/versions/{unknown}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "version_not_found")


@async_test
async def test_a_retry_keeps_nothing_and_a_refusal_neither(open_server: OpenServer) -> None:
    """Only what was replaced is in the history."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        document = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        await put(person, path, "BBBB", 1)
        await put(person, path, "BBBB", 1)
        assert (await person("PUT", path, {"data": "CCCC", "version": 1})).status_code == 409
        assert (await person("DELETE", path, {"version": 1})).status_code == 409
        operations = [
            {"op": "put", "uid": document["uid"], "data": "DDDD", "version": 2},
            {"op": "put", "uid": document["uid"], "data": "EEEE", "version": 9},
        ]
        assert (await person("POST", f"/vaults/{vault['uid']}/batch", {"operations": operations})).status_code == 409
        assert await kept_versions(person, path) == [1]


@pytest.mark.parametrize("most", [1, 3])
@async_test
async def test_no_more_than_so_many_are_kept(open_server: OpenServer, most: int) -> None:
    """The newest; of documents changed one by one, in a batch, and of blobs."""
    async with open_server(history_versions=most) as server:
        person = await server.person()
        vault = await person.vault(data="0", salt="")
        document = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        for version in range(1, 6):
            await put(person, path, "B" * version, version)
            await person("PUT", f"/vault/{vault['uid']}", {"data": str(version), "salt": ""})
            assert len(await kept_versions(person, path)) == min(version, most)
        assert await kept_versions(person, path) == [5, 4, 3][:most]
        assert await kept_versions(person, f"/vault/{vault['uid']}") == [5, 4, 3][:most]
        more = [{"op": "put", "uid": document["uid"], "data": "CC", "version": v} for v in range(6, 12)]
        assert (await person("POST", f"/vaults/{vault['uid']}/batch", {"operations": more})).status_code == 200
        assert await kept_versions(person, path) == [11, 10, 9][:most]


@async_test
async def test_trimming_touches_the_owner_alone(open_server: OpenServer) -> None:
    """Two accounts may use one uid, of a document and of a vault: what one writes trims nothing of the other."""
    async with open_server(history_versions=2) as server:
        uid, vault_uid = str(uuid.uuid4()), str(uuid.uuid4())
        histories = []
        for rounds in (2, 6):
            person = await server.person()
            vault = await person.vault(data="0", salt="", uid=vault_uid)
            await person.document(vault, uid=uid)
            path = f"/vaults/{vault['uid']}/documents/{uid}"
            for version in range(1, rounds + 1):
                await put(person, path, "B" * version, version)
                await person("PUT", f"/vault/{vault['uid']}", {"data": str(version), "salt": ""})
            histories.append((person, path, f"/vault/{vault['uid']}", [rounds, rounds - 1]))
        for person, document, blob, wanted in histories:
            assert await kept_versions(person, document) == wanted
            assert await kept_versions(person, blob) == wanted


@async_test
async def test_history_can_be_off(open_server: OpenServer, where: str) -> None:
    """Then nothing is kept; the current version can be read by its number all the same."""
    async with open_server(history_versions=0) as server:
        person = await server.person()
        vault = await person.vault(data="0", salt="")
        document = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        await put(person, path, "BBBB", 1)
        await person("DELETE", path)
        await person("PUT", f"/vault/{vault['uid']}", {"data": "1", "salt": ""})
        assert (await kept_versions(person, path), await kept_versions(person, f"/vault/{vault['uid']}")) == ([], [])
        assert (await person("GET", f"{path}/versions/3")).status_code == 200
        assert (await person("GET", f"{path}/versions/2")).status_code == 404
        tables = await rows_of(where)
        assert (tables["versions"], tables["blob_versions"]) == ([], [])


@async_test
async def test_every_blob_can_be_read(open_server: OpenServer) -> None:
    """With the name of that time. A rename replaces no blob, and a vault that never had one has none."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault(data="é", salt="AA")
        path = f"/vault/{vault['uid']}"
        await person.document(vault)
        clock = (await person("GET", path)).json()["updatedAt"]
        assert (await person("PUT", path, {"data": "two", "salt": "", "name": "other"} | {"version": 1})).is_success
        assert (await person("PUT", path, {"name": "third", "version": 2})).is_success
        last = (await person("PUT", path, {"data": "four", "salt": "BB"})).json()
        listed = (await person("GET", f"{path}/versions")).json()["versions"]
        assert [(one["version"], one["bytes"]) for one in listed] == [(3, 3), (1, 4)]
        assert (listed[1]["updatedAt"], listed[0]["replacedAt"]) == (clock, last["updatedAt"])
        shown = [(await person("GET", f"{path}/versions/{n}")).json() for n in (1, 3, 4)]
        assert [(one["data"], one["salt"], one["version"], one["name"]) for one in shown] == [
            ("é", "AA", 1, vault["name"]),
            ("two", "", 3, "third"),
            ("four", "BB", 4, "third"),
        ]
        assert {one["uid"] for one in shown} == {vault["uid"]}
        assert (await person("GET", f"{path}/versions/2")).json()["error"]["code"] == "version_not_found"
        plain = await person.vault()
        assert await kept_versions(person, f"/vault/{plain['uid']}") == []
        assert (await person("GET", f"/vault/{plain['uid']}/versions/1")).status_code == 404
        await person("PUT", f"/vault/{plain['uid']}", {"data": "first", "salt": ""})
        assert await kept_versions(person, f"/vault/{plain['uid']}") == []


@async_test
async def test_history_is_kept_for_days(open_server: OpenServer, where: str) -> None:
    """Then it goes, of documents and of blobs, and the current version stays; changes of vaults go with it."""
    async with open_server(history_days=10, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault(data="0", salt="")
        document = await person.document(vault)
        path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
        await put(person, path, "BBBB", 1)
        await person("PUT", f"/vault/{vault['uid']}", {"data": "1", "salt": ""})
        server.clock.pass_(5 * DAY)
        await put(person, path, "CCCC", 2)
        await person("PUT", f"/vault/{vault['uid']}", {"data": "2", "salt": ""})
        await server.purge_expired()
        assert (await kept_versions(person, path), await kept_versions(person, f"/vault/{vault['uid']}")) == (
            [2, 1],
            [2, 1],
        )
        server.clock.pass_(5 * DAY + 10)  # moments run ahead of a clock that stands
        await server.purge_expired()
        assert (await kept_versions(person, path), await kept_versions(person, f"/vault/{vault['uid']}")) == ([2], [2])
        assert len((await rows_of(where))["vault_changes"]) == 1
        server.clock.pass_(5 * DAY + 10)  # moments run ahead of a clock that stands
        await server.purge_expired()
        assert (await kept_versions(person, path), await kept_versions(person, f"/vault/{vault['uid']}")) == ([], [])
        assert (await person("GET", path)).json()["data"] == "CCCC"
        assert (await rows_of(where))["vault_changes"] == []


@async_test
async def test_changes_of_vaults_are_kept_for_a_week_at_least(open_server: OpenServer, where: str) -> None:
    """Whoever follows an account may be away for so long, however short the history is."""
    async with open_server(history_days=1, **PATIENT) as server:
        person = await server.person()
        await person.vault()
        server.clock.pass_(7 * DAY - 1)
        await server.purge_expired()
        assert len((await rows_of(where))["vault_changes"]) == 1
        server.clock.pass_(1)
        await server.purge_expired()
        assert (await rows_of(where))["vault_changes"] == []


@async_test
async def test_history_goes_with_the_vault(open_server: OpenServer, where: str) -> None:
    """Nothing is left of a deleted vault but the note that it was deleted."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault(data="0", salt="")
        document = await person.document(vault)
        await put(person, f"/vaults/{vault['uid']}/documents/{document['uid']}", "BBBB", 1)
        await person("PUT", f"/vault/{vault['uid']}", {"data": "1", "salt": ""})
        tables = await rows_of(where)
        assert (len(tables["versions"]), len(tables["blob_versions"])) == (1, 1)
        assert (await person("DELETE", f"/vault/{vault['uid']}")).status_code == 200
        await server.finish_deletions()
        tables = await rows_of(where)
        assert (tables["versions"], tables["blob_versions"], tables["documents"]) == ([], [], [])


@async_test
async def test_a_key_sees_the_history_of_what_it_reaches(open_server: OpenServer) -> None:
    """Documents of its collections and vaults; the blobs of a vault only if it is not limited to collections."""
    async with open_server() as server:
        person = await server.person()
        vault, other = await person.vault(data="0", salt=""), await person.vault()
        inside, outside = await person.document(vault), await person.document(vault, collection="out")
        documents = f"/vaults/{vault['uid']}/documents"
        for document in (inside, outside):
            await put(person, f"{documents}/{document['uid']}", "BBBB", 1)
        await person("PUT", f"/vault/{vault['uid']}", {"data": "1", "salt": ""})
        narrow = await person.key(collections=["c"])
        assert await kept_versions(person, f"{documents}/{inside['uid']}", bearer=narrow) == [1]
        for tail in ("", "/1", "/2"):
            hidden = await person("GET", f"{documents}/{outside['uid']}/versions{tail}", bearer=narrow)
            assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "document_not_found")
        assert await kept_versions(person, f"/vault/{vault['uid']}", bearer=narrow) == []
        for version in (1, 2):
            hidden = await person("GET", f"/vault/{vault['uid']}/versions/{version}", bearer=narrow)
            assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "version_not_found")
        elsewhere = await person.key(vaultUids=[other["uid"]])
        for path in (f"{documents}/{inside['uid']}", f"/vault/{vault['uid']}"):
            for tail in ("", "/1"):
                hidden = await person("GET", f"{path}/versions{tail}", bearer=elsewhere)
                assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "vault_not_found")
        writer = await person.key(permissions=["write"])
        assert (await person("GET", f"/vault/{vault['uid']}/versions", bearer=writer)).status_code == 403
        astray = await person("GET", f"/vaults/{other['uid']}/documents/{inside['uid']}/versions/1")
        assert astray.json()["error"]["code"] == "document_not_found"
