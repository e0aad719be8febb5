"""`newVersion`: a client that repeats a row after a restore stores it at the row's own version."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from strongroom import rules
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import refused
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of
from tests.server.kept_versions import kept_versions

ROW = {"data": "BBBB", "hmac": "of b"}


async def documents(person: Person) -> tuple[dict[str, Any], str]:
    """A vault, and the path of its documents."""
    vault = await person.vault()
    return vault, f"/vaults/{vault['uid']}/documents"


async def usage(person: Person) -> Any:
    return (await person("GET", "/auth/me")).json()["usage"]


@async_test
async def test_a_document_is_created_at_a_chosen_version(open_server: OpenServer) -> None:
    """Status 201 and then 200 for the same again; the same row at another version, or deleted, is a taken uid."""
    async with open_server() as server:
        person = await server.person()
        _, path = await documents(person)
        new = {"collection": "c", "uid": str(uuid.uuid4()), **ROW, "newVersion": 7}
        made = await person("POST", path, new)
        assert (made.status_code, made.json()["version"], made.headers["etag"]) == (201, 7, '"7"')
        before = await usage(person)
        server.clock.pass_(1_000)
        again = await person("POST", path, new)
        assert (again.status_code, again.json()) == (200, made.json())
        for other in (6, 8, 1, None):
            refused(await person("POST", path, {**new, "newVersion": other}), 409, "uid_taken")
        assert await usage(person) == before
        gone = await person("DELETE", f"{path}/{new['uid']}")
        assert gone.json()["version"] == 8
        refused(await person("POST", path, {**new, "newVersion": 8}), 409, "uid_taken")
        plain = await person("POST", path, {"collection": "c", **ROW})
        assert plain.json()["version"] == 1


@async_test
async def test_a_document_is_replaced_at_a_chosen_version(open_server: OpenServer) -> None:
    """Only above what is stored, and only where the client saw what is stored; by version or by If-Match."""
    async with open_server() as server:
        person = await server.person()
        vault, path = await documents(person)
        made = await person.document(vault)
        path = f"{path}/{made['uid']}"
        wanted = {**ROW, "version": 1, "newVersion": 7}
        for version, newer in ((1, 1), (2, 7), (7, 7)):
            details = refused(
                await person("PUT", path, {**wanted, "version": version, "newVersion": newer}), 409, "document_conflict"
            )["details"]
            assert details == {"version": 1, "updatedAt": made["updatedAt"]}
        done = await person("PUT", path, wanted)
        assert (done.status_code, done.json()["version"], done.headers["etag"]) == (200, 7, '"7"')
        before, clock = await usage(person), (await person("GET", f"/vault/{vault['uid']}")).json()["updatedAt"]
        server.clock.pass_(1_000)
        assert (await person("PUT", path, wanted)).json() == done.json()
        assert (await person("PUT", path, {**ROW, "newVersion": 7}, headers={"if-match": '"1"'})).json() == done.json()
        assert (await person("GET", f"/vault/{vault['uid']}")).json()["updatedAt"] == clock
        # What is stored at the next version is no repetition of what was to have another one.
        refused(await person("PUT", path, {**ROW, "version": 6, "newVersion": 8}), 409, "document_conflict")
        refused(await person("PUT", path, {**wanted, "data": "CCCC"}), 409, "document_conflict")
        late = await person("PUT", path, {**ROW, "newVersion": 9}, headers={"if-match": '"1"'})
        refused(late, 412, "document_conflict")
        starred = await person("PUT", path, {"data": "CCCC", "newVersion": 7}, headers={"if-match": "*"})
        refused(starred, 412, "document_conflict")
        assert await usage(person) == before
        assert await kept_versions(person, path) == [1]
        header = await person("PUT", path, {**ROW, "newVersion": 12}, headers={"if-match": '"7"'})
        assert (header.status_code, header.json()["version"]) == (200, 12)
        assert (await person("PUT", path, {**ROW, "version": 12})).json()["version"] == 13


@async_test
async def test_a_batch_takes_chosen_versions(open_server: OpenServer) -> None:
    """Of creates and puts, one after the other; all or nothing, and a repeated batch is answered as stored."""
    async with open_server() as server:
        person = await server.person()
        vault, path = await documents(person)
        old, batch = await person.document(vault), f"/vaults/{vault['uid']}/batch"
        new = {"op": "create", "collection": "c", "uid": str(uuid.uuid4()), **ROW, "newVersion": 5}
        put = {"op": "put", "uid": old["uid"], **ROW, "version": 1, "newVersion": 9}
        done = await person("POST", batch, {"operations": [new, put]})
        assert [one["version"] for one in done.json()["results"]] == [5, 9]
        server.clock.pass_(1_000)
        assert (await person("POST", batch, {"operations": [new, put]})).json() == done.json()
        bad = [{**new, "newVersion": 6}, {**put, "version": 9, "newVersion": 9, "data": "CCCC"}]
        failures = refused(await person("POST", batch, {"operations": bad}), 409, "batch_conflict")["details"][
            "operations"
        ]
        assert [(one["code"], one["version"]) for one in failures] == [("uid_taken", 5), ("document_conflict", 9)]
        wrong = {"operations": [{**new, "newVersion": 0}]}
        assert set(refused(await person("POST", batch, wrong), 400, "validation_error")["details"]["fields"]) == {
            "operations[0].newVersion"
        }
        listed = (await person("GET", f"{path}?since=0")).json()["documents"]
        assert sorted(one["version"] for one in listed) == [5, 9]


@pytest.mark.parametrize("variant", ["both", "document", "blob"])
@async_test
async def test_a_vault_is_changed_at_a_chosen_version(open_server: OpenServer, variant: str) -> None:
    """Its blob, or its name, in every variant that has them."""
    async with open_server(variant=variant) as server:
        person = await server.person()
        blob = variant != "document"
        vault = await person.vault(**({"data": "0", "salt": ""} if blob else {}))
        path, content = f"/vault/{vault['uid']}", {"data": "1", "salt": ""} if blob else {"name": "other"}
        wanted = {**content, "version": 1, "newVersion": 7}
        refused(await person("PUT", path, {**wanted, "newVersion": 1}), 409, "vault_conflict")
        done = await person("PUT", path, wanted)
        assert (done.status_code, done.json()["version"]) == (200, 7)
        server.clock.pass_(1_000)
        assert (await person("PUT", path, wanted)).json() == done.json()
        assert (
            refused(await person("PUT", path, {**wanted, "newVersion": 9}), 409, "vault_conflict")["details"]["version"]
            == 7
        )
        refused(await person("PUT", path, {**content, "version": 6, "newVersion": 9}), 409, "vault_conflict")
        starred = await person("PUT", path, {**content, "newVersion": 5}, headers={"if-match": "*"})
        refused(starred, 412, "vault_conflict")
        if blob:  # without a version, the last writer wins, but not below what is stored
            assert (await person("PUT", path, {**content, "newVersion": 7})).json() == done.json()
            refused(await person("PUT", path, {"data": "2", "salt": "", "newVersion": 7}), 409, "vault_conflict")
            assert (await person("PUT", path, {"data": "2", "salt": "", "newVersion": 8})).json()["version"] == 8
            assert (await person("PUT", path, {"data": "3", "salt": ""})).json()["version"] == 9


@async_test
async def test_a_deleted_document_comes_back_at_a_chosen_version(open_server: OpenServer) -> None:
    """A put above the tombstone's version revives it, and the usage is that of one document."""
    async with open_server() as server:
        person = await server.person()
        vault, path = await documents(person)
        made = await person.document(vault, **ROW)
        before = await usage(person)
        path = f"{path}/{made['uid']}"
        await person("DELETE", path)
        refused(await person("PUT", path, {**ROW, "version": 2, "newVersion": 2}), 409, "document_conflict")
        back = await person("PUT", path, {**ROW, "version": 2, "newVersion": 6})
        assert (back.json()["version"], back.json()["deletedAt"]) == (6, None)
        after = await usage(person)
        assert (after["documents"], after["bytes"]) == (before["documents"], before["bytes"])


