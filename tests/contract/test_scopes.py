"""What a scoped key may do, on every road to a vault or a document."""

import uuid

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row
from tests.kit.servers.process import Server

Shelf = tuple[Json, list[Json], list[Json]]


@pytest.fixture(scope="module")
def owner(both: Server) -> ApiUser:
    """The owner of the keys."""
    return ApiUser.register(both)


@pytest.fixture(scope="module")
def keys(owner: ApiUser) -> dict[str, httpx2.Client]:
    """A key of each permission alone."""
    return {name: owner.with_key(permissions=[name]) for name in ("read", "write", "delete")}


ROADS = [
    ("read", "GET", "/vault", None),
    ("read", "GET", "/vault/{vault}", None),
    ("read", "GET", "/vault/by-name/{name}", None),
    ("read", "GET", "/vaults/{vault}/documents", None),
    ("read", "GET", "/vault/{vault}/documents", None),
    ("read", "GET", "/vaults/{vault}/documents/sync", None),
    ("read", "GET", "/vaults/{vault}/documents/{document}", None),
    ("read", "HEAD", "/vaults/{vault}/documents/{document}", None),
    ("write", "POST", "/vault", {"name": "{new}"}),
    ("write", "PUT", "/vault/{vault}", {"name": "{new}", "version": 1}),
    ("write", "POST", "/vaults/{vault}/documents", {"collection": "a", "data": "QQ"}),
    ("write", "POST", "/vault/{vault}/documents", {"collection": "a", "data": "QQ"}),
    ("write", "PUT", "/vaults/{vault}/documents/{document}", {"data": "QQ", "version": 1}),
    ("delete", "DELETE", "/vaults/{vault}/documents/{document}", None),
    ("delete", "DELETE", "/vault/{vault}/documents/{document}", None),
    ("delete", "DELETE", "/vault/{vault}", None),
]


@each_row(("wanted", "method", "path", "body"), ROADS, ids=[f"{m} {p}" for _, m, p, _ in ROADS])
def test_permission(
    owner: ApiUser, keys: dict[str, httpx2.Client], wanted: str, method: str, path: str, body: Json | None
) -> None:
    """Each road wants one permission: a key without it gets a 403, one with it goes through."""
    vault = owner.vault()
    places = {"vault": vault["uid"], "name": vault["name"], "document": owner.document(vault)["uid"]}
    if body and "name" in body:
        body = body | {"name": str(uuid.uuid4())}
    for permission in sorted(keys, key=lambda name: name == wanted):
        answer = keys[permission].request(method, path.format(**places), json=body)
        if permission == wanted:
            assert answer.status_code in (200, 201), answer.text
        elif method == "HEAD":
            assert answer.status_code == 403
        else:
            refused(answer, 403, "insufficient_scope")


def test_permissions_add_up(owner: ApiUser) -> None:
    """A key with several permissions has each of them, and no other."""
    vault, http = owner.vault(), owner.with_key(permissions=["read", "write"])
    document = made(http.post(docs(vault), json={"collection": "a", "data": "QQ"}))
    assert good(http.get(docs(vault, document))) == document
    refused(http.delete(docs(vault, document)), 403, "insufficient_scope")


@pytest.mark.parametrize("scope", ["vaultUids", "collections"])
def test_scoped_keys_leave_vaults_alone(owner: ApiUser, scope: str) -> None:
    """A key bound to vaults or collections creates, renames and deletes no vault, not even its own."""
    vault = owner.vault()
    http = owner.with_key(**{scope: [vault["uid"]] if scope == "vaultUids" else ["notes"]})
    path = f"/vault/{vault['uid']}"
    refused(http.post("/vault", json={"name": "new"}), 403, "insufficient_scope")
    refused(http.put(path, json={"name": "new", "version": 1}), 403, "insufficient_scope")
    refused(http.delete(path), 403, "insufficient_scope")
    assert good(owner.http.get(path)) == vault


def test_vault_scope(owner: ApiUser) -> None:
    """A key bound to one vault works in it, and cannot tell the others from unknown ones."""
    mine, other = owner.vault(), owner.vault()
    hidden = owner.document(other)
    http = owner.with_key(vaultUids=[mine["uid"]])
    assert good(http.get("/vault"))["vaults"] == [mine]
    assert good(http.get(f"/vault/by-name/{mine['name']}")) == mine
    document = made(http.post(docs(mine), json={"collection": "a", "data": "QQ"}))
    good(http.put(docs(mine, document), json={"data": "QR", "version": 1}))
    good(http.delete(docs(mine, document)))
    body = {"collection": "a", "data": "QQ", "version": 1}
    for method, path in [
        ("GET", f"/vault/{other['uid']}"),
        ("GET", f"/vault/by-name/{other['name']}"),
        ("GET", docs(other)),
        ("GET", f"/vault/{other['uid']}/documents"),
        ("GET", f"{docs(other)}/sync"),
        ("POST", docs(other)),
        ("GET", docs(other, hidden)),
        ("PUT", docs(other, hidden)),
        ("DELETE", docs(other, hidden)),
    ]:
        refused(http.request(method, path, json=body), 404, "vault_not_found")
    refused(http.get(docs(mine, hidden)), 404, "document_not_found")
    assert owner.read(other, hidden) == hidden


