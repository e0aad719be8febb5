"""An import: what one account kept, another has, to the letter; broken off and repeated, nothing is there twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from strongroom import store
from strongroom.actions import admin
from strongroom.model import RETAINED_ROW_BYTES
from strongroom.rules import DAY
from strongroom.server.routes import import_upload
from tests.export.files import LINES, Json, Upload, body, came, exported, furnish, imported, lines, sealed
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.responses import refused
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of
from tests.kit.servers.populated_database import Served
from tests.kit.servers.postgres import postgres

SMALL = 8  # lines in a batch, so that a short file has many


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short files come in by several transactions."""
    monkeypatch.setattr(import_upload, "BATCH_LINES", SMALL)


async def usage(person: Person) -> Json:
    shown: Json = (await person("GET", "/auth/me")).json()["usage"]
    return {name: shown[name] for name in ("documents", "bytes")}


async def counted(person: Person) -> Json:
    """What a person has, counted row by row."""
    found = {"documents": 0, "bytes": 0}
    for vault in (await person("GET", "/vault")).json()["vaults"]:
        listed = (await person("GET", f"/vaults/{vault['uid']}/documents")).json()["documents"]
        size = sum(len((document["data"] + (document["hmac"] or "")).encode()) for document in listed)
        size += len((vault.get("data", "") + vault.get("salt", "")).encode())
        assert (vault["documents"], vault["bytes"]) == (len(listed), size)
        found["documents"] += len(listed)
        found["bytes"] += size
    return found


async def state(server: InProcessServer, person: Person) -> Any:
    """The row of the person's import."""
    return await database_of(server.app).read(store.imports.get, person.id)


# A whole file


@async_test
async def test_what_comes_in_is_what_went_out(open_server: OpenServer) -> None:
    """Uids, versions, times, tombstones, history and ciphertext are the same; so is an export of the import."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=30)
        file = await exported(ann)
        answer = await imported(bob, file)
        assert (answer.status_code, answer.json()) == (200, came(file))
        assert body(await exported(bob)) == body(file)
        for vault in (await ann("GET", "/vault")).json()["vaults"]:
            assert (await bob("GET", f"/vault/{vault['uid']}")).json() == vault
            path = f"/vaults/{vault['uid']}/documents?since=0"
            assert (await bob("GET", path)).json() == (await ann("GET", path)).json()
        assert await usage(bob) == await usage(ann) == await counted(bob)


@pytest.mark.parametrize("towards", ["postgres", "sqlite"])
@async_test
async def test_from_one_engine_to_the_other(tmp_path: Path, clock: Clock, towards: str) -> None:
    """A file of one engine comes in on the other, and out again the same."""
    places = [str(tmp_path / "vault.db"), postgres().fresh()]
    if towards == "sqlite":
        places.reverse()
    files: list[bytes] = []
    for place in places:
        async with Served(place, clock) as server:
            person = await server.person()
            if files:
                assert (await imported(person, files[0])).status_code == 200
            else:
                await furnish(person, documents=20)
            files.append(await exported(person))
    assert body(files[0]) == body(files[1])


@async_test
async def test_an_empty_account_moves_too(open_server: OpenServer) -> None:
    """A header and a trailer are a whole file; it brings nothing, and may come twice."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        file = await exported(ann)
        for _ in range(2):
            answer = await imported(bob, file)
            assert (answer.status_code, answer.json()) == (200, dict.fromkeys(came(file), 0))
        await bob.vault()


