"""Vaults that carry one blob: Variant B, on the servers that serve it."""

from typing import Any

import httpx2
import pytest

from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser, at_once
from tests.kit.rows import each_row

from .checks import BLOB, VAULT_FIELDS, refused_stale

NEXT: Json = {"data": "sealed anew", "salt": "bmV3"}


@pytest.fixture(params=["both", "blob"])
def keeper(request: pytest.FixtureRequest, engine: str) -> ApiUser:  # noqa: ARG001 - which decides the engine
    """Somebody on each kind of server that keeps blobs."""
    person: ApiUser = request.getfixturevalue({"both": "ann", "blob": "bill"}[request.param])
    return person


def put(person: ApiUser, vault: Json, match: str = "", **body: Any) -> httpx2.Response:
    """Replace a vault's blob, under an If-Match or without."""
    headers = {"If-Match": match} if match else {}
    return person.http.put(f"/vault/{vault['uid']}", json=body, headers=headers)


def test_blob_is_answered(keeper: ApiUser) -> None:
    """A vault made with a blob carries it in every answer."""
    vault = keeper.vault(**BLOB)
    assert set(vault) >= VAULT_FIELDS | {"data", "salt"}
    assert {"data": vault["data"], "salt": vault["salt"]} == BLOB
    assert good(keeper.http.get(f"/vault/{vault['uid']}")) == vault
    assert vault in good(keeper.http.get("/vault"))["vaults"]


@each_row("data", ["x", '{"json": true}', "ключ 🗝", " ", "line\nbreak\ttab"], ids=ascii)
def test_blob_is_any_text(keeper: ApiUser, data: str) -> None:
    """A blob is kept letter for letter, whatever text it is."""
    vault = keeper.vault(data=data, salt="")
    assert good(keeper.http.get(f"/vault/{vault['uid']}"))["data"] == data
    assert vault["salt"] == ""


def test_put_replaces(keeper: ApiUser) -> None:
    """An update replaces data and salt, and counts the version up by one."""
    vault = keeper.vault(**BLOB)
    changed = good(put(keeper, vault, **NEXT))
    assert {"data": changed["data"], "salt": changed["salt"]} == NEXT
    assert changed["version"] == 2
    assert changed["name"] == vault["name"]
    assert changed["updatedAt"] > vault["updatedAt"]
    assert good(keeper.http.get(f"/vault/{vault['uid']}")) == changed


def test_last_writer_wins(keeper: ApiUser) -> None:
    """Without a version, each update is taken, one after the other."""
    vault = keeper.vault(**BLOB)
    for number in range(2, 6):
        changed = good(put(keeper, vault, data=f"number {number}", salt=""))
        assert changed["version"] == number
        assert changed["data"] == f"number {number}"


def test_put_at_a_version(keeper: ApiUser) -> None:
    """With a version, only the latest is replaced; a stale one learns what is stored."""
    vault = keeper.vault(**BLOB)
    stored = good(put(keeper, vault, **NEXT, version=1))
    refused_stale(put(keeper, vault, data="other", salt="", version=1), stored, 409, "vault_conflict")
    refused_stale(put(keeper, vault, data="other", salt="", version=7), stored, 409, "vault_conflict")
    assert good(put(keeper, vault, data="other", salt="", version=2))["version"] == 3


def test_stale_if_match(keeper: ApiUser) -> None:
    """A stale If-Match is a 412 with the same code and details."""
    vault = keeper.vault(**BLOB)
    tag = keeper.http.get(f"/vault/{vault['uid']}").headers["etag"]
    stored = good(put(keeper, vault, **NEXT))
    answer = put(keeper, vault, match=tag, data="other", salt="")
    refused_stale(answer, stored, 412, "vault_conflict")


def test_fresh_if_match(keeper: ApiUser) -> None:
    """An If-Match that fits what is stored lets the update through."""
    vault = keeper.vault(**BLOB)
    tags = [keeper.http.get(f"/vault/{vault['uid']}").headers["etag"], '"1"']
    answers = [put(keeper, vault, match=tag, **NEXT) for tag in tags]
    assert 200 in [answer.status_code for answer in answers]
    assert good(keeper.http.get(f"/vault/{vault['uid']}"))["version"] == 2


def test_retry(keeper: ApiUser) -> None:
    """An update that is sent again, its answer lost, gets the stored vault and no conflict."""
    vault = keeper.vault(**BLOB)
    stored = good(put(keeper, vault, **NEXT, version=1))
    assert good(put(keeper, vault, **NEXT, version=1)) == stored
    good(put(keeper, vault, data="third", salt="", version=2))
    assert put(keeper, vault, **NEXT, version=1).status_code == 409


def test_delete(keeper: ApiUser) -> None:
    """A deleted blob is gone."""
    vault = keeper.vault(**BLOB)
    good(keeper.http.delete(f"/vault/{vault['uid']}"))
    refused(put(keeper, vault, **NEXT), 404, "vault_not_found")


def test_blob_updates_at_once(keeper: ApiUser) -> None:
    """Of many updates of one version exactly one wins, and the others learn which."""
    vault = keeper.vault(**BLOB)
    answers: list[httpx2.Response] = at_once(12, lambda n: put(keeper, vault, data=f"by {n}", salt="", version=1))
    stored = good(keeper.http.get(f"/vault/{vault['uid']}"))
    assert [a.json() for a in answers if a.status_code == 200] == [stored]
    for answer in answers:
        if answer.status_code != 200:
            refused_stale(answer, stored, 409, "vault_conflict")


def test_last_writers_at_once(keeper: ApiUser) -> None:
    """Without a version, updates at the same time are all taken, each under a version of its own."""
    vault = keeper.vault(**BLOB)
    stored: list[Json] = at_once(10, lambda n: good(put(keeper, vault, data=f"by {n}", salt="")))
    assert sorted(answer["version"] for answer in stored) == list(range(2, 12))
    assert len({answer["updatedAt"] for answer in stored}) == 10
    assert good(keeper.http.get(f"/vault/{vault['uid']}")) == max(stored, key=lambda answer: int(answer["version"]))
