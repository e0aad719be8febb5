"""Batches: many operations in one request, all of them or none."""

from __future__ import annotations

import uuid
from typing import Any

from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer

CREATE = {"op": "create", "collection": "c", "data": "AAAA"}


def new_uid() -> str:
    return str(uuid.uuid4())


async def batch(person: Person, vault: dict[str, Any], operations: Any, **more: Any) -> Any:
    """The answer to a batch."""
    return await person("POST", f"/vaults/{vault['uid']}/batch", {"operations": operations}, **more)


async def state(person: Person, vault: dict[str, Any]) -> Any:
    """All that can be seen of a vault."""
    listed = (await person("GET", f"/vaults/{vault['uid']}/documents?since=0")).json()
    return listed["documents"], (await person("GET", f"/vault/{vault['uid']}")).json()


@async_test
async def test_all_is_done_in_order(open_server: OpenServer) -> None:
    """Later operations see earlier ones; each result has a moment of its own; the vault's clock is the last."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        old = await person.document(vault, data="BBBB", hmac="h")
        uid = new_uid()
        answer = await batch(
            person,
            vault,
            [
                {**CREATE, "uid": uid.upper(), "hmac": "x"},
                {"op": "put", "uid": uid, "data": "CCCC", "version": 1},
                {"op": "delete", "uid": old["uid"]},
                {"op": "delete", "uid": uid, "version": 2},
                {"op": "put", "uid": uid.upper(), "data": "DDDD", "hmac": "y", "version": 3},
                CREATE,
            ],
        )
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        shown = [(one["uid"], one["version"], one["data"], one["hmac"]) for one in results]
        assert shown[:5] == [
            (uid, 1, "AAAA", "x"),
            (uid, 2, "CCCC", None),
            (old["uid"], 2, "", None),
            (uid, 3, "", None),
            (uid, 4, "DDDD", "y"),
        ]
        assert [one["deletedAt"] == one["updatedAt"] for one in results] == [False, False, True, True, False, False]
        moments = [one["updatedAt"] for one in results]
        assert moments == list(range(old["updatedAt"] + 1, old["updatedAt"] + 7))
        documents, shown_vault = await state(person, vault)
        assert [one["uid"] for one in documents] == [old["uid"], uid, results[5]["uid"]]
        assert documents[0]["data"] == "BBBB"
        assert (shown_vault["updatedAt"], shown_vault["documents"], shown_vault["bytes"]) == (moments[-1], 2, 9)


@async_test
async def test_one_that_fails_undoes_all_and_every_one_is_named(open_server: OpenServer) -> None:
    """With what is stored, as it was before the batch: nothing of the batch stays."""
    async with open_server() as server:
        person = await server.person()
        vault, other = await person.vault(), await person.vault()
        one, two = await person.document(vault), await person.document(vault)
        gone, elsewhere = await person.document(vault), await person.document(other)
        await person("DELETE", f"/vaults/{vault['uid']}/documents/{gone['uid']}")
        before = await state(person, vault)
        unknown = new_uid()
        answer = await batch(
            person,
            vault,
            [
                {"op": "put", "uid": one["uid"], "data": "BBBB", "version": 1},
                {"op": "put", "uid": one["uid"], "data": "CCCC", "version": 1},
                {"op": "delete", "uid": two["uid"], "version": 9},
                {"op": "delete", "uid": gone["uid"]},
                {"op": "put", "uid": unknown, "data": "AAAA", "version": 1},
                CREATE,
                {**CREATE, "uid": one["uid"]},
                {**CREATE, "uid": elsewhere["uid"]},
                {**CREATE, "uid": vault["uid"]},
                {"op": "delete", "uid": elsewhere["uid"]},
            ],
        )
        assert answer.status_code == 409
        error = answer.json()["error"]
        assert error["code"] == "batch_conflict"
        failed = error["details"]["operations"]
        assert all(item["message"] for item in failed)
        tombstone = before[0][-1]
        stored = [(each["version"], each["updatedAt"]) for each in (one, two, tombstone, elsewhere)]
        assert [(f["index"], f["op"], f["uid"], f["code"], (f["version"], f["updatedAt"])) for f in failed] == [
            (1, "put", one["uid"], "document_conflict", stored[0]),
            (2, "delete", two["uid"], "document_conflict", stored[1]),
            (3, "delete", gone["uid"], "document_not_found", stored[2]),
            (4, "put", unknown, "document_not_found", (None, None)),
            (6, "create", one["uid"], "uid_taken", stored[0]),
            (7, "create", elsewhere["uid"], "uid_taken", stored[3]),
            (8, "create", vault["uid"], "uid_taken", (None, None)),
            (9, "delete", elsewhere["uid"], "document_not_found", (None, None)),
        ]
        assert await state(person, vault) == before


@async_test
async def test_every_bad_field_of_every_operation_is_named(open_server: OpenServer) -> None:
    """By its place in the list, all at once; and the list itself has bounds."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        answer = await batch(
            person,
            vault,
            [
                CREATE,
                {"op": "create", "data": "not base64", "uid": "x"},
                {"op": "put", "uid": new_uid(), "data": "AAAA"},
                {"op": "delete"},
                {"op": "patch", "uid": new_uid()},
                {"uid": new_uid()},
                7,
                {"op": "put", "uid": "x", "data": "AAAA", "version": "1", "hmac": 5},
                {"op": ["create"]},
                {"op": "delete", "uid": new_uid(), "version": None, "unknown": 1},
            ],
        )
        assert answer.status_code == 400
        fields = answer.json()["error"]["details"]["fields"]
        assert set(fields) == {
            "operations[1].collection",
            "operations[1].data",
            "operations[1].uid",
            "operations[2].version",
            "operations[3].uid",
            "operations[4].op",
            "operations[5].op",
            "operations[6]",
            "operations[7].uid",
            "operations[7].version",
            "operations[7].hmac",
            "operations[8].op",
        }
        assert fields["operations[4].op"] == "must be one of 'create', 'put', 'delete'"
        bad: Any
        for bad in ([], [CREATE] * 1001, {}, None, "x"):
            answer = await batch(person, vault, bad)
            assert answer.json()["error"]["details"]["fields"].keys() == {"operations"}, bad
        assert (await person("POST", f"/vaults/{vault['uid']}/batch", {})).status_code == 400
        assert (await state(person, vault))[0] == []


