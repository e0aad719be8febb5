"""`Keyring-Version`: nothing is stored that was sealed with an older keyring than the stored one."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from strongroom.errors import KeyringConflict
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import refused
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.server.keyring_owner import PATH, PROOF, ann_of

OLD, NEW = {"keyring-version": "1"}, {"keyring-version": "2"}


async def replace_keyring(ann: Person, version: int = 1) -> None:
    put = await ann("PUT", PATH, {"keyring": "U2Vjb25k", "version": version, **PROOF})
    assert put.status_code == 200, put.text


def writes(vault: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Every write in a vault."""
    path = f"/vaults/{vault['uid']}/documents"
    row = {"data": "BBBB", "hmac": None}
    return [
        ("POST", path, {"collection": "c", **row, "uid": str(uuid.uuid4())}),
        ("PUT", f"{path}/{document['uid']}", {**row, "version": 1}),
        ("POST", f"/vaults/{vault['uid']}/batch", {"operations": [{"op": "create", "collection": "c", **row}]}),
        ("DELETE", f"{path}/{document['uid']}", None),
        ("POST", "/vault", {"name": "another"}),
        ("PUT", f"/vault/{vault['uid']}", {"data": "QUFBQQ==", "salt": "QUFBQQ==", "version": 1}),
        ("DELETE", f"/vault/{vault['uid']}", None),
    ]


@async_test
async def test_a_write_of_before_a_newer_keyring_is_refused(open_server: OpenServer) -> None:
    """Every write, with the version that is stored; nothing has changed. With the newest version it is stored."""
    async with open_server() as server:
        ann = await ann_of(server)
        vault = await ann.vault()
        document = await ann.document(vault)
        await replace_keyring(ann)
        for method, path, body in writes(vault, document):
            details = refused(await ann(method, path, body, headers=OLD), 409, "keyring_conflict")["details"]
            assert details["version"] == 2
        listed = (await ann("GET", f"/vaults/{vault['uid']}/documents?since=0")).json()["documents"]
        assert [(row["uid"], row["version"]) for row in listed] == [(document["uid"], 1)]
        assert len((await ann("GET", "/vault")).json()["vaults"]) == 1
        for method, path, body in writes(vault, document):
            if method != "DELETE" and not body.get("version"):
                assert (await ann(method, path, body, headers=NEW)).status_code < 300


@async_test
async def test_without_the_header_nothing_is_compared(open_server: OpenServer) -> None:
    """An account without a keyring, a newer version than the stored one, an API key: all may write. A typo may not."""
    async with open_server() as server:
        ann = await ann_of(server)
        vault = await ann.vault()
        path, row = f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "BBBB"}
        await replace_keyring(ann)
        assert (await ann("POST", path, row)).status_code == 201
        for newer in ("9", str(2**63), "9" * 4_000):
            assert (await ann("POST", path, row, headers={"keyring-version": newer})).status_code == 201
        assert (await ann("POST", path, row, headers=OLD, bearer=await ann.key())).status_code == 201
        for bad in ("0", "-1", "1.5", "x", ""):
            refused(await ann("POST", path, row, headers={"keyring-version": bad}), 400, "validation_error")
        other = await server.person()
        assert await other.document(await other.vault())
        theirs = await other.vault()
        made = await other("POST", f"/vaults/{theirs['uid']}/documents", row, headers=OLD)
        assert made.status_code == 201


@async_test
async def test_a_retry_with_the_newer_version_gets_the_first_response(open_server: OpenServer) -> None:
    """A response is lost, and the keyring changes: the same write is recognised once the client has seen that."""
    async with open_server() as server:
        ann = await ann_of(server)
        path = f"/vaults/{(await ann.vault())['uid']}/documents"
        row = {"collection": "c", "data": "BBBB", "uid": str(uuid.uuid4())}
        made = await ann("POST", path, row, headers=OLD)
        await replace_keyring(ann)
        refused(await ann("POST", path, row, headers=OLD), 409, "keyring_conflict")
        again = await ann("POST", path, row, headers=NEW)
        assert (again.status_code, again.json()) == (200, made.json())


@async_test
async def test_writes_and_a_keyring_at_once(open_server: OpenServer) -> None:
    """Many writes with the old version while the keyring is replaced: none is stored after it."""
    async with open_server() as server:
        ann = await ann_of(server)
        path = f"/vaults/{(await ann.vault())['uid']}/documents"
        stored_after: list[int] = []
        replaced = asyncio.Event()

        async def write() -> None:
            late = replaced.is_set()
            answer = await ann("POST", path, {"collection": "c", "data": "BBBB"}, headers=OLD)
            if late:
                stored_after.append(answer.status_code)
            elif answer.status_code != 201:
                refused(answer, 409, KeyringConflict.code)

        async def replace() -> None:
            await replace_keyring(ann)
            replaced.set()

        await asyncio.gather(*(write() for _ in range(20)), replace(), *(write() for _ in range(20)))
        await asyncio.gather(*(write() for _ in range(5)))
        assert set(stored_after) == {409}