@async_test
async def test_the_account_goes_on_after_all_that_came(open_server: OpenServer) -> None:
    """The next write is later than anything in the file, though the clock here is a day behind; versions count on."""
    async with open_server() as server:
        ann = await server.person()
        vault = await furnish(ann)
        file = await exported(ann)
        server.clock.pass_(60_000 - DAY)
        bob = await server.person()
        assert (await imported(bob, file)).status_code == 200
        path = f"/vaults/{vault['uid']}/documents"
        known = (await bob("GET", f"{path}?since=0")).json()
        document = next(item for item in known["documents"] if item["deletedAt"] is None)
        put = (await bob("PUT", f"{path}/{document['uid']}", {"data": "DDDD", "version": document["version"]})).json()
        assert put["version"] == document["version"] + 1
        assert put["updatedAt"] > lines(file)[0]["clock"]
        assert (await bob("GET", f"{path}?since={known['next']}")).json()["documents"] == [put]
        revived = next(item for item in known["documents"] if item["deletedAt"] is not None)
        again = await bob("PUT", f"{path}/{revived['uid']}", {"data": "EEEE", "version": revived["version"]})
        assert again.json()["deletedAt"] is None
        assert await usage(bob) == await counted(bob)


@async_test
async def test_an_account_whose_clock_is_later_keeps_it(open_server: OpenServer) -> None:
    """Nothing that is written after an import is earlier than what was written before it."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann)
        server.clock.pass_(100_000)
        gone = await bob.vault()
        assert (await bob("DELETE", f"/vault/{gone['uid']}")).status_code == 200
        server.clock.pass_(-100_000)
        assert (await imported(bob, await exported(ann))).status_code == 200
        assert (await bob.vault())["updatedAt"] > gone["updatedAt"]


@async_test
async def test_those_who_follow_the_account_learn_of_the_vaults(open_server: OpenServer) -> None:
    """Each vault that came in is a change of the account, at a moment of its own after everything else."""
    from strongroom.store.queries.ledgers import Ledger
    from strongroom.store.statement import Sql

    changes = Sql("SELECT changed_at, 0, version, 0 FROM vault_changes WHERE user_id = :user_id ORDER BY changed_at")
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann)
        file = await exported(ann)
        assert (await imported(bob, file)).status_code == 200

        async def told(tx: Any) -> list[Ledger]:
            return await tx.all(Ledger, changes, user_id=bob.id)  # type: ignore[no-any-return]

        found = await database_of(server.app).read(told)
        clock = lines(file)[0]["clock"]
        assert [row.clock for row in found] == [clock + 1, clock + 2]
        assert (await bob.vault())["updatedAt"] == clock + 3
        assert (await bob("GET", "/auth/events")).json()["events"][0]["type"] in {"imported", "registered"}


@async_test
async def test_a_file_larger_than_a_request_may_be(open_server: OpenServer) -> None:
    """MAX_BODY_BYTES bounds a line, IMPORT_MAX_BYTES the file; neither stands in the way of the other."""
    async with open_server(max_body_bytes=2_048, import_max_bytes=100_000) as server:
        ann, bob = await server.person(), await server.person()
        vault = await ann.vault()
        for _ in range(20):
            await ann.document(vault, data="A" * 1_900)
        file = await exported(ann)
        assert len(file) > 20 * 1_900
        assert (await imported(bob, file)).status_code == 200
        header, *rest = lines(file)[:-1]
        long = {**rest[-1], "data": "A" * (2_048 + import_upload.LINE_OVERHEAD)}
        carol = await server.person()
        error = refused(await imported(carol, sealed([header, *rest[:-1], long])), 400, "validation_error")
        assert (error["details"]["line"], list(error["details"]["fields"])) == (22, ["line"])
        dora = await server.person()
        more = [{**rest[1], "uid": f"{n:08}{_D1[8:]}", "updatedAt": rest[-1]["updatedAt"] + n} for n in range(60)]
        late = header["clock"] + 1_000
        large = sealed([{**header, "clock": late}, {**rest[0], "updatedAt": late}, *more])
        for content in (b"x" * 100_001, _in_pieces(large)):
            refused(await imported(dora, content), 413, "payload_too_large")
    async with open_server(max_body_bytes=2_048, import_max_bytes=0) as server:
        assert (await imported(await server.person(), file)).status_code == 200


async def _in_pieces(content: bytes) -> Any:
    for at in range(0, len(content), 10_000):
        yield content[at : at + 10_000]


@async_test
async def test_as_many_versions_are_kept_as_where_they_were_replaced(open_server: OpenServer) -> None:
    """The newest so many of each document and blob stay, however far their numbers lie apart; the rest is left out."""
    async with open_server(history_versions=2) as server:
        header, vault = {**_HEADER, "clock": 1_000}, {**_VAULT, "version": 900}
        jumps = [1, 3, 40, 500]  # a client may choose the next version
        document = {**_DOCUMENT, "version": 700, "updatedAt": 800}
        versions = [{**_VERSION, "version": n, "updatedAt": 10 + n, "replacedAt": 600} for n in jumps]
        blobs = [{**_BLOB, "version": n} for n in jumps]
        ann = await server.person()
        answer = await imported(ann, sealed([header, vault, document, *versions, *blobs]))
        assert (answer.status_code, answer.json()["leftOut"]) == (200, 4), answer.text
        kept = [line for line in lines(await exported(ann)) if line["kind"] in {"version", "blobVersion"}]
        assert [line["version"] for line in kept] == [40, 500, 40, 500]
        size = sum(len(line["data"] + line.get("salt", "")) + RETAINED_ROW_BYTES for line in kept)
        assert await database_of(server.app).read(store.retained.of_account, ann.id) == size


# What is refused


@async_test
async def test_only_a_user_and_only_a_file(open_server: OpenServer) -> None:
    """No API key, no other type of content."""
    async with open_server() as server:
        ann = await server.person()
        key = await ann.key()
        for method, path in (("GET", "/auth/export"), ("POST", "/auth/import"), ("DELETE", "/auth/import")):
            refused(await ann(method, path, bearer=key), 403, "insufficient_scope")
        refused(await ann("POST", "/auth/import", {"kind": "header"}), 415, "unsupported_media_type")
        refused(await ann("DELETE", "/auth/import"), 404, "import_not_found")
        refused(await imported(ann, b""), 400, "validation_error")
        await ann.vault()


@async_test
async def test_an_account_with_vaults_takes_no_import(open_server: OpenServer) -> None:
    """Not even of its own export; an account that is emptied does."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        file = await exported(ann)
        refused(await imported(ann, file), 409, "account_not_empty")
        assert (await ann("DELETE", f"/vault/{vault['uid']}")).status_code == 200
        assert (await imported(ann, file)).status_code == 200
        refused(await imported(ann, sealed(lines(file)[:-1])), 409, "account_not_empty")


