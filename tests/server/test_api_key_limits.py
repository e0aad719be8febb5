"""API keys are bounded in number and in bytes; an account that has more keeps them, and its list is read in pages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2

from strongroom import store
from strongroom.model import ApiKey
from strongroom.rules import KEYS_PER_ACCOUNT, MAX_KEY_SCOPE
from strongroom.server.routes import keys
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of


async def create(person: Person, **scopes: Any) -> httpx2.Response:
    """The response to a new key."""
    return await person("POST", "/auth/api-keys", {"name": "k", **scopes})


async def plant(server: InProcessServer, person: Person, numbers: range, **scopes: Any) -> list[str]:
    """Keys as an older release may have made them; their uids."""
    uids = [f"01900000-0000-7000-8000-{number:012}" for number in numbers]
    empty: dict[str, Any] = {"permissions": None, "vault_uids": None, "collections": None, **scopes}
    for uid in uids:
        key = ApiKey(uid=uid, name="k", expires_at=None, created_at=1, last_used_at=None, **empty)
        await database_of(server.app).write(store.keys.insert, person.id, f"hash of {person.id} {uid}", key)
    return uids


@async_test
async def test_an_account_has_at_most_a_hundred_keys(open_server: OpenServer) -> None:
    """Also where many are made at once; a revoked one makes room, and another account has its own hundred."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        uids = await plant(server, ann, range(KEYS_PER_ACCOUNT - 3))
        answers = await asyncio.gather(*(create(ann) for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 5
        refused(await create(ann), 409, "too_many_api_keys")
        good(await create(bob), 201)
        good(await ann("DELETE", f"/auth/api-keys/{uids[0]}"))
        good(await create(ann), 201)
        assert len(good(await ann("GET", "/auth/api-keys"))["keys"]) == KEYS_PER_ACCOUNT


@async_test
async def test_the_scope_of_a_key_is_bounded_in_bytes(open_server: OpenServer) -> None:
    """As it is stored: names of four-byte characters and of characters that JSON escapes count for what they take."""
    async with open_server() as server:
        ann = await server.person()
        for sign, each in (("x", 1), ("\U0001f511", 4), ('"', 2)):
            name = sign * (240 // each)  # 240 bytes, and three for quotes and comma; the brackets are two
            names = [f"{number:010}{name}" for number in range((MAX_KEY_SCOPE - 1) // 253)]
            rest = MAX_KEY_SCOPE - len(json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode())
            good(await create(ann, collections=names), 201)
            good(await create(ann, collections=[*names, "y" * (rest - 3)]), 201)
            fault = refused(await create(ann, collections=[*names, "y" * (rest - 2)]), 400, "validation_error")
            assert f"{MAX_KEY_SCOPE:,} bytes" in fault["details"]["fields"]["collections"]


@async_test
async def test_who_has_more_keeps_them_and_makes_no_more(open_server: OpenServer) -> None:
    """The list has all of them, oldest first, and none twice."""
    async with open_server() as server:
        ann = await server.person()
        for count in (0, 1, keys.PAGE - 1, keys.PAGE, keys.PAGE + 1, KEYS_PER_ACCOUNT + 20):
            listed = good(await ann("GET", "/auth/api-keys"))["keys"]
            planted = await plant(server, ann, range(len(listed), count))
            after = [key["uid"] for key in good(await ann("GET", "/auth/api-keys"))["keys"]]
            assert after == [key["uid"] for key in listed] + planted
        refused(await create(ann), 409, "too_many_api_keys")
