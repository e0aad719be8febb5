"""An export: everything, in order, at one moment, with a trailer that tells a whole file from a cut one."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from tests.export.files import body, exported, furnish, lines
from tests.kit.asynchronous import async_test
from tests.kit.network.slow_reader import SlowReader
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of


@async_test
async def test_the_file_holds_everything_and_tells_so(open_server: OpenServer) -> None:
    """A header, each vault before what is in it, a trailer whose counts and checksum fit."""
    async with open_server() as server:
        ann = await server.person()
        vault = await furnish(ann)
        answer = await ann("GET", "/auth/export")
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.headers["content-disposition"] == 'attachment; filename="strongroom-export.ndjson"'
        header, *rest, trailer = lines(answer.content)
        epoch = (await server.http.get("/health")).json()["epoch"]
        told = {
            "kind": "header",
            "format": "strongroom-export",
            "version": 2,
            "epoch": epoch,
            "exportedAt": server.clock.now,
        }
        assert told.items() <= header.items()
        assert header["clock"] == max(line["updatedAt"] for line in rest)
        kinds = [line["kind"] for line in rest]
        assert trailer["counts"] == {
            "keyrings": 0,
            "keyringVersions": 0,
            "vaults": 2,
            "documents": 12,
            "versions": kinds.count("version"),
            "blobVersions": kinds.count("blobVersion"),
        }
        before = b"".join(answer.content.splitlines(keepends=True)[:-1])
        assert trailer["sha256"] == hashlib.sha256(before).hexdigest()
        mine = [line for line in rest if vault["uid"] in {line["uid"], line.get("vaultUid")}]
        order = ["vault", "document", "version", "blobVersion"]
        assert [line["kind"] for line in mine] == sorted((line["kind"] for line in mine), key=order.index)
        for kind in ("document", "version"):
            times = [line["updatedAt"] for line in mine if line["kind"] == kind]
            assert times == sorted(set(times))


@async_test
async def test_documents_are_as_they_are_stored(open_server: OpenServer) -> None:
    """Every field of every document and vault is that of the API; null is absent."""
    async with open_server() as server:
        ann = await server.person()
        vault = await furnish(ann)
        written = lines(await exported(ann))
        listed = (await ann("GET", f"/vaults/{vault['uid']}/documents?since=0")).json()["documents"]
        documents = [line for line in written if line["kind"] == "document"]
        assert [{name: line.get(name) for name in listed[0]} for line in documents] == listed
        [shown] = [line for line in written if line["kind"] == "vault" and line["uid"] == vault["uid"]]
        stored = (await ann("GET", f"/vault/{vault['uid']}")).json()
        assert {name: shown[name] for name in ("uid", "name", "version", "updatedAt", "data", "salt")}.items() <= (
            stored.items()
        )


@async_test
async def test_nothing_of_others_and_no_secret_is_in_it(open_server: OpenServer) -> None:
    """Neither another account's things, nor an email, a password, a key, a session."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(bob)
        key = await ann.key()
        file = (await exported(ann)).decode()
        assert [line["kind"] for line in lines(file.encode())] == ["header", "trailer"]
        for secret in (ann.email, ann.id, ann.access, ann.refresh, key, "correct horse", bob.id):
            assert secret not in file


@async_test
async def test_the_log_tells_of_an_export(open_server: OpenServer) -> None:
    """Somebody who took everything along is noticed."""
    async with open_server() as server:
        ann = await server.person()
        server.clock.pass_(1)
        await exported(ann)
        assert (await ann("GET", "/auth/events")).json()["events"][0]["type"] == "exported"
        assert (await ann("HEAD", "/auth/export")).headers["content-type"] == "application/x-ndjson"
        assert [line["type"] for line in (await ann("GET", "/auth/events")).json()["events"]].count("exported") == 1