_HEADER: Json = {
    "kind": "header",
    "format": "strongroom-export",
    "version": 2,
    "id": "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6",
    "epoch": "e",
    "exportedAt": 9,
    "clock": 1_000,
}
_V1, _V2 = "0192f0c1-0000-7000-8000-000000000001", "0192f0c1-0000-7000-8000-000000000002"
_D1, _D2 = "0192f0c1-0000-7000-8000-0000000000d1", "0192f0c1-0000-7000-8000-0000000000d2"
_VAULT: Json = {"kind": "vault", "uid": _V1, "name": "v", "version": 3, "createdAt": 1, "updatedAt": 900}
_OTHER: Json = {**_VAULT, "uid": _V2, "name": "w"}
_DOCUMENT: Json = {
    "kind": "document", "uid": _D1, "vaultUid": _V1, "collection": "c", "version": 3, "createdAt": 10, "updatedAt": 100,
    "data": "AAAA",
}  # fmt: skip
_VERSION: Json = {**_DOCUMENT, "kind": "version", "version": 2, "updatedAt": 50, "replacedAt": 100}
_BLOB: Json = {
    "kind": "blobVersion", "uid": _V1, "version": 1, "updatedAt": 1, "replacedAt": 5, "data": "x", "salt": "",
}  # fmt: skip
_TOMB: Json = {**_DOCUMENT, "uid": _D2, "updatedAt": 200, "deletedAt": 200}
_GOOD = [_HEADER, _VAULT, _DOCUMENT, _TOMB, _VERSION, _BLOB, _OTHER]


