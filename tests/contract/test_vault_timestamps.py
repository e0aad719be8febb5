"""A vault's timestamps: one write, one timestamp, however many clients write at once."""

import uuid
from collections import Counter

import httpx2

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser, at_once

from .checks import now, refused_stale


def test_creates_at_once(ann: ApiUser, vault: Json) -> None:
    """Thirty-two documents made at once have thirty-two different times, in the order of the list."""
    documents: list[Json] = at_once(32, lambda _: ann.document(vault))
    times = [document["updatedAt"] for document in documents]
    assert len(set(times)) == 32
    listed = good(ann.http.get(docs(vault)))["documents"]
    assert listed == sorted(documents, key=lambda document: int(document["updatedAt"]))
    assert good(ann.http.get(f"/vault/{vault['uid']}"))["updatedAt"] == max(times)


def test_updates_at_once(ann: ApiUser, vault: Json) -> None:
    """Of twenty updates of one version one wins, and nineteen learn its version and time."""
    document = ann.document(vault)
    answers: list[httpx2.Response] = at_once(20, lambda n: ann.put(vault, document, data=f"Tm{n:02}"))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 19}
    stored = ann.read(vault, document)
    assert stored["version"] == 2
    for answer in answers:
        if answer.status_code == 200:
            assert answer.json() == stored
        else:
            refused_stale(answer, stored, 409, "document_conflict")


def test_updates_of_many_documents_at_once(ann: ApiUser, vault: Json) -> None:
    """Updates of different documents do not hinder each other, and no two share a time."""
    documents: list[Json] = at_once(16, lambda _: ann.document(vault))
    changed: list[Json] = at_once(16, lambda n: good(ann.put(vault, documents[n])))
    times = [document["updatedAt"] for document in documents + changed]
    assert len(set(times)) == 32
    assert min(document["updatedAt"] for document in changed) > max(d["updatedAt"] for d in documents)


def test_deletes_at_once(ann: ApiUser, vault: Json) -> None:
    """Of many deletes of one document exactly one deletes it."""
    document = ann.document(vault)
    answers: list[httpx2.Response] = at_once(12, lambda _: ann.http.delete(docs(vault, document)))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 404: 11}
    assert ann.read(vault, document)["version"] == 2


def test_update_against_delete(ann: ApiUser, vault: Json) -> None:
    """An update and a delete at the same time: the versions count the changes that were accepted."""
    document = ann.document(vault)
    answers: list[httpx2.Response] = at_once(
        2,
        lambda n: ann.put(vault, document) if n else ann.http.delete(docs(vault, document)),
    )
    accepted = sum(answer.status_code == 200 for answer in answers)
    stored = ann.read(vault, document)
    assert stored["version"] == 1 + accepted
    assert answers[0].status_code == 200
    assert stored["deletedAt"] is not None


def test_every_kind_of_write_ticks(ann: ApiUser, vault: Json) -> None:
    """Create, update, delete, revive and rename each take a later time than the one before."""
    start = now()
    document = ann.document(vault)
    changed = good(ann.put(vault, document))
    tombstone = ann.delete(vault, changed)
    name = str(uuid.uuid4())
    renamed = good(ann.http.put(f"/vault/{vault['uid']}", json={"name": name, "version": 1}))
    revived = good(ann.put(vault, tombstone))
    times = [step["updatedAt"] for step in (vault, document, changed, tombstone, renamed, revived)]
    assert times == sorted(set(times))
    assert times[1] >= start - 1000
    assert good(ann.http.get(f"/vault/{vault['uid']}"))["updatedAt"] == times[-1]


def test_clock_is_never_behind(ann: ApiUser, vault: Json) -> None:
    """A write's time is the present or later, never the past."""
    for _ in range(10):
        before = now()
        assert ann.document(vault)["updatedAt"] >= before


def test_reads_do_not_tick(ann: ApiUser, vault: Json) -> None:
    """Reading moves nothing."""
    document = ann.document(vault)
    for path in (docs(vault), f"{docs(vault)}/sync", docs(vault, document), "/vault"):
        good(ann.http.get(path))
    assert good(ann.http.get(f"/vault/{vault['uid']}"))["updatedAt"] == document["updatedAt"]


def test_writes_while_the_vault_goes(ann: ApiUser, vault: Json) -> None:
    """Whoever writes into a vault while it is deleted is taken or told that it is gone."""
    answers: list[httpx2.Response] = at_once(
        17,
        lambda n: (
            ann.http.delete(f"/vault/{vault['uid']}")
            if n == 8
            else ann.http.post(docs(vault), json={"collection": "a", "data": "QQ"})
        ),
    )
    assert answers.pop(8).status_code == 200
    for answer in answers:
        if answer.status_code != 201:
            refused(answer, 404, "vault_not_found")
    refused(ann.http.get(docs(vault)), 404, "vault_not_found")


def test_same_uid_in_two_vaults_at_once(ann: ApiUser) -> None:
    """One uid sent to two vaults at once: one takes it, the other is told."""
    vaults = [ann.vault(), ann.vault()]
    body = {"uid": str(uuid.uuid4()), "collection": "a", "data": "QQ"}
    answers: list[httpx2.Response] = at_once(2, lambda n: ann.http.post(docs(vaults[n]), json=body))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    made(next(answer for answer in answers if answer.status_code == 201))