@pytest.fixture(scope="module")
def shelf(owner: ApiUser) -> Shelf:
    """A vault with an open and a closed collection, and a tombstone in each."""
    vault = owner.vault()
    opened, closed = [], []
    for number in range(4):
        opened.append(owner.document(vault, collection="open", data=f"Tm{number}A"))
        closed.append(owner.document(vault, collection="closed", data=f"Tm{number}B"))
    closed[3] = owner.delete(vault, closed[3])
    opened[3] = owner.delete(vault, opened[3])
    return vault, opened, closed


@pytest.fixture(scope="module")
def clerk(owner: ApiUser) -> httpx2.Client:
    """A key for the open collection only."""
    return owner.with_key(collections=["open"])


@pytest.mark.parametrize("road", ["", "?limit=10", "?collection=open"])
def test_lists_show_what_is_in_scope(clerk: httpx2.Client, shelf: Shelf, road: str) -> None:
    """A list shows the documents of the key's collections and nothing of the others."""
    vault, opened, _ = shelf
    assert good(clerk.get(f"{docs(vault)}{road}"))["documents"] == opened[:3]


@pytest.mark.parametrize("road", ["?since=0", "/sync", "/sync?since=0&collection=open", "?includeDeleted=true"])
def test_tombstones_in_scope(clerk: httpx2.Client, shelf: Shelf, road: str) -> None:
    """Tombstones outside the scope do not show either, and `next` is that of what is shown."""
    vault, opened, _ = shelf
    body = good(clerk.get(f"{docs(vault)}{road}"))
    assert body["documents"] == opened
    assert body["next"] == opened[-1]["updatedAt"]


def test_pages_count_what_is_in_scope(clerk: httpx2.Client, shelf: Shelf) -> None:
    """Pages are full of what is in scope, and `hasMore` speaks of that alone."""
    vault, opened, _ = shelf
    body = good(clerk.get(f"{docs(vault)}?limit=2&since=0"))
    assert body["documents"] == opened[:2]
    assert body["hasMore"] is True
    body = good(clerk.get(f"{docs(vault)}?limit=2&since={body['next']}"))
    assert body["documents"] == opened[2:]
    assert body["hasMore"] is False


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("place", [0, 3], ids=["live", "tombstone"])
def test_by_uid_out_of_scope(owner: ApiUser, clerk: httpx2.Client, shelf: Shelf, method: str, place: int) -> None:
    """A document outside the key's collections is not found by its uid, dead or alive."""
    vault, _, closed = shelf
    path = docs(vault, closed[place])
    body = {"data": "QQ", "version": closed[place]["version"], "collection": "open"}
    refused(clerk.request(method, path, json=body), 404, "document_not_found")
    assert owner.read(vault, closed[place]) == closed[place]


def test_etag_out_of_scope(owner: ApiUser, clerk: httpx2.Client, shelf: Shelf) -> None:
    """Knowing the ETag of a document outside the scope does not reveal it."""
    vault, _, closed = shelf
    path = docs(vault, closed[0])
    headers = {"If-None-Match": owner.http.get(path).headers["etag"]}
    refused(clerk.get(path, headers=headers), 404, "document_not_found")


def test_create_out_of_scope(owner: ApiUser, clerk: httpx2.Client) -> None:
    """A key makes documents in its own collections only."""
    vault = owner.vault()
    refused(clerk.post(docs(vault), json={"collection": "closed", "data": "QQ"}), 403, "insufficient_scope")
    document = made(clerk.post(docs(vault), json={"collection": "open", "data": "QQ"}))
    changed = good(clerk.put(docs(vault, document), json={"data": "QR", "version": 1}))
    good(clerk.delete(docs(vault, changed)))


def test_scopes_together(owner: ApiUser) -> None:
    """All scopes of a key hold at once."""
    mine, other = owner.vault(), owner.vault()
    seen, hidden, elsewhere = (
        owner.document(mine, collection="open"),
        owner.document(mine, collection="closed"),
        owner.document(other, collection="open"),
    )
    http = owner.with_key(permissions=["read"], vaultUids=[mine["uid"]], collections=["open"])
    assert good(http.get(docs(mine)))["documents"] == [seen]
    refused(http.get(docs(mine, hidden)), 404, "document_not_found")
    refused(http.get(docs(other, elsewhere)), 404, "vault_not_found")
    refused(http.delete(docs(mine, seen)), 403, "insufficient_scope")