def _without(line: Json, *names: str) -> Json:
    return {name: value for name, value in line.items() if name not in names}


BAD: dict[str, tuple[list[Any], int, str]] = {
    "no header": ([_VAULT], 1, "kind"),
    "nothing but an empty line": ([b""], 1, "body"),
    "no JSON": ([_HEADER, b"{"], 2, "body"),
    "no object": ([_HEADER, b"[]"], 2, "body"),
    "no UTF-8": ([_HEADER, b'{"kind": "vault", "x": "\xff"}'], 2, "body"),
    "an unknown kind": ([_HEADER, {"kind": "session"}], 2, "kind"),
    "a kind that is no text": ([_HEADER, {"kind": 1}], 2, "kind"),
    "another format": ([{**_HEADER, "format": "zip"}], 1, "format"),
    "a later version": ([{**_HEADER, "version": 3}], 1, "version"),
    "the version without keyrings": ([{**_HEADER, "version": 1}], 1, "version"),
    "an id that is none": ([{**_HEADER, "id": "x"}], 1, "id"),
    "a clock beyond all times": ([{**_HEADER, "clock": 2**53}], 1, "clock"),
    "two headers": ([_HEADER, _HEADER], 2, "kind"),
    "a name with a line feed": ([_HEADER, {**_VAULT, "name": "a\n"}], 2, "name"),
    "a blob without salt": ([_HEADER, {**_VAULT, "data": "x"}], 2, "salt"),
    "a vault after the clock": ([_HEADER, {**_VAULT, "updatedAt": 1_001}], 2, "updatedAt"),
    "a vault before its creation": ([_HEADER, {**_VAULT, "updatedAt": 0}], 2, "updatedAt"),
    "a vault at version 0": ([_HEADER, {**_VAULT, "version": 0}], 2, "version"),
    "a vault twice": ([_HEADER, _VAULT, {**_VAULT, "name": "w"}], 3, "uid"),
    "a name twice": ([_HEADER, _VAULT, {**_OTHER, "name": "v"}], 3, "uid"),
    "a document without a vault": ([_HEADER, _DOCUMENT], 2, "vaultUid"),
    "a document of another vault": ([_HEADER, _OTHER, _DOCUMENT], 3, "vaultUid"),
    "plaintext": ([_HEADER, _VAULT, {**_DOCUMENT, "data": "Dear diary"}], 3, "data"),
    "a document without data": ([_HEADER, _VAULT, _without(_DOCUMENT, "data")], 3, "data"),
    "a purged one with data": ([_HEADER, _VAULT, {**_TOMB, "purgedAt": 300}], 3, "data"),
    "a purged one that lives": ([_HEADER, _VAULT, _without({**_DOCUMENT, "purgedAt": 300}, "data")], 3, "purgedAt"),
    "a document of no collection": ([_HEADER, _VAULT, _without(_DOCUMENT, "collection")], 3, "collection"),
    "a time that is no number": ([_HEADER, _VAULT, {**_DOCUMENT, "createdAt": "1"}], 3, "createdAt"),
    "a document after its vault": ([_HEADER, _VAULT, {**_DOCUMENT, "updatedAt": 901}], 3, "updatedAt"),
    "a document before its creation": ([_HEADER, _VAULT, {**_DOCUMENT, "updatedAt": 9}], 3, "updatedAt"),
    "two documents at one time": ([_HEADER, _VAULT, _DOCUMENT, {**_TOMB, "updatedAt": 100}], 4, "updatedAt"),
    "a document twice": ([_HEADER, _VAULT, _DOCUMENT, {**_DOCUMENT, "updatedAt": 101}], 4, "uid"),
    "a document with a vault's uid": ([_HEADER, _VAULT, {**_DOCUMENT, "uid": _V1}], 3, "uid"),
    "a vault with a document's uid": ([_HEADER, _VAULT, _DOCUMENT, {**_OTHER, "uid": _D1}], 4, "uid"),
    "a document after versions": ([_HEADER, _VAULT, _DOCUMENT, _VERSION, _TOMB], 5, "kind"),
    "a version of nothing": ([_HEADER, _VAULT, _VERSION], 3, "version"),
    "a version that is not before": ([_HEADER, _VAULT, _DOCUMENT, {**_VERSION, "version": 3}], 4, "version"),
    "a version twice": ([_HEADER, _VAULT, _DOCUMENT, _VERSION, {**_VERSION, "updatedAt": 51}], 5, "version"),
    "versions out of order": ([_HEADER, _VAULT, _DOCUMENT, _VERSION, {**_VERSION, "version": 1}], 5, "updatedAt"),
    "a version without data": ([_HEADER, _VAULT, _DOCUMENT, _without(_VERSION, "data")], 4, "data"),
    "a blob of another vault": ([_HEADER, _VAULT, {**_BLOB, "uid": _V2}], 3, "uid"),
    "a blob that is not before": ([_HEADER, _VAULT, {**_BLOB, "version": 3}], 3, "version"),
    "a blob twice": ([_HEADER, _VAULT, _BLOB, _BLOB], 4, "version"),
}


