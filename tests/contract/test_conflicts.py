"""Versions, preconditions, and what a client learns when it is late."""

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row

from .checks import clean, refused_stale


@pytest.fixture
def document(ann: ApiUser, vault: Json) -> Json:
    """A document that has been changed once."""
    return good(ann.put(vault, ann.document(vault), data="dHdv"))


def tag(ann: ApiUser, vault: Json, document: Json) -> str:
    """The ETag of a document as it is now."""
    found: str = ann.http.get(docs(vault, document)).headers["etag"]
    return found


def put(ann: ApiUser, vault: Json, document: Json, match: str = "", **body: object) -> httpx2.Response:
    """Replace a document under a precondition of one's choice."""
    headers = {"If-Match": match} if match else {}
    return ann.http.put(docs(vault, document), json={"data": "bmV3"} | body, headers=headers)


@pytest.mark.parametrize("version", [1, 3, 1000], ids=["stale", "next", "future"])
def test_version_that_is_not_stored(ann: ApiUser, vault: Json, document: Json, version: int) -> None:
    """Any version but the stored one is a 409 that tells version and time of what is stored."""
    refused_stale(put(ann, vault, document, version=version), document, 409, "document_conflict")
    assert ann.read(vault, document) == document


def test_stale_if_match(ann: ApiUser, vault: Json) -> None:
    """A stale If-Match is a 412 with the code and details of the 409."""
    document = ann.document(vault)
    old = tag(ann, vault, document)
    stored = good(ann.put(vault, document))
    refused_stale(put(ann, vault, document, match=old), stored, 412, "document_conflict")
    assert ann.read(vault, document) == stored


def test_if_match_instead_of_version(ann: ApiUser, vault: Json, document: Json) -> None:
    """An If-Match that fits stands in for the version."""
    changed = good(put(ann, vault, document, match=tag(ann, vault, document)))
    assert changed["version"] == 3
    assert changed["data"] == "bmV3"


def test_if_match_and_version_agree(ann: ApiUser, vault: Json, document: Json) -> None:
    """Both may be sent when they say the same."""
    assert good(put(ann, vault, document, match=tag(ann, vault, document), version=2))["version"] == 3


def test_if_match_and_version_contradict(ann: ApiUser, vault: Json, document: Json) -> None:
    """Both together are refused when they contradict each other, whichever is right."""
    current = tag(ann, vault, document)
    refused(put(ann, vault, document, match=current, version=1), 400, "validation_error")
    good(put(ann, vault, document, version=2))
    refused(put(ann, vault, document, match=current, version=3), 400, "validation_error")


@pytest.mark.parametrize("version", [0, -1, 2**53, 2**63, 2**64, -(2**63) - 1, 10**40], ids=str)
def test_version_out_of_reach(ann: ApiUser, vault: Json, document: Json, version: int) -> None:
    """A version that cannot be is refused cleanly, as a bad field or as a conflict."""
    answer = put(ann, vault, document, version=version)
    clean(answer)
    assert answer.status_code in (400, 409)
    assert ann.read(vault, document) == document


@each_row(
    "match",
    ['"02"', f'"{2**63}"', f'"{"9" * 5000}"', '"-1"', "nonsense", '"', '"no such tag"', "W/", '"\\"', ",,,"],
    ids=lambda tag: ascii(tag)[:30],
)
def test_odd_if_match(ann: ApiUser, vault: Json, document: Json, match: str) -> None:
    """An If-Match that makes no sense changes nothing."""
    answer = put(ann, vault, document, match=match)
    clean(answer)
    assert answer.status_code in (400, 412)
    assert ann.read(vault, document) == document


@pytest.mark.parametrize("form", ["W/{}", '"other", W/{}'])
def test_weak_tag_in_if_match(ann: ApiUser, vault: Json, form: str) -> None:
    """If-Match compares strongly: a weak tag fits nothing, whatever it names."""
    document = ann.document(vault)
    weak = form.format(tag(ann, vault, document))
    refused_stale(put(ann, vault, document, match=weak), document, 412, "document_conflict")
    refused_stale(
        ann.http.delete(docs(vault, document), headers={"If-Match": weak}), document, 412, "document_conflict"
    )
    weak = form.format(f'"{vault["version"]}"')
    refused(ann.http.put(f"/vault/{vault['uid']}", json={"name": "another"}, headers={"If-Match": weak}), 412)
    assert ann.read(vault, document) == document


def test_delete_of_a_vault_under_if_match(ann: ApiUser) -> None:
    """Stale, it is a 412 and everything stays; fitting, the vault goes."""
    vault = ann.vault()
    document = ann.document(vault)
    path = f"/vault/{vault['uid']}"
    stored = good(ann.http.put(path, json={"name": f"renamed {vault['uid']}", "version": 1}))
    refused_stale(ann.http.delete(path, headers={"If-Match": '"1"'}), stored, 412, "vault_conflict")
    assert good(ann.http.get(path)) == stored
    assert good(ann.http.get(docs(vault, document))) == document
    assert good(ann.http.delete(path, headers={"If-Match": '"2"'}))["success"] is True
    refused(ann.http.get(path), 404, "vault_not_found")


def test_delete_with_if_match(ann: ApiUser, vault: Json) -> None:
    """A delete under a stale If-Match is a 412; under a fitting one it deletes."""
    document = ann.document(vault)
    old = tag(ann, vault, document)
    stored = good(ann.put(vault, document))
    path = docs(vault, document)
    refused_stale(ann.http.delete(path, headers={"If-Match": old}), stored, 412, "document_conflict")
    assert ann.read(vault, document)["deletedAt"] is None
    good(ann.http.delete(path, headers={"If-Match": tag(ann, vault, document)}))
    assert ann.read(vault, document)["deletedAt"]


def test_every_answer_has_an_etag(ann: ApiUser, vault: Json) -> None:
    """Create, read and update each answer with the ETag of the version they answer."""
    created = ann.http.post(docs(vault), json={"collection": "a", "data": "QQ"})
    document = created.json()
    assert created.headers["etag"] == tag(ann, vault, document)
    changed = ann.put(vault, document)
    assert changed.headers["etag"] == tag(ann, vault, document) != created.headers["etag"]
    ann.delete(vault, document)
    assert tag(ann, vault, document) not in (created.headers["etag"], changed.headers["etag"])


def test_if_none_match(ann: ApiUser, vault: Json) -> None:
    """A client that has the latest version is told so in a word."""
    document = ann.document(vault)
    path, current = docs(vault, document), tag(ann, vault, document)
    for known in (current, f'"other", {current}', f"W/{current}"):
        answer = ann.http.get(path, headers={"If-None-Match": known})
        assert answer.status_code == 304
        assert answer.content == b""
        assert answer.headers["etag"] == current
    stored = good(ann.put(vault, document))
    assert good(ann.http.get(path, headers={"If-None-Match": current})) == stored
