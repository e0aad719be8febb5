"""Documents from their first day to their last."""

import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser

from .checks import DOCUMENT_FIELDS, UNKNOWN, is_uuid7, now, without_id


def test_create(ann: ApiUser, vault: Json) -> None:
    """A new document has all nine fields, version 1 and no end."""
    before = now()
    body = {"collection": "notes", "data": "c2VhbGVk", "hmac": "0f3a"}
    document = made(ann.http.post(docs(vault), json=body))
    assert set(document) == DOCUMENT_FIELDS
    assert body.items() <= document.items()
    assert is_uuid7(document["uid"])
    assert document["vaultUid"] == vault["uid"]
    assert document["version"] == 1
    assert document["deletedAt"] is None
    assert before - 1000 <= document["createdAt"] <= document["updatedAt"] <= now() + 1000


@pytest.mark.parametrize("fields", [{}, {"hmac": None}], ids=["absent", "null"])
def test_create_without_hmac(ann: ApiUser, vault: Json, fields: Json) -> None:
    """A document without an integrity value shows null in its place."""
    document = ann.document(vault, **fields)
    assert set(document) == DOCUMENT_FIELDS
    assert document["hmac"] is None


def test_read(ann: ApiUser, vault: Json) -> None:
    """A document reads as it was answered."""
    document = ann.document(vault, hmac="ключ")
    assert good(ann.http.get(docs(vault, document))) == document


def test_put(ann: ApiUser, vault: Json) -> None:
    """An update replaces data and hmac, and counts version and time up; the rest stays."""
    document = ann.document(vault, hmac="old")
    changed = good(ann.put(vault, document, data="bmV3", hmac="new"))
    moved = {"data": "bmV3", "hmac": "new", "version": 2, "updatedAt": changed["updatedAt"]}
    assert changed == document | moved
    assert changed["updatedAt"] > document["updatedAt"]
    assert ann.read(vault, document) == changed


def test_put_ignores_what_it_does_not_know(ann: ApiUser, vault: Json) -> None:
    """An update moves no document to another collection or vault, and takes no times from outside."""
    document = ann.document(vault)
    odd = {"collection": "else", "vaultUid": UNKNOWN, "createdAt": 1, "deletedAt": 5, "uid": UNKNOWN}
    changed = good(ann.put(vault, document, **odd))
    for field in ("uid", "collection", "vaultUid", "createdAt", "deletedAt"):
        assert changed[field] == document[field]


def test_delete(ann: ApiUser, vault: Json) -> None:
    """A delete answers with success and the tombstone's fields, and counts as a change."""
    document = ann.document(vault)
    answer = good(ann.http.delete(docs(vault, document)))
    assert answer["success"] is True
    assert answer["uid"] == document["uid"]
    assert answer["version"] == 2
    assert answer["updatedAt"] > document["updatedAt"]
    assert type(answer["deletedAt"]) is int
    assert answer["deletedAt"] >= document["updatedAt"]


def test_two_spellings(ann: ApiUser, vault: Json) -> None:
    """`/vault/…/documents` and `/vaults/…/documents` are one and the same, for every method."""
    short, long = f"/vault/{vault['uid']}/documents", f"/vaults/{vault['uid']}/documents"
    document = made(ann.http.post(short, json={"collection": "a", "data": "QQ"}))
    assert good(ann.http.get(f"{long}/{document['uid']}")) == document
    assert good(ann.http.get(f"{short}/{document['uid']}")) == document
    changed = good(ann.http.put(f"{short}/{document['uid']}", json={"data": "QR", "version": 1}))
    assert good(ann.http.get(short)) == good(ann.http.get(long))
    assert good(ann.http.get(long))["documents"] == [changed]
    good(ann.http.delete(f"{short}/{document['uid']}"))
    assert good(ann.http.get(f"{short}/sync")) == good(ann.http.get(f"{long}/sync"))


def test_unknown_fields_are_ignored(ann: ApiUser, vault: Json) -> None:
    """Whatever else a client sends with a new document is not taken."""
    document = ann.document(vault, color="red", version=9, deletedAt=5, createdAt=1, vaultUid=UNKNOWN)
    assert set(document) == DOCUMENT_FIELDS
    assert document["version"] == 1
    assert document["deletedAt"] is None
    assert document["vaultUid"] == vault["uid"]
    assert document["createdAt"] > 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_document_of_another_vault(ann: ApiUser, vault: Json, method: str) -> None:
    """A document asked for under another vault of its owner cannot be told from an unknown one."""
    document = ann.document(ann.vault())
    body = {"data": "QQ", "version": 1}
    child = ann.http.request(method, docs(vault, document), json=body)
    unknown = ann.http.request(method, docs(vault, {"uid": UNKNOWN}), json=body)
    refused(child, 404, "document_not_found")
    refused(unknown, 404, "document_not_found")
    assert str(without_id(child)).replace(document["uid"], UNKNOWN) == str(without_id(unknown))


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_foreign_document(ann: ApiUser, bob: ApiUser, vault: Json, method: str) -> None:
    """Another user's document is not found, under its own vault or under one of the asker's."""
    document = ann.document(vault)
    body = {"data": "QQ", "version": 1}
    refused(bob.http.request(method, docs(vault, document), json=body), 404, "vault_not_found")
    refused(bob.http.request(method, docs(bob.vault(), document), json=body), 404, "document_not_found")
    assert ann.read(vault, document) == document


@pytest.mark.parametrize("data", ["A", "QQ==", "QUI=", "-_-_", "+/+/", "A" * 100_000], ids=lambda d: d[:6])
def test_data_is_kept_as_sent(ann: ApiUser, vault: Json, data: str) -> None:
    """Ciphertext comes back letter for letter, whatever its padding or alphabet."""
    document = ann.document(vault, data=data)
    assert ann.read(vault, document)["data"] == data