@async_test
async def test_a_bad_line_is_refused_by_its_number(open_server: OpenServer) -> None:
    """Each line keeps to the rules of single requests and to its place; the refusal says which and why."""
    async with open_server() as server:
        for fault, (written, number, field) in BAD.items():
            print(fault)  # noqa: T201 - the last one is the one that failed
            ann = await server.person()
            error = refused(await imported(ann, sealed(written)), 400, "validation_error")
            assert (error["details"]["line"], list(error["details"]["fields"])) == (number, [field])
            assert error["message"].startswith(f"Line {number} of the file is not valid: ")
            assert "Dear diary" not in json.dumps(error)
            if await state(server, ann) is not None:
                assert (await ann("DELETE", "/auth/import")).status_code == 200
            assert (await imported(ann, sealed(_GOOD))).status_code == 200


@async_test
async def test_a_file_that_is_not_whole_is_refused(open_server: OpenServer) -> None:
    """A file that was cut off, altered or lengthened does not finish; the right one then does."""
    async with open_server() as server:
        ann = await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        rows = file.splitlines(keepends=True)
        faults = {
            "cut in a line": file[: len(file) - 30],
            "cut at a line": b"".join(rows[:-1]),
            "altered": file.replace(b'"BBBB', b'"BBBC', 1),
            "counts": b"".join(rows[:-1]) + rows[-1].replace(b'"vaults":2', b'"vaults":3'),
            "no sum": b"".join(rows[:-1]) + b'{"kind":"trailer","counts":{}}\n',
            "goes on": file + rows[1],
        }
        for fault, spoilt in faults.items():
            print(fault)  # noqa: T201 - the last one is the one that failed
            bob = await server.person()
            assert spoilt != file
            refused(await imported(bob, spoilt), 400, "validation_error")
            assert (await state(server, bob)).state == "open"
            refused(await bob("POST", "/vault", {"name": "x"}), 409, "import_unfinished")
            again = await imported(bob, file)
            if fault == "altered":  # what was altered is in already: only another beginning helps
                refused(again, 409, "import_unfinished")
                assert (await bob("DELETE", "/auth/import")).status_code == 200
                again = await imported(bob, file)
            assert again.status_code == 200
            assert body(await exported(bob)) == body(file)
            assert await usage(bob) == await counted(bob)


