"""Vaults as every variant knows them."""

import uuid

from tests.kit.network.paths import docs
from tests.kit.network.responses import good, made, refused
from tests.kit.people.api_user import ApiUser, at_once
from tests.kit.rows import each_row

from .checks import BLOB, UNKNOWN, VAULT_FIELDS, is_uuid7, now, without_id


def test_create(resident: ApiUser) -> None:
    """A new vault has a uid, its name, version 1 and a time in milliseconds."""
    before = now()
    vault = resident.vault(name=f"new {before} {resident.id}", **BLOB)
    assert set(vault) >= VAULT_FIELDS
    assert is_uuid7(vault["uid"])
    assert vault["name"] == f"new {before} {resident.id}"
    assert vault["version"] == 1
    assert before - 1000 <= vault["updatedAt"] <= now() + 1000


def test_read(resident: ApiUser) -> None:
    """A vault reads the same by uid, by name and in the list."""
    vault = resident.vault(**BLOB)
    assert good(resident.http.get(f"/vault/{vault['uid']}")) == vault
    assert good(resident.http.get(f"/vault/by-name/{vault['name']}")) == vault
    assert vault in good(resident.http.get("/vault"))["vaults"]


def test_delete(resident: ApiUser) -> None:
    """A deleted vault is gone from every road, and its name is free again."""
    vault = resident.vault(**BLOB)
    assert good(resident.http.delete(f"/vault/{vault['uid']}"))["success"] is True
    refused(resident.http.get(f"/vault/{vault['uid']}"), 404, "vault_not_found")
    refused(resident.http.get(f"/vault/by-name/{vault['name']}"), 404, "vault_not_found")
    refused(resident.http.delete(f"/vault/{vault['uid']}"), 404, "vault_not_found")
    assert vault["uid"] not in [v["uid"] for v in good(resident.http.get("/vault"))["vaults"]]
    assert resident.vault(name=vault["name"], **BLOB)["uid"] != vault["uid"]


def test_delete_takes_the_documents_along(ann: ApiUser) -> None:
    """With a vault go its documents, even when its uid comes back."""
    vault = ann.vault()
    document = ann.document(vault)
    good(ann.http.delete(f"/vault/{vault['uid']}"))
    for spelling in ("vault", "vaults"):
        path = f"/{spelling}/{vault['uid']}/documents"
        refused(ann.http.get(path), 404, "vault_not_found")
        refused(ann.http.get(f"{path}/{document['uid']}"), 404)
        refused(ann.http.post(path, json={"collection": "a", "data": "QQ"}), 404, "vault_not_found")
        refused(ann.http.put(f"{path}/{document['uid']}", json={"data": "QQ", "version": 1}), 404)
        refused(ann.http.delete(f"{path}/{document['uid']}"), 404)
    ann.vault(name=vault["name"], uid=vault["uid"])
    assert good(ann.http.get(f"{docs(vault)}?since=0"))["documents"] == []
    ann.document(vault, uid=document["uid"])


def test_name_is_anybodys_else(resident: ApiUser) -> None:
    """Another owner may use the same name, and each finds their own vault under it."""
    vault = resident.vault(**BLOB)
    other = ApiUser.register(resident.server)
    theirs = other.vault(name=vault["name"], **BLOB)
    assert theirs["uid"] != vault["uid"]
    assert good(other.http.get(f"/vault/by-name/{vault['name']}"))["uid"] == theirs["uid"]
    assert good(resident.http.get(f"/vault/by-name/{vault['name']}"))["uid"] == vault["uid"]


METHODS = [
    ("GET", "/vault/{}", None),
    ("PUT", "/vault/{}", {"name": "mine now", "version": 1, **BLOB}),
    ("DELETE", "/vault/{}", None),
    ("GET", "/vaults/{}/documents", None),
    ("GET", "/vaults/{}/documents/sync", None),
    ("POST", "/vaults/{}/documents", {"collection": "a", "data": "QQ=="}),
    ("GET", "/vaults/{}/documents/" + UNKNOWN, None),
    ("PUT", "/vaults/{}/documents/" + UNKNOWN, {"data": "QQ==", "version": 1}),
    ("DELETE", "/vaults/{}/documents/" + UNKNOWN, None),
]


@each_row(("method", "path", "body"), METHODS, ids=[f"{m} {p}" for m, p, _ in METHODS])
def test_foreign_vault(ann: ApiUser, bob: ApiUser, method: str, path: str, body: object) -> None:
    """Another user's vault cannot be told from one that does not exist."""
    vault = ann.vault()
    foreign = bob.http.request(method, path.format(vault["uid"]), json=body)
    unknown = bob.http.request(method, path.format(UNKNOWN), json=body)
    refused(foreign, 404, "vault_not_found")
    refused(unknown, 404, "vault_not_found")
    assert str(without_id(foreign)).replace(vault["uid"], UNKNOWN) == str(without_id(unknown))
    assert good(ann.http.get(f"/vault/{vault['uid']}")) == vault


def test_foreign_vault_in_every_variant(resident: ApiUser) -> None:
    """On each kind of server a vault is its owner's alone."""
    vault, other = resident.vault(**BLOB), ApiUser.register(resident.server)
    body = {"name": "mine now", "version": 1, **BLOB}
    refused(other.http.get(f"/vault/{vault['uid']}"), 404, "vault_not_found")
    refused(other.http.get(f"/vault/by-name/{vault['name']}"), 404, "vault_not_found")
    refused(other.http.put(f"/vault/{vault['uid']}", json=body), 404, "vault_not_found")
    refused(other.http.delete(f"/vault/{vault['uid']}"), 404, "vault_not_found")
    assert good(other.http.get("/vault"))["vaults"] == []
    assert good(resident.http.get(f"/vault/{vault['uid']}")) == vault


def test_unknown_fields_are_ignored(resident: ApiUser) -> None:
    """A client that says more than it must is understood all the same."""
    vault = resident.vault(**BLOB, color="red", version=7, userId=UNKNOWN, updatedAt=1)
    assert vault["version"] == 1
    assert vault["updatedAt"] > 1
    assert "color" not in vault


def test_vaults_at_once(newcomer: ApiUser) -> None:
    """One name, many creators: one of them wins."""
    name = str(uuid.uuid4())
    answers = at_once(12, lambda _: newcomer.http.post("/vault", json={"name": name}))
    winner = [made(answer) for answer in answers if answer.status_code == 201]
    assert len(winner) == 1
    for answer in answers:
        if answer.status_code != 201:
            refused(answer, 409, "vault_already_exists")
    assert good(newcomer.http.get("/vault"))["vaults"] == winner
