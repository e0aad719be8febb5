"""Lists of documents: order, pages, filters, and parameters that make no sense."""

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good
from tests.kit.people.api_user import ApiUser, at_once
from tests.kit.rows import each_row
from tests.kit.servers.process import Server

from .checks import DOCUMENT_FIELDS, clean, refused_fields


@pytest.fixture(scope="module")
def writer(both: Server) -> ApiUser:
    """Somebody with one well-filled vault."""
    return ApiUser.register(both)


@pytest.fixture(scope="module")
def shelf(writer: ApiUser) -> Json:
    """A vault with ten documents in two collections, one of them changed and two deleted."""
    vault = writer.vault()
    made = [writer.document(vault, collection=f"c{n % 2}", data=f"Tm{n}A") for n in range(10)]
    writer.put(vault, made[2])
    writer.delete(vault, made[5])
    writer.delete(vault, made[8])
    return vault


def listed(person: ApiUser, vault: Json, query: str = "") -> Json:
    """A list, with what every list promises checked."""
    body = good(person.http.get(f"{docs(vault)}{query}"))
    assert {"documents", "hasMore", "next"} <= set(body)
    times = [document["updatedAt"] for document in body["documents"]]
    assert times == sorted(set(times))
    assert all(set(document) == DOCUMENT_FIELDS for document in body["documents"])
    if times:
        assert body["next"] == times[-1]
    return body


def uids(body: Json) -> list[str]:
    """The uids of a list, in its order."""
    return [document["uid"] for document in body["documents"]]


def test_without_since(writer: ApiUser, shelf: Json) -> None:
    """A list without `since` holds what is live, the latest change last."""
    body = listed(writer, shelf)
    assert len(body["documents"]) == 8
    assert all(document["deletedAt"] is None for document in body["documents"])
    assert body["documents"][-1]["version"] == 2
    assert body["hasMore"] is False


def test_with_since(writer: ApiUser, shelf: Json) -> None:
    """A list with `since` holds what changed after it, tombstones included."""
    everything = listed(writer, shelf, "?since=0")
    assert len(everything["documents"]) == 10
    assert [d["deletedAt"] is not None for d in everything["documents"]] == [False] * 8 + [True] * 2
    for position, document in enumerate(everything["documents"]):
        later = listed(writer, shelf, f"?since={document['updatedAt']}")
        assert uids(later) == uids(everything)[position + 1 :]


def test_empty_page(writer: ApiUser, shelf: Json) -> None:
    """With nothing new, the next `since` is the one that was given."""
    last = listed(writer, shelf, "?since=0")["next"]
    body = listed(writer, shelf, f"?since={last}")
    assert body == {"documents": [], "hasMore": False, "next": last}
    assert listed(writer, shelf, f"?since={last + 5}&limit=3")["next"] == last + 5


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 11])
def test_pages(writer: ApiUser, shelf: Json, limit: int) -> None:
    """Page after page, `next` leads through everything once and in order, and `hasMore` says when to stop."""
    everything = uids(listed(writer, shelf, "?since=0"))
    walked: list[str] = []
    since = 0
    for _ in range(20):
        body = listed(writer, shelf, f"?since={since}&limit={limit}")
        assert len(body["documents"]) <= limit
        walked += uids(body)
        since = body["next"]
        assert body["hasMore"] == (len(walked) < len(everything))
        if not body["hasMore"]:
            break
    assert walked == everything


def test_first_download_in_pages(writer: ApiUser, shelf: Json) -> None:
    """A first download in pages passes `includeDeleted=false` and meets no tombstone."""
    walked: list[str] = []
    since, more = 0, True
    while more:
        body = listed(writer, shelf, f"?since={since}&limit=3&includeDeleted=false")
        walked, since, more = walked + uids(body), body["next"], body["hasMore"]
    assert walked == uids(listed(writer, shelf))


def test_limit_without_since(writer: ApiUser, shelf: Json) -> None:
    """A limit alone cuts the list of live documents, and says whether more follow."""
    body = listed(writer, shelf, "?limit=3")
    assert uids(body) == uids(listed(writer, shelf))[:3]
    assert body["hasMore"] is True
    assert listed(writer, shelf, "?limit=8")["hasMore"] is False