@async_test
async def test_the_last_of_two_equal_keys_counts(open_server: OpenServer) -> None:
    """Also within an operation, the kind of the operation included."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        raw = b'{"operations":[7],"operations":[{"op":"put","data":"{","op":"create","collection":"c","data":"QQ"}]}'
        headers = {"content-type": "application/json"}
        answer = await person("POST", f"/vault/{vault['uid']}/batch", content=raw, headers=headers)
        assert (answer.status_code, answer.json()["results"][0]["data"]) == (200, "QQ")


@async_test
async def test_a_batch_sent_again_changes_nothing_and_answers_the_same(open_server: OpenServer) -> None:
    """Creates and puts are recognised, together or among new ones; a delete that is done already is not."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        old = await person.document(vault)
        put = {"op": "put", "uid": old["uid"], "data": "BBBB", "hmac": "h", "version": 1}
        operations = [{**CREATE, "uid": new_uid()}, put, {**CREATE, "uid": new_uid()}]
        first = await batch(person, vault, operations)
        before = await state(person, vault)
        server.clock.pass_(60_000)
        again = await batch(person, vault, operations)
        assert (first.status_code, again.status_code, first.json()) == (200, 200, again.json())
        assert await state(person, vault) == before
        more = await batch(person, vault, [*operations, CREATE])
        assert more.json()["results"][:3] == first.json()["results"]
        assert (await state(person, vault))[1]["updatedAt"] == more.json()["results"][3]["updatedAt"]
        gone = {"op": "delete", "uid": old["uid"]}
        assert [(await batch(person, vault, [gone])).status_code for _ in range(2)] == [200, 409]


