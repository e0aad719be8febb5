"""Uids that clients choose, and requests that are sent twice because an answer was lost."""

import uuid

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser, at_once

from .checks import BLOB


@pytest.fixture
def uid() -> str:
    """A uid of a client's own choice."""
    return str(uuid.uuid4())


@pytest.fixture
def body(uid: str) -> Json:
    """A document under a uid of the client's choice."""
    return {"uid": uid, "collection": "notes", "data": "QUJD", "hmac": "seal"}


def test_chosen_uid(resident: ApiUser, uid: str) -> None:
    """A vault may be made under a uid that its client chose."""
    vault = resident.vault(uid=uid, **BLOB)
    assert vault["uid"] == uid
    assert good(resident.http.get(f"/vault/{uid}")) == vault


def test_vault_retry(resident: ApiUser, uid: str) -> None:
    """The same vault sent again is answered with the stored one, and not made twice."""
    wanted = {"uid": uid, "name": f"twice {uid}", **BLOB}
    vault = made(resident.http.post("/vault", json=wanted))
    assert good(resident.http.post("/vault", json=wanted)) == vault
    names = [v["name"] for v in good(resident.http.get("/vault"))["vaults"]]
    assert names.count(wanted["name"]) == 1


def test_vault_uid_is_taken(resident: ApiUser, uid: str) -> None:
    """The same uid for another vault is a conflict."""
    resident.vault(uid=uid, **BLOB)
    answer = resident.http.post("/vault", json={"uid": uid, "name": str(uuid.uuid4()), **BLOB})
    refused(answer, 409, "uid_taken")


def test_blob_is_part_of_the_content(ann: ApiUser, uid: str) -> None:
    """The same uid and name with another blob is another vault."""
    wanted = {"uid": uid, "name": f"blob {uid}", **BLOB}
    made(ann.http.post("/vault", json=wanted))
    for other in ({"data": "else"}, {"salt": ""}):
        refused(ann.http.post("/vault", json=wanted | other), 409, "uid_taken")
    refused(ann.http.post("/vault", json={"uid": uid, "name": wanted["name"]}), 409, "uid_taken")


def test_vault_retry_after_a_change(ann: ApiUser, uid: str) -> None:
    """Once the vault has changed, the first request is no longer a retry."""
    wanted = {"uid": uid, "name": f"changed {uid}", **BLOB}
    made(ann.http.post("/vault", json=wanted))
    good(ann.http.put(f"/vault/{uid}", json={"data": "else", "salt": ""}))
    refused(ann.http.post("/vault", json=wanted), 409, "uid_taken")


def test_vault_retry_after_a_document(ann: ApiUser, uid: str) -> None:
    """A document in the vault does not change the vault, and a late retry is still one."""
    wanted = {"uid": uid, "name": f"filled {uid}"}
    ann.document(made(ann.http.post("/vault", json=wanted)))
    assert good(ann.http.post("/vault", json=wanted))["uid"] == uid


def test_vault_uid_of_another_account(resident: ApiUser, uid: str) -> None:
    """What another account stores under the same uid neither collides nor shows."""
    vault, other = resident.vault(uid=uid, **BLOB), ApiUser.register(resident.server)
    refused(other.http.get(f"/vault/{uid}"), 404, "vault_not_found")
    theirs = other.vault(uid=uid, **BLOB | {"data": "theirs"})
    assert good(resident.http.get(f"/vault/{uid}")) == vault
    assert good(other.http.get(f"/vault/{uid}")) == theirs
    good(other.http.delete(f"/vault/{uid}"))
    assert good(resident.http.get(f"/vault/{uid}")) == vault


def test_document_retry(ann: ApiUser, vault: Json, body: Json) -> None:
    """The same document sent again is answered with the stored one, ETag included."""
    first, second = ann.http.post(docs(vault), json=body), ann.http.post(docs(vault), json=body)
    assert made(first)["uid"] == body["uid"]
    assert good(second) == first.json()
    assert second.headers["etag"] == first.headers["etag"]
    assert len(good(ann.http.get(docs(vault)))["documents"]) == 1


def test_document_retry_without_hmac(ann: ApiUser, vault: Json, body: Json) -> None:
    """No hmac and an hmac of null are the same content."""
    bare = {key: value for key, value in body.items() if key != "hmac"}
    made(ann.http.post(docs(vault), json=bare))
    good(ann.http.post(docs(vault), json=bare | {"hmac": None}))