def test_include_deleted(writer: ApiUser, shelf: Json) -> None:
    """`includeDeleted` overrides either default."""
    assert len(uids(listed(writer, shelf, "?includeDeleted=true"))) == 10
    assert len(uids(listed(writer, shelf, "?includeDeleted=false"))) == 8
    assert len(uids(listed(writer, shelf, "?since=0&includeDeleted=false"))) == 8
    assert len(uids(listed(writer, shelf, "?since=0&includeDeleted=true"))) == 10


def test_collection(writer: ApiUser, shelf: Json) -> None:
    """A collection filters the list, alone and beside the other parameters."""
    odd = listed(writer, shelf, "?collection=c1")
    assert {document["collection"] for document in odd["documents"]} == {"c1"}
    assert len(odd["documents"]) == 4
    assert len(uids(listed(writer, shelf, "?collection=c1&since=0"))) == 5
    page = listed(writer, shelf, "?collection=c1&limit=4&includeDeleted=false")
    assert page["hasMore"] is False
    assert uids(page) == uids(odd)
    assert uids(listed(writer, shelf, "?collection=nothing")) == []


@each_row("name", ["a/b", "ключ", "a b", "a+b", "50%", "a&b=c", "'; --", "🗝" * 128], ids=ascii)
def test_any_collection(ann: ApiUser, vault: Json, name: str) -> None:
    """A collection is found under its own name, whatever that is."""
    document = ann.document(vault, collection=name)
    ann.document(vault, collection="other")
    body = good(ann.http.get(docs(vault), params={"collection": name}))
    assert body["documents"] == [document]


BAD = [
    *(f"since={value}" for value in ["-1", "1.5", "abc", "", "1e3", "0x10", "1_000", "null"]),
    *(f"limit={value}" for value in ["0", "-1", "1.5", "abc", "", "1e3", "1_0", "true"]),
    *(f"includeDeleted={value}" for value in ["yes", "2", "", "null"]),
]


@pytest.mark.parametrize("road", ["", "/sync"], ids=["list", "sync"])
@each_row("query", BAD)
def test_bad_parameter(ann: ApiUser, vault: Json, query: str, road: str) -> None:
    """A parameter that makes no sense is a 400 that names it."""
    refused_fields(ann.http.get(f"{docs(vault)}{road}?{query}"), query.partition("=")[0])


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30], ids=str)
def test_large_numbers(ann: ApiUser, vault: Json, number: int) -> None:
    """`since` and `limit` are any integers from their start, however large."""
    document = ann.document(vault)
    assert listed(ann, vault, f"?since={number}") == {"documents": [], "hasMore": False, "next": number}
    assert uids(listed(ann, vault, f"?limit={number}")) == [document["uid"]]


@pytest.mark.parametrize("name", ["since", "limit"])
def test_monstrous_numbers(ann: ApiUser, vault: Json, name: str) -> None:
    """A number of five thousand digits is answered cleanly."""
    answer = ann.http.get(f"{docs(vault)}?{name}={'9' * 5000}")
    clean(answer)
    assert answer.status_code in (200, 400)


ODD = ["collection=%00", "collection=%FF", "collection=", "%FF=1", "since", "&&&", "=", "x=1"]
ODD += ["since=%D9%A1", "since=%2B1", "limit=%201", "limit=%00"]


@each_row("query", ODD)
def test_odd_query(ann: ApiUser, vault: Json, query: str) -> None:
    """An odd query is answered cleanly."""
    clean(ann.http.get(f"{docs(vault)}?{query}"))


def test_everything_without_a_limit(ann: ApiUser, vault: Json) -> None:
    """Without a limit the list is whole, however long."""
    made: list[Json] = []

    def fill(worker: int) -> None:
        made.extend(ann.document(vault, data="A" * 2000, collection=f"{worker}-{n}") for n in range(60))

    at_once(8, fill)
    body = listed(ann, vault)
    assert body["documents"] == sorted(made, key=lambda document: int(document["updatedAt"]))
    assert body["hasMore"] is False


def test_lists_are_of_one_vault(ann: ApiUser, vault: Json) -> None:
    """A list holds the documents of its vault and of no other."""
    document = ann.document(vault)
    ann.document(ann.vault())
    assert listed(ann, vault)["documents"] == [document]


def test_plain_json(ann: ApiUser, vault: Json) -> None:
    """A list is JSON in UTF-8, as every other answer."""
    ann.document(vault, hmac="ключ")
    answer: httpx2.Response = ann.http.get(docs(vault))
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["documents"][0]["hmac"] == "ключ"
