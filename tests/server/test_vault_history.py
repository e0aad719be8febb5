"""The history of a whole vault: what was replaced in it, in the order of writing, without ciphertext."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from strongroom.server.routes.versions import MOST_HISTORY
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer


async def page(person: Person, vault: dict[str, Any], query: str = "", **more: Any) -> dict[str, Any]:
    answer = await person("GET", f"/vaults/{vault['uid']}/documents/history{query}", **more)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def written(person: Person, vault: dict[str, Any], times: int, **body: Any) -> list[dict[str, Any]]:
    """A document that was written so many times; all of its rows."""
    rows = [await person.document(vault, hmac="h1", **body)]
    path = f"/vaults/{vault['uid']}/documents/{rows[0]['uid']}"
    for version in range(1, times):
        answer = await person("PUT", path, {"data": "BBBB", "hmac": f"h{version + 1}", "version": version})
        assert answer.status_code == 200, answer.text
        rows.append(answer.json())
    return rows


def entry(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("uid", "version", "hmac", "updatedAt")}


@async_test
async def test_it_holds_what_was_replaced_in_the_order_of_writing(open_server: OpenServer) -> None:
    """Of all documents or of one, of deleted ones too, and not what is stored now; pages of any size give the same."""
    async with open_server() as server:
        person = await server.person()
        vault, other = await person.vault(), await person.vault()
        one, two = await written(person, vault, 4), await written(person, vault, 3)
        await written(person, other, 3)
        await person("DELETE", f"/vaults/{vault['uid']}/documents/{two[0]['uid']}")
        wanted = [entry(row) for row in (*one[:-1], *two)]
        assert await page(person, vault) == {
            "versions": wanted,
            "hasMore": False,
            "next": wanted[-1]["updatedAt"],
        }
        for limit in (1, 2, 5, 6, MOST_HISTORY, 10**30):
            found, since, more = list[Any](), 0, True
            while more:
                got = await page(person, vault, f"?since={since}&limit={limit}")
                assert len(got["versions"]) == min(limit, len(wanted) - len(found))
                found, since, more = found + got["versions"], got["next"], got["hasMore"]
            assert found == wanted
        for rows in (one[:-1], two):
            got = await page(person, vault, f"?uid={rows[0]['uid'].upper()}")
            assert got["versions"] == [entry(row) for row in rows]
        late = wanted[2]["updatedAt"]
        assert (await page(person, vault, f"?since={late}"))["versions"] == wanted[3:]
        also = await person("GET", f"/vault/{vault['uid']}/documents/history?limit=1")
        assert also.json()["versions"] == wanted[:1]
        for since in (wanted[-1]["updatedAt"], 2**63 - 1, 2**63, 10**30):
            assert await page(person, vault, f"?since={since}") == {"versions": [], "hasMore": False, "next": since}
        for unknown in (str(uuid.uuid4()), vault["uid"]):
            assert await page(person, vault, f"?uid={unknown}") == {"versions": [], "hasMore": False, "next": 0}


@async_test
async def test_a_page_is_bounded(open_server: OpenServer) -> None:
    """No limit, and a limit beyond the largest, give the largest page."""
    async with open_server(history_versions=1_000) as server:
        person = await server.person()
        vault = await person.vault()
        for count in (MOST_HISTORY // 2, MOST_HISTORY // 2 + 5):
            uid = (await person.document(vault))["uid"]
            puts = [{"op": "put", "uid": uid, "data": "AAAA", "version": n} for n in range(1, count + 1)]
            for start in range(0, count, 200):
                some = {"operations": puts[start : start + 200]}
                assert (await person("POST", f"/vaults/{vault['uid']}/batch", some)).status_code == 200
        for query in ("", f"?limit={MOST_HISTORY + 1}"):
            got = await page(person, vault, query)
            assert (len(got["versions"]), got["hasMore"]) == (MOST_HISTORY, True)
        rest = await page(person, vault, f"?since={got['next']}")
        assert [one["version"] for one in rest["versions"]] == list(range(MOST_HISTORY // 2 + 1, MOST_HISTORY // 2 + 6))


@async_test
async def test_a_key_sees_nothing_outside_its_collections(open_server: OpenServer) -> None:
    """Neither rows nor when they were written: not by the cursor, not by `hasMore`, not by asking for a uid."""
    async with open_server() as server:
        person = await server.person()
        vault, other = await person.vault(), await person.vault()
        inside = await written(person, vault, 3, collection="in")
        outside = await written(person, vault, 4, collection="out")
        key = await person.key(collections=["in", "none"])
        for query in ("", "?limit=2"):
            assert await page(person, vault, query, bearer=key) == {
                "versions": [entry(row) for row in inside[:-1]],
                "hasMore": False,
                "next": inside[1]["updatedAt"],
            }
        since = inside[1]["updatedAt"]
        nothing = {"versions": [], "hasMore": False, "next": since}
        assert await page(person, vault, f"?since={since}&limit=1", bearer=key) == nothing
        hidden = await page(person, vault, f"?uid={outside[0]['uid']}", bearer=key)
        unknown = await page(person, vault, f"?uid={uuid.uuid4()}", bearer=key)
        assert hidden == unknown == {**nothing, "next": 0}
        limited = await person.key(vaultUids=[vault["uid"]])
        path = f"/vaults/{other['uid']}/documents/history"
        refused = await person("GET", path, bearer=limited)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "vault_not_found")
        blind = await person("GET", path, bearer=await person.key(permissions=["write", "delete"]))
        assert (blind.status_code, blind.json()["error"]["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("?since=-1", {"since"}),
        ("?since=x&limit=0&uid=x", {"since", "limit", "uid"}),
        ("?limit=1.5", {"limit"}),
        ("?uid=", {"uid"}),
        ("?since=1&since=2", {"since"}),
    ],
)
@async_test
async def test_bad_parameters_are_named(open_server: OpenServer, query: str, fields: set[str]) -> None:
    """All at once, before the vault is looked for."""
    async with open_server() as server:
        person = await server.person()
        answer = await person("GET", f"/vaults/{uuid.uuid4()}/documents/history{query}")
        assert (answer.status_code, set(answer.json()["error"]["details"]["fields"])) == (400, fields)


@async_test
async def test_other_accounts_and_variants_have_no_such_history(open_server: OpenServer) -> None:
    """A vault of somebody else is not found, and where there are no documents there is no route."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        vault = await ann.vault()
        await written(ann, vault, 2)
        for uid in (vault["uid"], str(uuid.uuid4()), "x"):
            answer = await bob("GET", f"/vaults/{uid}/documents/history")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "vault_not_found")
        twin = await bob.vault(uid=vault["uid"])
        assert (await page(bob, twin))["versions"] == []
    async with open_server(variant="blob") as server:
        ann = await server.person()
        answer = await ann("GET", f"/vaults/{vault['uid']}/documents/history")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