@pytest.mark.parametrize("change", [{"data": "WFla"}, {"collection": "else"}, {"hmac": "x"}, {"hmac": None}], ids=str)
def test_document_uid_is_taken(ann: ApiUser, vault: Json, body: Json, change: Json) -> None:
    """The same uid with other content is a conflict, and the stored document stays."""
    document = made(ann.http.post(docs(vault), json=body))
    refused(ann.http.post(docs(vault), json=body | change), 409, "uid_taken")
    assert ann.read(vault, document) == document


def test_document_retry_after_a_change(ann: ApiUser, vault: Json, body: Json) -> None:
    """Once the document has changed or gone, the first request is no longer a retry."""
    document = made(ann.http.post(docs(vault), json=body))
    changed = good(ann.put(vault, document, data=body["data"], hmac=body["hmac"]))
    refused(ann.http.post(docs(vault), json=body), 409, "uid_taken")
    ann.delete(vault, changed)
    refused(ann.http.post(docs(vault), json=body), 409, "uid_taken")


def test_document_uid_in_another_vault(ann: ApiUser, vault: Json, body: Json) -> None:
    """A uid is used once by its owner, in whichever vault."""
    made(ann.http.post(docs(ann.vault()), json=body))
    refused(ann.http.post(docs(vault), json=body), 409, "uid_taken")


def test_document_uid_of_another_account(ann: ApiUser, bob: ApiUser, vault: Json, body: Json) -> None:
    """Two accounts may use one uid for their documents, even in vaults of one uid."""
    document = made(ann.http.post(docs(vault), json=body))
    theirs_vault = bob.vault(uid=vault["uid"])
    refused(bob.http.get(docs(theirs_vault, document)), 404, "document_not_found")
    theirs = made(bob.http.post(docs(theirs_vault), json=body | {"data": "dGhlaXJz"}))
    assert bob.read(theirs_vault, theirs) == theirs
    bob.delete(theirs_vault, theirs)
    assert ann.read(vault, document) == document
    assert good(ann.http.get(docs(vault)))["documents"] == [document]


def test_creates_at_once(ann: ApiUser, vault: Json, body: Json) -> None:
    """Of many equal creates at the same time one makes the document, and all get it."""
    answers: list[httpx2.Response] = at_once(10, lambda _: ann.http.post(docs(vault), json=body))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert all(answer.json() == answers[0].json() for answer in answers)


def test_put_retry(ann: ApiUser, vault: Json) -> None:
    """An update sent again, by version or by If-Match, is answered with what it stored."""
    first = ann.http.post(docs(vault), json={"collection": "a", "data": "QQ"})
    path = docs(vault, first.json())
    change = {"data": "bmV3", "hmac": "seal"}
    stored = good(ann.http.put(path, json=change | {"version": 1}))
    assert good(ann.http.put(path, json=change | {"version": 1})) == stored
    assert good(ann.http.put(path, json=change, headers={"If-Match": first.headers["etag"]})) == stored
    assert good(ann.http.get(path)) == stored


def test_put_retry_must_be_the_same(ann: ApiUser, vault: Json) -> None:
    """Other data, another hmac or another version is no retry."""
    document = ann.document(vault)
    good(ann.put(vault, document, data="bmV3", hmac="seal"))
    for other in ({"data": "ZWxzZQ", "hmac": "seal"}, {"data": "bmV3", "hmac": "else"}, {"data": "bmV3"}):
        refused(ann.put(vault, document, **other), 409, "document_conflict")


def test_put_retry_must_be_the_last_change(ann: ApiUser, vault: Json) -> None:
    """After a further change an old update is a conflict, even if it would bring back the same data."""
    document = ann.document(vault)
    second = good(ann.put(vault, document, data="dHdv"))
    good(ann.put(vault, second, data="dHdv"))
    refused(ann.put(vault, document, data="dHdv"), 409, "document_conflict")


def test_delete_is_not_taken_for_a_retry(ann: ApiUser, vault: Json) -> None:
    """An update that meets a tombstone of the next version is a conflict: what it sent is not stored live."""
    document = ann.document(vault, data="QUJD")
    ann.delete(vault, document)
    refused(ann.put(vault, document, data="QUJD"), 409, "document_conflict")
