"""Deleted vaults and accounts: gone for everybody at once, and their rows in steps, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from strongroom import wire
from strongroom.actions import deletions, documents, key_shares
from strongroom.errors import Unauthorized
from strongroom.model import AccountLimits, Actor
from strongroom.rules import DAY
from strongroom.server.admin import operations
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.responses import good, refused
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer, in_process_server
from tests.kit.servers.internals import context_of, database_of
from tests.kit.servers.populated_database import rows_of
from tests.server.deleted_vaults import COUNT, TABLES, VAULT, fill, finish, seen, step, uid_of

PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}


async def waiting(where: str, user_id: str) -> int:
    """How many rows of documents and history an account has in the tables."""
    tables = await rows_of(where)
    return sum(row[0] == user_id for table in TABLES for row in tables[table])


async def delete_account(person: Person) -> None:
    good(await person("DELETE", "/auth/me", {"password": "correct horse"}))


@async_test
async def test_a_deleted_vault_is_gone_before_its_rows_are(open_server: OpenServer, where: str) -> None:
    """By every route, in the export, the usage and the events, it is as if the account had never had it."""
    async with open_server() as server:
        person, newcomer = await server.person(), await server.person()
        await fill(person, "OLDS")
        good(await person("DELETE", f"/vault/{VAULT}"))
        assert await waiting(where, person.id) > COUNT
        assert await seen(person) == await seen(newcomer)
        path = f"/vaults/{VAULT}"
        put = {"data": "AAAA", "version": 2}
        refused(await person("PUT", f"{path}/documents/{uid_of(3)}", put), 404, "vault_not_found")
        created = {"collection": "c", "data": "AAAA"}
        refused(await person("POST", f"{path}/documents", created), 404, "vault_not_found")
        refused(await person("DELETE", f"{path}/documents/{uid_of(3)}"), 404, "vault_not_found")
        refused(await person("DELETE", f"{path}/trash"), 404, "vault_not_found")
        batch = {"operations": [{"op": "put", "uid": uid_of(3), **put}]}
        refused(await person("POST", f"{path}/batch", batch), 404, "vault_not_found")
        assert await finish(server) > 2
        assert await waiting(where, person.id) == 0
        assert (await rows_of(where))["deletions"] == []
        assert await seen(person) == await seen(newcomer)


@async_test
async def test_a_vacuum_deletes_the_rows_that_wait(open_server: OpenServer, where: str) -> None:
    """An operator who asks for the room of a deleted vault gets it, wherever its deletion stands."""
    async with open_server() as server:
        person = await server.person()
        await fill(person, "OLDS")
        good(await person("DELETE", f"/vault/{VAULT}"))
        assert await waiting(where, person.id) > COUNT
        await asyncio.to_thread(operations.vacuum, context_of(server.app).settings)
        assert await waiting(where, person.id) == 0


@pytest.mark.parametrize("done", [0, 1, 2, None], ids=["no step", "one step", "two steps", "all"])
@async_test
async def test_a_vault_of_the_same_uid_never_meets_the_old_one(where: str, clock: Clock, done: int | None) -> None:
    """Created again with the uids of before, after any number of steps, each in a process that begins anew."""

    def served() -> Any:
        return in_process_server(where, clock, **PATIENT)

    async with served() as server:
        person, newcomer = await server.person(), await server.person()
        await fill(person, "OLDS")
        good(await person("DELETE", f"/vault/{VAULT}"))
        await fill(newcomer, "NEWS")
        expected = await seen(newcomer)
    steps = 0
    while done is None or steps < done:
        async with served() as server:
            if not await step(server):
                break
        steps += 1
    async with served() as server:
        person.http = newcomer.http = server.http
        await fill(person, "NEWS")
        assert await seen(person) == expected
        followed = (await rows_of(where))["documents"]
        assert sum(row[0] == person.id and row[4].startswith("NEWS") for row in followed) == COUNT
        more = True
        while more:
            more = await step(server)
            assert await seen(person) == expected
        assert await waiting(where, person.id) == await waiting(where, newcomer.id)
        assert b"OLDS" not in json.dumps(await rows_of(where), default=str).encode()
        server.clock.pass_(100 * DAY)  # what is retained is purged, and counted off the new vault alone
        await server.purge_expired()
        usage = [good(await one("GET", "/auth/me"))["usage"] for one in (person, newcomer)]
        assert usage[0] == usage[1]


@async_test
async def test_a_purge_counts_nothing_of_a_deleted_vault_off_the_new_one(open_server: OpenServer) -> None:
    """Its trash and history are past their time while they wait."""
    async with open_server(history_days=90, trash_days=30, **PATIENT) as server:
        person, newcomer = await server.person(), await server.person()
        await fill(person, "OLDS")
        good(await person("DELETE", f"/vault/{VAULT}"))
        server.clock.pass_(100 * DAY)
        for one in (person, newcomer):
            await fill(one, "NEWS")
        await server.purge_expired()
        assert await seen(person) == await seen(newcomer)
        await finish(server)
        assert await seen(person) == await seen(newcomer)


@async_test
async def test_uids_of_a_deleted_vault_are_free_in_another(open_server: OpenServer) -> None:
    """For a document created alone, in a batch, at the same time as others, and for a vault."""
    async with open_server() as server:
        person = await server.person()
        await fill(person, "OLDS")
        good(await person("DELETE", f"/vault/{VAULT}"))
        vault = await person.vault()
        path = f"/vaults/{vault['uid']}"
        new = {"collection": "c", "data": "NEWS"}
        alone = good(await person("POST", f"{path}/documents", {**new, "uid": uid_of(0)}), 201)
        assert alone["version"] == 1
        operations = [{"op": "create", "uid": uid_of(n), **new} for n in range(1, 20)]
        assert len(good(await person("POST", f"{path}/batch", {"operations": operations}))["results"]) == 19
        together = [person("POST", f"{path}/documents", {**new, "uid": uid_of(n)}) for n in range(20, 40)]
        for response in await asyncio.gather(*together):
            good(response, 201)
        await person.vault(uid=uid_of(50))
        refused(await person("POST", f"{path}/documents", {**new, "uid": uid_of(50)}), 409, "uid_taken")
        listed = good(await person("GET", f"{path}/documents?since=0"))["documents"]
        assert {one["uid"] for one in listed} == {uid_of(n) for n in range(40)}
        assert good(await person("GET", f"{path}/documents/{uid_of(3)}/versions"))["versions"] == []
        await finish(server)
        assert good(await person("GET", f"{path}/documents?since=0"))["documents"] == listed
        assert good(await person("GET", "/auth/me"))["usage"] == {"documents": 40, "bytes": 160, "kept": 0}


@async_test
async def test_a_vault_is_deleted_again_while_the_first_one_waits(open_server: OpenServer, where: str) -> None:
    """The rows of both go."""
    async with open_server() as server:
        person = await server.person()
        for content in ("OLDS", "NEWS"):
            await fill(person, content)
            good(await person("DELETE", f"/vault/{VAULT}"))
            await step(server)
        assert good(await person("GET", "/vault"))["vaults"] == []
        await finish(server)
        assert await waiting(where, person.id) == 0


@async_test
async def test_a_deleted_account_is_gone_before_its_rows_are(open_server: OpenServer, where: str) -> None:
    """Its tokens and keys are refused, its email is free, and who registers with it meets nothing of it."""
    async with open_server() as server:
        person, newcomer = await server.person(), await server.person()
        await fill(person, "OLDS")
        key = await person.key()
        await delete_account(person)
        assert await waiting(where, person.id) > COUNT
        refused(await person("GET", "/vault"), 401, "unauthorized")
        refused(await person("GET", "/vault", bearer=key), 401, "unauthorized")
        refused(await person("GET", "/auth/export"), 401, "unauthorized")
        refused(await person("POST", "/vault", {"name": "n"}), 401, "unauthorized")
        again = {"refreshToken": person.refresh}
        refused(await server.http.post("/auth/refresh", json=again), 401, "invalid_refresh_token")
        refused(await server.login(person.email), 401, "invalid_credentials")
        heir = await server.person(person.email)
        assert heir.id != person.id
        assert await seen(heir) == await seen(newcomer)
        await fill(heir, "NEWS")
        expected = await seen(heir)
        while await step(server):
            assert await seen(heir) == expected
        tables = await rows_of(where)
        assert not [
            name for name, rows in tables.items() if name != "deletions" and any(person.id in row for row in rows)
        ]
        await context_of(server.app).deletions.truncate()
        assert (await rows_of(where))["deletions"] == []


@async_test
async def test_an_account_goes_with_the_vaults_that_it_had_deleted(open_server: OpenServer, where: str) -> None:
    """Whichever of them comes first."""
    async with open_server() as server:
        person = await server.person()
        for number in range(3):
            uid = f"0192f0c1-0000-7000-8000-{number:012}"
            await person.vault(uid=uid, name=f"{number}")
            await person.document({"uid": uid})
            if number:
                good(await person("DELETE", f"/vault/{uid}"))
        await delete_account(person)
        await finish(server)
        tables = await rows_of(where)
        assert not [table for table, rows in tables.items() if any(person.id in row for row in rows)]


@async_test
async def test_a_write_that_was_let_in_before_is_refused(open_server: OpenServer) -> None:
    """Also where its session was checked in another transaction: a deleted account's ledger is closed."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        await delete_account(person)
        wanted = wire.requests.CreateDocument(collection="c", data="AAAA")
        with pytest.raises(Unauthorized):
            await database_of(server.app).write_for(
                person.id, None, documents.create, Actor(person.id), AccountLimits(), vault["uid"], wanted
            )