@async_test
async def test_a_thousand_operations(open_server: OpenServer) -> None:
    """As many as there may be, with moments in order and no two alike."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        made = (await batch(person, vault, [CREATE] * 1_000)).json()["results"]
        assert len({one["uid"] for one in made}) == 1_000
        assert [one["updatedAt"] for one in made] == list(range(made[0]["updatedAt"], made[0]["updatedAt"] + 1_000))
        change = [{"op": "put", "uid": one["uid"], "data": "BB", "version": 1} for one in made[:500]]
        remove = [{"op": "delete", "uid": one["uid"], "version": 1} for one in made[500:]]
        done = await batch(person, vault, [op for pair in zip(change, remove, strict=True) for op in pair])
        assert done.status_code == 200
        documents, shown = await state(person, vault)
        assert [one["version"] for one in documents] == [2] * 1_000
        assert (shown["documents"], shown["bytes"]) == (500, 1_000)


@async_test
async def test_what_a_key_may_do_in_a_batch(open_server: OpenServer) -> None:
    """Each operation needs its permission, and reaches as far as it would alone."""
    async with open_server() as server:
        person = await server.person()
        vault, other = await person.vault(), await person.vault()
        inside, outside = await person.document(vault), await person.document(vault, collection="out")
        put = {"op": "put", "uid": inside["uid"], "data": "BBBB", "version": 1}
        delete = {"op": "delete", "uid": inside["uid"]}
        before = await state(person, vault)
        reader = await person.key(permissions=["read"])
        for body in ([CREATE], "nonsense"):
            assert (await batch(person, vault, body, bearer=reader)).status_code == 403
        for permission, operations in (("write", [put, delete]), ("delete", [delete, CREATE]), ("delete", [put])):
            key = await person.key(permissions=[permission])
            assert (await batch(person, vault, operations, bearer=key)).status_code == 403
        narrow = await person.key(vaultUids=[vault["uid"]], collections=["c"])
        assert (await batch(person, vault, [put, {**CREATE, "collection": "out"}], bearer=narrow)).status_code == 403
        assert (await batch(person, other, [CREATE], bearer=narrow)).status_code == 404
        away = await person.document(other)
        answer = await batch(
            person,
            vault,
            [
                {"op": "put", "uid": outside["uid"], "data": "BBBB", "version": 1},
                {**CREATE, "uid": outside["uid"]},
                {**CREATE, "uid": away["uid"]},
                {**CREATE, "uid": inside["uid"], "data": "CCCC"},
            ],
            bearer=narrow,
        )
        failed = answer.json()["error"]["details"]["operations"]
        assert [(one["code"], one["version"], one["updatedAt"]) for one in failed] == [
            ("document_not_found", None, None),
            ("uid_taken", None, None),
            ("uid_taken", None, None),
            ("uid_taken", 1, inside["updatedAt"]),
        ]
        assert await state(person, vault) == before
        blind = await person.key(permissions=["write", "delete"])
        done = await batch(person, vault, [put, delete], bearer=blind)
        assert [(one["version"], one["data"]) for one in done.json()["results"]] == [(2, "BBBB"), (3, "")]


@async_test
async def test_a_vault_that_is_not_there_comes_before_what_is_not_in_it(open_server: OpenServer) -> None:
    """Whatever the operations are."""
    async with open_server() as server:
        person, stranger = await server.person(), await server.person()
        foreign = await stranger.vault()
        own = await person.document(await person.vault())
        for vault in (foreign, {"uid": new_uid()}, {"uid": "x"}):
            for operation in (
                CREATE,
                {**CREATE, "uid": own["uid"]},
                {"op": "put", "uid": own["uid"], "data": "AA", "version": 1},
                {"op": "delete", "uid": own["uid"]},
            ):
                answer = await batch(person, vault, [operation])
                assert (answer.status_code, answer.json()["error"]["code"]) == (404, "vault_not_found")


@async_test
async def test_a_batch_is_weighed_as_a_whole(open_server: OpenServer) -> None:
    """What it deletes makes room for what it adds; beyond the quota nothing of it is written."""
    async with open_server(quota_documents=3, quota_bytes=100) as server:
        person = await server.person()
        vault = await person.vault()
        made = (await batch(person, vault, [CREATE] * 3)).json()["results"]
        before = await state(person, vault)
        delete = {"op": "delete", "uid": made[0]["uid"]}
        for operations in ([CREATE], [delete, CREATE, CREATE], [delete, {**CREATE, "data": "A" * 93}]):
            answer = await batch(person, vault, operations)
            assert (answer.status_code, answer.json()["error"]["code"]) == (507, "quota_exceeded")
            assert await state(person, vault) == before
        assert (await batch(person, vault, [CREATE, delete])).status_code == 200
        larger = {"op": "put", "uid": made[1]["uid"], "data": "A" * 92, "version": 1}
        assert (await batch(person, vault, [larger])).status_code == 200
        assert (await person("GET", "/auth/me")).json()["usage"].items() >= {"documents": 3, "bytes": 100}.items()


@async_test
async def test_a_server_of_blobs_has_no_batches(open_server: OpenServer) -> None:
    """There are no documents there."""
    async with open_server(variant="blob") as server:
        person = await server.person()
        vault = await person.vault(data="x", salt="")
        answer = await batch(person, vault, [CREATE])
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
