"""Renaming a vault, and what its version and its ETag count."""

import uuid

import httpx2
import pytest

from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser, at_once

from .checks import refused_stale


@pytest.fixture(params=["both", "document"])
def keeper(request: pytest.FixtureRequest, engine: str) -> ApiUser:  # noqa: ARG001 - which decides the engine
    """Somebody on each kind of server that renames vaults."""
    person: ApiUser = request.getfixturevalue({"both": "ann", "document": "dora"}[request.param])
    return person


def rename(person: ApiUser, vault: Json, **body: object) -> httpx2.Response:
    """Ask for a new name."""
    return person.http.put(f"/vault/{vault['uid']}", json=body)


def test_rename(keeper: ApiUser) -> None:
    """A rename gives the vault its new name, the next version and a later time."""
    vault = keeper.vault()
    name = str(uuid.uuid4())
    renamed = good(rename(keeper, vault, name=name, version=1))
    assert renamed["uid"] == vault["uid"]
    assert renamed["name"] == name
    assert renamed["version"] == 2
    assert renamed["updatedAt"] > vault["updatedAt"]
    assert good(keeper.http.get(f"/vault/by-name/{name}")) == renamed
    refused(keeper.http.get(f"/vault/by-name/{vault['name']}"), 404, "vault_not_found")


def test_rename_keeps_the_documents(keeper: ApiUser) -> None:
    """The documents of a renamed vault are still there, unchanged."""
    vault = keeper.vault()
    document = keeper.document(vault)
    good(rename(keeper, vault, name=str(uuid.uuid4()), version=1))
    assert keeper.read(vault, document) == document


def test_stale_rename(keeper: ApiUser) -> None:
    """A rename at an old version is a conflict that tells the stored one."""
    vault = keeper.vault()
    stored = good(rename(keeper, vault, name=str(uuid.uuid4()), version=1))
    refused_stale(rename(keeper, vault, name=str(uuid.uuid4()), version=1), stored, 409, "vault_conflict")
    assert good(keeper.http.get(f"/vault/{vault['uid']}")) == stored


def test_rename_to_a_taken_name(keeper: ApiUser) -> None:
    """A rename to the name of another vault is refused and changes nothing."""
    vault, other = keeper.vault(), keeper.vault()
    refused(rename(keeper, vault, name=other["name"], version=1), 409, "vault_already_exists")
    assert good(keeper.http.get(f"/vault/{vault['uid']}")) == vault


def test_old_name_is_free(keeper: ApiUser) -> None:
    """The name that a vault gave up can be given to another."""
    vault = keeper.vault()
    good(rename(keeper, vault, name=str(uuid.uuid4()), version=1))
    assert keeper.vault(name=vault["name"])["uid"] != vault["uid"]


def test_renames_at_once(ann: ApiUser) -> None:
    """Of many renames of one version exactly one wins."""
    vault = ann.vault()
    answers: list[httpx2.Response] = at_once(10, lambda n: rename(ann, vault, name=f"{vault['uid']} {n}", version=1))
    stored = good(ann.http.get(f"/vault/{vault['uid']}"))
    assert [a.json() for a in answers if a.status_code == 200] == [stored]
    for answer in answers:
        if answer.status_code != 200:
            refused_stale(answer, stored, 409, "vault_conflict")


def test_documents_do_not_count(ann: ApiUser) -> None:
    """Documents move a vault's time but not its version."""
    vault = ann.vault()
    document = ann.document(vault)
    seen = good(ann.http.get(f"/vault/{vault['uid']}"))
    assert seen["version"] == 1
    assert seen["updatedAt"] == document["updatedAt"] > vault["updatedAt"]
    good(rename(ann, vault, name=str(uuid.uuid4()), version=1))


def test_etag_covers_version_and_time(ann: ApiUser) -> None:
    """A vault's ETag answers 304 until the vault or a document in it changes."""
    vault = ann.vault()
    path = f"/vault/{vault['uid']}"
    tags = [ann.http.get(path).headers["etag"]]
    ann.document(vault)
    tags.append(ann.http.get(path).headers["etag"])
    good(rename(ann, vault, name=str(uuid.uuid4()), version=1))
    tags.append(ann.http.get(path).headers["etag"])
    assert len(set(tags)) == 3
    for tag in tags[:-1]:
        assert ann.http.get(path, headers={"If-None-Match": tag}).status_code == 200
    answer = ann.http.get(path, headers={"If-None-Match": tags[-1]})
    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["etag"] == tags[-1]