@async_test
async def test_a_quota_holds_for_an_import(open_server: OpenServer, where: str) -> None:
    """507, with what is used by then; given up, the account has its room again."""
    async with open_server() as server:
        ann = await server.person()
        await furnish(ann, documents=30)
        file = await exported(ann)
        whole = await usage(ann)
    for limit in ({"quota_documents": 10}, {"quota_bytes": 500}):
        async with open_server(**limit) as server:
            bob = await server.person()
            error = refused(await imported(bob, file), 507, "quota_exceeded")
            assert error["details"]["usage"] == await usage(bob) == await counted(bob)
            assert (await bob("DELETE", "/auth/import")).status_code == 200
            assert await usage(bob) == {"documents": 0, "bytes": 0}
    async with open_server(quota_documents=whole["documents"], quota_bytes=whole["bytes"]) as server:
        assert (await imported(await server.person(), file)).status_code == 200
    assert where


# Broken off, and repeated


@async_test
async def test_an_import_that_broke_off_goes_on(open_server: OpenServer) -> None:
    """Cut at every line in turn: what came in stays, the same file finishes it, nothing is there twice."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        rows = file.splitlines(keepends=True)
        held = 0
        for count in range(2, len(rows)):  # it begins with the first line after the header and the keyrings
            upload = Upload(server.app, bob)
            for row in rows[:count]:
                await upload.piece(row)
            await upload.vanish()
            assert (await state(server, bob)).lines >= held
            held = (await state(server, bob)).lines
            assert await usage(bob) == await counted(bob)
        assert held > len(rows) - SMALL - 2
        answer = await imported(bob, file)
        assert (answer.status_code, answer.json()) == (200, came(file))
        assert body(await exported(bob)) == body(file)
        assert await usage(bob) == await usage(ann)
        again = await imported(bob, file)  # the answer was lost
        assert (again.status_code, again.json()) == (200, answer.json())
        assert body(await exported(bob)) == body(file)


@async_test
async def test_what_was_due_while_an_import_was_broken_off_does_not_stand_in_its_way(open_server: OpenServer) -> None:
    """The trash is emptied between the tombstones and their versions: those are left out, and all else comes in."""
    patient = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}
    async with open_server(trash_days=3, **patient) as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        rows = lines(file)
        upload = Upload(server.app, bob)
        for row, line in zip(rows, file.splitlines(keepends=True), strict=True):
            if row["kind"] == "version":
                break
            await upload.piece(line)
        await upload.vanish()
        server.clock.pass_(4 * DAY)
        await server.purge_expired()
        answer = await imported(bob, file)
        buried = {row["uid"] for row in rows if row["kind"] == "document" and "deletedAt" in row}
        before = [row for row in rows if row["kind"] == "version" and row["uid"] in buried]
        assert before
        assert answer.status_code == 200, answer.text
        assert 0 < answer.json()["leftOut"] <= len(before)
        assert await usage(bob) == await counted(bob) == await usage(ann)
        await server.purge_expired()
        assert body(await exported(bob)) == body(await exported(ann))


@async_test
async def test_until_then_nothing_else_is_written(open_server: OpenServer) -> None:
    """No vault, no document, no batch of another file; reading goes on, and so does the account itself."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        vault = await furnish(ann, documents=20)
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(file[: len(file) * 3 // 4])
        await upload.vanish()
        path = f"/vaults/{vault['uid']}/documents"
        document = (await bob("GET", path)).json()["documents"][0]
        for method, target, content in (
            ("POST", "/vault", {"name": "x"}),
            ("PUT", f"/vault/{vault['uid']}", {"name": "x", "version": 3}),
            ("DELETE", f"/vault/{vault['uid']}", None),
            ("POST", path, {"collection": "c", "data": "AAAA"}),
            ("PUT", f"{path}/{document['uid']}", {"data": "AAAA", "version": document["version"]}),
            ("DELETE", f"{path}/{document['uid']}", None),
        ):
            refused(await bob(method, target, content), 409, "import_unfinished")
        other = sealed([{**lines(file)[0], "id": _HEADER["id"]}, *lines(file)[1:-1]])
        refused(await imported(bob, other), 409, "import_unfinished")
        changed = sealed([lines(file)[0], {**lines(file)[1], "name": "another"}, *lines(file)[2:-1]])
        error = refused(await imported(bob, changed), 409, "import_unfinished")
        assert "not the file" in error["message"]
        short = sealed(lines(file)[:3])
        refused(await imported(bob, short), 409, "import_unfinished")
        assert (await bob("GET", "/auth/export")).status_code == 200
        assert (await imported(bob, file)).status_code == 200
        assert body(await exported(bob)) == body(file)
        await bob.vault()


@async_test
async def test_given_up_the_account_is_empty_again(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is left, another file may come, and giving up twice does not touch what was made since.

    Documents of the same uids and of others that belong to somebody else stay as they are.
    """
    monkeypatch.setattr("strongroom.actions.imports.DELETED_AT_ONCE", 3)
    async with open_server() as server:
        first, ann, bob = [await server.person() for _ in range(3)]
        await furnish(first, documents=20)
        await furnish(ann, documents=20)
        others = [body(await exported(first)), body(await exported(ann))]
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(file[:-10])
        await upload.vanish()
        twice = await asyncio.gather(bob("DELETE", "/auth/import"), bob("DELETE", "/auth/import"))
        assert 200 in {given_up.status_code for given_up in twice} <= {200, 404}
        assert [body(await exported(first)), body(await exported(ann))] == others
        assert (await bob("GET", "/vault")).json() == {"vaults": []}
        assert await usage(bob) == {"documents": 0, "bytes": 0}
        assert [line["kind"] for line in lines(await exported(bob))] == ["header", "trailer"]
        await bob.vault()
        refused(await bob("DELETE", "/auth/import"), 404, "import_not_found")
        refused(await imported(bob, file), 409, "account_not_empty")
        assert len((await bob("GET", "/vault")).json()["vaults"]) == 1


@async_test
async def test_an_import_that_is_being_given_up_does_not_go_on(open_server: OpenServer) -> None:
    """A server that was ended in the middle of emptying: the file does not come in, giving up again finishes it."""
    from strongroom.actions import imports
    from strongroom.model import Actor

    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(file[: len(file) // 2])
        await database_of(server.app).write(imports.abandon, Actor(bob.id))
        await upload.piece(file[len(file) // 2 :])
        await upload.end()
        assert upload.status == 409
        refused(await imported(bob, file), 409, "import_unfinished")
        assert (await bob("DELETE", "/auth/import")).status_code == 200
        assert (await imported(bob, file)).status_code == 200
        assert body(await exported(bob)) == body(file)


@async_test
async def test_two_who_send_the_same_file_at_once(open_server: OpenServer) -> None:
    """At most one of them goes on; what comes of it is there once."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=30)
        file = await exported(ann)
        rows = file.splitlines(keepends=True)
        uploads = [Upload(server.app, bob) for _ in range(3)]
        for row in rows:
            await asyncio.gather(*(upload.piece(row) for upload in uploads))
        await asyncio.gather(*(upload.end() for upload in uploads))
        assert sorted(upload.status for upload in uploads)[1:] == [409, 409]
        answer = await imported(bob, file)
        assert (answer.status_code, answer.json()) == (200, came(file))
        assert body(await exported(bob)) == body(file)
        assert await usage(bob) == await counted(bob)


@async_test
async def test_an_ended_session_brings_nothing_more(open_server: OpenServer) -> None:
    """Logged out in the middle: 401, and no line more; an access token that expires on the way does not matter."""
    async with open_server(jwt_access_expiry="60s") as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        half = len(file) // 2
        upload = Upload(server.app, bob)
        await upload.piece(file[:half])
        held = (await state(server, bob)).lines
        assert (await bob("POST", "/auth/logout")).status_code == 200
        await upload.piece(file[half:])
        await upload.end()
        assert upload.status == 401
        assert (await state(server, bob)).lines == held
        signed_in = (await server.login(bob.email)).json()
        bob = Person(server.http, bob.email, signed_in)
        upload = Upload(server.app, bob)
        await upload.piece(file[:half])
        server.clock.pass_(61_000)
        await upload.piece(file[half:])
        await upload.end()
        assert upload.status == 200


@async_test
async def test_who_may_not_write_any_more_brings_nothing_more(open_server: OpenServer) -> None:
    """Whatever ends the right to write in the middle of an import: the next batch is refused, and nothing is added."""
    async with open_server() as server:
        ann = await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        half = len(file) // 2
        db = database_of(server.app)
        for ending, status in (("disabled", 403), ("signed out", 401), ("password", 401), ("deleted", 401)):
            print(ending)  # noqa: T201 - the last one is the one that failed
            bob = await server.person()
            upload = Upload(server.app, bob)
            await upload.piece(file[:half])
            held = (await state(server, bob)).lines
            match ending:
                case "disabled":
                    assert await db.write(admin.disable, bob.id)
                case "signed out":
                    assert await db.write(admin.sign_out, bob.id) == 1
                case "password":
                    other = Person(server.http, bob.email, (await server.login(bob.email)).json())
                    words = {"currentPassword": "correct horse", "newPassword": "another horse"}
                    assert (await other("PUT", "/auth/password", words)).status_code == 200
                case _:
                    await db.write_long(admin.delete, bob.id)
            await upload.piece(file[half:])
            await upload.end()
            assert upload.status == status
            if ending != "deleted":
                assert (await state(server, bob)).lines == held


@async_test
async def test_a_device_that_reads_meanwhile_misses_nothing(open_server: OpenServer) -> None:
    """Every vault fills in the order of its cursor: whoever follows `next`, or begins at the clock shown, gets all."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        vault = await furnish(ann, documents=30)
        path = f"/vaults/{vault['uid']}/documents"
        file = await exported(ann)
        upload = Upload(server.app, bob)
        since = 0
        begun: list[int] = []
        seen: list[Json] = []
        for row in file.splitlines(keepends=True):
            await upload.piece(row)
            page = await bob("GET", f"{path}?since={since}")
            if page.status_code == 200:
                seen += page.json()["documents"]
                since = page.json()["next"]
                begun.append((await bob("GET", f"/vault/{vault['uid']}")).json()["updatedAt"])
        await upload.end()
        assert upload.status == 200
        seen += (await bob("GET", f"{path}?since={since}")).json()["documents"]
        whole = (await ann("GET", f"{path}?since=0")).json()["documents"]
        assert seen == whole
        assert begun == sorted(begun)
        first_full = next(n for n, moment in enumerate(begun) if moment >= whole[-1]["updatedAt"])
        assert first_full > 2
        assert (await bob("GET", f"/vault/{vault['uid']}")).json()["updatedAt"] == (
            (await ann("GET", f"/vault/{vault['uid']}")).json()["updatedAt"]
        )


@async_test
async def test_a_body_that_stalls_is_cut_off_and_our_own_work_is_not_its_fault(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408 after a silence; the time that storing takes does not count against the sender."""
    monkeypatch.setattr(import_upload, "BODY_SECONDS", 0.2)
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann, documents=20)
        file = await exported(ann)
        real = database_of(server.app).write_long

        async def slow(*args: Any, **keywords: Any) -> Any:
            await asyncio.sleep(0.15)
            return await real(*args, **keywords)

        monkeypatch.setattr(database_of(server.app), "write_long", slow)
        assert (await imported(bob, file)).status_code == 200
        monkeypatch.undo()
        monkeypatch.setattr(import_upload, "BODY_SECONDS", 0.2)
        upload = Upload(server.app, await server.person())
        await upload.piece(file[:200])
        assert (await upload.answer())["error"]["code"] == "request_timeout"
        assert upload.status == 408


def test_the_type_is_the_one_of_the_export() -> None:
    """What comes out can be sent in as it is."""
    assert import_upload.LINES == LINES
