"""The collections of a vault: those that hold a living document."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.server.routes import collections
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer


async def listed(person: Person, vault: dict[str, Any], **more: Any) -> list[str]:
    """All of them, page by page."""
    found: list[str] = []
    while True:
        after = {"after": found[-1]} if found else {}
        answer = await person("GET", f"/vaults/{vault['uid']}/collections", params=after, **more)
        assert answer.status_code == 200, answer.text
        found += answer.json()["collections"]
        if not answer.json()["hasMore"]:
            return found


@pytest.mark.parametrize("most", [1, 2, 100])
@async_test
async def test_a_collection_is_there_while_it_holds_a_document(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Each once, however many documents it has; not those of other vaults, and not one whose documents are deleted."""
    monkeypatch.setattr(collections, "MOST_COLLECTIONS", most)
    async with open_server() as server:
        person, other = await server.person(), await server.person()
        vault, second, foreign = await person.vault(), await person.vault(), await other.vault()
        assert await listed(person, vault) == []
        names = ["a", "b", "c/d", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{GRINNING FACE}", "%", "x" * 255]
        made = [await person.document(vault, collection=name) for name in names * 2]
        await person.document(second, collection="elsewhere")
        await other.document(foreign, collection="foreign")
        assert sorted(await listed(person, vault)) == sorted(names)
        for one in made[1 :: len(names)]:
            await person("DELETE", f"/vaults/{vault['uid']}/documents/{one['uid']}")
        assert sorted(await listed(person, vault)) == sorted({*names} - {"b"})
        key = await person.key(collections=["a", "b", "none"])
        assert await listed(person, vault, bearer=key) == ["a"]
        narrow = await person.key(vaultUids=[second["uid"]])
        for bearer, path in ((narrow, vault), (None, foreign)):
            missing = await person(
                "GET", f"/vaults/{path['uid']}/collections", **({} if bearer is None else {"bearer": bearer})
            )
            assert (missing.status_code, missing.json()["error"]["code"]) == (404, "vault_not_found")