@async_test
async def test_the_file_is_one_moment(open_server: OpenServer, monkeypatch: Any) -> None:
    """What is written in any vault while the file is read is not in it, and the file is whole."""
    monkeypatch.setattr("strongroom.server.routes.transfer.CHUNK", 2_000)
    async with open_server() as server:
        ann = await server.person()
        vaults = [await ann.vault() for _ in range(4)]
        documents = [await ann.document(vault, data="A" * 1_500) for vault in vaults for _ in range(4)]
        before = body(await exported(ann))
        slow = SlowReader(server.app, ann.access)
        await slow.take(2)
        for vault, document in zip([vault for vault in vaults for _ in range(4)], documents, strict=True):
            await ann.document(vault, data="B" * 1_500)
            path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
            assert (await ann("PUT", path, {"data": "CCCC", "version": 1})).status_code == 200
        await ann.vault()
        assert (await ann("DELETE", f"/vault/{vaults[3]['uid']}")).status_code == 200
        file = await slow.rest()
        assert body(file) == before
        assert lines(file)[-1]["counts"]["documents"] == 16


@async_test
async def test_a_reader_who_goes_away_lets_go_of_the_database(open_server: OpenServer, monkeypatch: Any) -> None:
    """No snapshot, no connection and no turn is kept."""
    monkeypatch.setattr("strongroom.server.routes.transfer.CHUNK", 2_000)
    async with open_server(db_pool=2) as server:
        ann = await server.person()
        vault = await ann.vault()
        for _ in range(16):
            await ann.document(vault, data="A" * 1_500)
        for _ in range(5):  # more than there are connections
            slow = SlowReader(server.app, ann.access)
            await slow.take(3)
            await slow.go_away()
        room = context_of(server.app)
        assert (room.lists.held, room.exports.held) == (0, 0)
        pool = getattr(room.db, "_pool", None)
        assert pool is None or pool._out == 0
        assert not getattr(room.db, "_snapshots", {})
        assert len(lines(await exported(ann))) == 16 + 3


@async_test
async def test_vaults_of_several_pages_come_once_each(open_server: OpenServer, monkeypatch: Any) -> None:
    """An account with more vaults than one page holds: the file has them all, in their order, and ends."""
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"strongroom.store.{engine}.transaction.PAGE_BYTES", 2_000)
    monkeypatch.setattr("strongroom.store.postgres.transaction._statements", {})
    async with open_server() as server:
        ann = await server.person()
        made = sorted([(await ann.vault(data="A" * 900, salt="AA=="))["uid"] for _ in range(7)])
        async with asyncio.timeout(30):
            file = lines(await exported(ann))
        assert [line["uid"] for line in file if line["kind"] == "vault"] == made


@async_test
async def test_an_account_exports_one_file_at_a_time(open_server: OpenServer, monkeypatch: Any) -> None:
    """Who asks for another one meanwhile is told to wait; lists are read all the same."""
    monkeypatch.setattr("strongroom.server.routes.transfer.CHUNK", 2_000)
    monkeypatch.setattr("strongroom.server.snapshot_slots.WAIT_SECONDS", 0.05)
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"strongroom.store.{engine}.transaction.PAGE_BYTES", 2_000)
    monkeypatch.setattr("strongroom.store.postgres.transaction._statements", {})
    async with open_server(db_pool=2) as server:
        ann = await server.person()
        vault = await ann.vault()
        for _ in range(8):
            await ann.document(vault, data="A" * 1_500)
        slow = SlowReader(server.app, ann.access)
        await slow.take(2)
        refused = await ann("GET", "/auth/export")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
        assert len((await ann("GET", f"/vaults/{vault['uid']}/documents")).json()["documents"]) == 8
        assert len(lines(await slow.rest())) == 8 + 3


def test_the_lines_are_the_stored_rows() -> None:
    """What an import reads of a line is field by field what an export writes of a row."""
    from strongroom.wire import export_lines as shapes

    kinds = (shapes.KeyringLine, shapes.KeyringVersionLine, shapes.VaultLine)
    for line in (*kinds, shapes.DocumentLine, shapes.VersionLine, shapes.BlobLine):
        assert line.__struct_fields__ == line.becomes.__struct_fields__
        assert line.__struct_config__.tag == line.becomes.__struct_config__.tag