@async_test
async def test_key_shares_go_with_the_response(open_server: OpenServer, where: str) -> None:
    """Those of all sessions, before any step; and a request that was let in before leaves none."""
    async with open_server() as server:
        person, other = await server.person(), await server.person()
        share = {"keyShare": "A" * 43 + "="}
        for one in (person, other):
            session = good(await one("PUT", "/auth/key-share", share))["sessionId"]
        there = good(await server.login(person.email))["accessToken"]
        kept = good(await person("PUT", "/auth/key-share", share, bearer=there))
        await delete_account(person)
        assert [row[:2] for row in (await rows_of(where))["key_shares"]] == [(other.id, session)]
        actor = Actor(person.id, kept["sessionId"])
        with pytest.raises(Unauthorized):
            await database_of(server.app).write_for(
                person.id, None, key_shares.put, actor, share["keyShare"], kept["expiresAt"]
            )
        assert len((await rows_of(where))["key_shares"]) == 1


@async_test
async def test_an_import_takes_the_place_of_what_was_deleted(open_server: OpenServer) -> None:
    """With the uids and the times that the rows have which still wait: it deletes those first."""
    async with open_server() as server:
        person = await server.person()
        await fill(person, "OLDS")
        file, before = (await person("GET", "/auth/export")).content, await seen(person)
        good(await person("DELETE", f"/vault/{VAULT}"))
        headers = {"content-type": "application/x-ndjson"}
        good(await person("POST", "/auth/import", headers=headers, content=file))
        assert await seen(person) == before
        await finish(server)
        assert await seen(person) == before


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_two_nodes_delete_side_by_side(where: str, clock: Clock) -> None:
    """Each account is worked on by one of them at a time, and its owner writes meanwhile."""
    async with AsyncExitStack() as stack:
        nodes: list[InProcessServer] = [
            await stack.enter_async_context(in_process_server(where, clock, **PATIENT)) for _ in range(2)
        ]
        people = [await nodes[0].person() for _ in range(3)]
        for person in people:
            await fill(person, "OLDS")
            good(await person("DELETE", f"/vault/{VAULT}"))
        vault = await people[0].vault()
        await delete_account(people[2])
        refused(await nodes[1].http.get("/vault", headers={"authorization": f"Bearer {people[2].access}"}), 401)

        async def work(node: InProcessServer) -> int:
            steps, progress = 0, deletions.DeletionProgress()
            while await step(node, progress):
                steps += 1
            return steps

        async def write() -> None:
            for _ in range(20):
                await people[0].document(vault)

        writing = asyncio.create_task(write())
        assert sum(await asyncio.gather(*(work(node) for node in nodes for _ in range(2)))) > 0
        await writing
        tables = await rows_of(where)
        assert len(tables["documents"]) == 20
        assert tables["versions"] == tables["blob_versions"] == []
        assert len(good(await people[0]("GET", f"/vaults/{vault['uid']}/documents"))["documents"]) == 20
