"""Deleted documents: what is left of them, and how they come back."""

import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser

from .checks import DOCUMENT_FIELDS, refused_stale


@pytest.fixture
def document(ann: ApiUser, vault: Json) -> Json:
    """A document that is about to be deleted."""
    return ann.document(vault, hmac="seal")


@pytest.fixture
def tombstone(ann: ApiUser, vault: Json, document: Json) -> Json:
    """What is left of the document."""
    return ann.delete(vault, document)


def test_tombstone_is_read(document: Json, tombstone: Json) -> None:
    """A deleted document is still answered by its uid, with the time of its end."""
    assert set(tombstone) == DOCUMENT_FIELDS
    assert type(tombstone["deletedAt"]) is int
    assert tombstone["version"] == 2
    assert tombstone["updatedAt"] > document["updatedAt"]
    for field in ("uid", "vaultUid", "collection", "createdAt"):
        assert tombstone[field] == document[field]


def test_deleted_once(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """A deleted document is not deleted again."""
    refused(ann.http.delete(docs(vault, tombstone)), 404, "document_not_found")
    assert ann.read(vault, tombstone) == tombstone


def test_tombstone_moves_the_clock(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """A delete is a write of the vault as any other."""
    assert good(ann.http.get(f"/vault/{vault['uid']}"))["updatedAt"] == tombstone["updatedAt"]


def test_revive(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """An update that carries the tombstone's version brings the document back to life."""
    revived = good(ann.put(vault, tombstone, data="YmFjaw", hmac="new"))
    assert revived["version"] == 3
    assert revived["deletedAt"] is None
    assert revived["data"] == "YmFjaw"
    assert revived["hmac"] == "new"
    assert revived["createdAt"] == tombstone["createdAt"]
    assert revived["updatedAt"] > tombstone["updatedAt"]
    assert good(ann.http.get(docs(vault)))["documents"] == [revived]


def test_revive_by_if_match(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """The tombstone's ETag revives as well as its version."""
    path = docs(vault, tombstone)
    tag = ann.http.get(path).headers["etag"]
    assert good(ann.http.put(path, json={"data": "QQ"}, headers={"If-Match": tag}))["deletedAt"] is None


def test_revive_and_delete_again(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """What was revived can be deleted again."""
    revived = good(ann.put(vault, tombstone))
    assert ann.delete(vault, revived)["version"] == 4


def test_late_update(ann: ApiUser, vault: Json, document: Json, tombstone: Json) -> None:
    """An update that has not seen the delete is a conflict, and the document stays deleted."""
    refused_stale(ann.put(vault, document), tombstone, 409, "document_conflict")
    assert ann.read(vault, document) == tombstone


def test_late_update_by_if_match(ann: ApiUser, vault: Json, document: Json) -> None:
    """An If-Match that has not seen the delete is a 412."""
    path = docs(vault, document)
    tag = ann.http.get(path).headers["etag"]
    tombstone = ann.delete(vault, document)
    answer = ann.http.put(path, json={"data": "QQ"}, headers={"If-Match": tag})
    refused_stale(answer, tombstone, 412, "document_conflict")


def test_revival_retry(ann: ApiUser, vault: Json, tombstone: Json) -> None:
    """A revival sent again is answered with the revived document."""
    revived = good(ann.put(vault, tombstone, data="YmFjaw"))
    assert good(ann.put(vault, tombstone, data="YmFjaw")) == revived