@async_test
async def test_a_jump_costs_no_history(open_server: OpenServer, where: str) -> None:
    """As many versions are kept as before, counted one by one, and their bytes are counted right."""
    async with open_server(history_versions=3) as server:
        person = await server.person()
        vault = await person.vault(data="0", salt="")
        document, blob = await person.document(vault), f"/vault/{vault['uid']}"
        path, row = f"/vaults/{vault['uid']}/documents/{document['uid']}", 1
        for newer in (2, 1_000, 1_001, 50_000, 50_001):
            body = {"version": row, "newVersion": newer}
            assert (await person("PUT", path, {"data": "B" * 4, **body})).status_code == 200
            assert (await person("PUT", blob, {"data": "C" * 4, "salt": "", **body})).status_code == 200
            row = newer
        assert await kept_versions(person, path) == [50_000, 1_001, 1_000]
        assert await kept_versions(person, blob) == [50_000, 1_001, 1_000]
        tables = await rows_of(where)
        assert len(tables["versions"]) == len(tables["blob_versions"]) == 3
        assert (await usage(person))["kept"] == 6 * (4 + 256)


@async_test
async def test_no_version_is_so_high_that_nothing_can_follow(open_server: OpenServer) -> None:
    """A chosen version leaves room below 2^53: the document can be changed and deleted for as long as it is."""
    async with open_server() as server:
        person = await server.person()
        vault, path = await documents(person)
        document = await person.document(vault)
        roads = (
            ("POST", path, {"collection": "c", **ROW}),
            ("PUT", f"{path}/{document['uid']}", {**ROW, "version": 1}),
            ("PUT", f"/vault/{vault['uid']}", {"name": "n", "version": 1}),
        )
        for method, where, body in roads:
            for bad in (0, -1, rules.MAX_NEW_VERSION + 1, 2**53, 2**63, 10**30, 1.5, "2", True):
                answer = await person(method, where, {**body, "newVersion": bad})
                assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"newVersion"}, (
                    where,
                    bad,
                )
        top = rules.MAX_NEW_VERSION
        for method, where, body in roads:
            assert (await person(method, where, {**body, "newVersion": top})).json()["version"] == top
        assert (await person("PUT", f"{path}/{document['uid']}", {**ROW, "version": top})).json()["version"] == top + 1
        assert (await person("DELETE", f"{path}/{document['uid']}")).json()["version"] == top + 2 < 2**53


@async_test
async def test_of_many_that_repeat_a_row_all_are_answered_alike(open_server: OpenServer) -> None:
    """Twenty devices put the same row again, and twenty others another one: one row is stored, once."""
    async with open_server() as server:
        person = await server.person()
        vault, path = await documents(person)
        path = f"{path}/{(await person.document(vault))['uid']}"
        rows = [{"data": data, "version": 1, "newVersion": 7} for data in ("AAAA", "BBBB") * 20]
        answers = await asyncio.gather(*(person("PUT", path, row) for row in rows))
        assert sorted(answer.status_code for answer in answers) == [200] * 20 + [409] * 20
        stored = (await person("GET", path)).json()
        assert stored["version"] == 7
        assert {answer.text for answer in answers if answer.status_code == 200} == {(await person("GET", path)).text}
        assert await kept_versions(person, path) == [1]
