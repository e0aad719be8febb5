"""Many writes at once: batches, a result for each item, and each stored exactly once whatever is lost on the way."""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strongroom import rules
from strongroom.client.operations import batches
from strongroom.errors import (
    DocumentConflict,
    DocumentNotFound,
    Invalid,
    PayloadTooLarge,
    QuotaExceeded,
    UidTaken,
    Unavailable,
)
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.kit.clients.factory import ClientFactory
from tests.kit.network.proxy import LOSE, PASS, REFUSE, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


def notes_of(client: Any) -> Any:
    return client.vault("v", create=True).collection("notes")


def documents(results: Any) -> list[Any]:
    return [result.document for result in results]


def count_batches(proxy: Proxy) -> int:
    return sum(path.endswith("/batch") for _, path, _ in proxy.seen)


@pytest.mark.both_languages
def test_many_documents_are_created_replaced_and_deleted(clients: ClientFactory, proxy: Proxy) -> None:
    """In few requests, with results in the order of the items, and verified as single ones are."""
    notes = notes_of(clients.person(url=proxy.url))
    made = documents(notes.create_many({"n": number} for number in range(1_200)))
    assert [one.value["n"] for one in made] == list(range(1_200))
    assert count_batches(proxy) == 3
    assert {one.uid for one in notes} == {one.uid for one in made}
    changed = documents(notes.replace_many((one, one.value["n"] * 2) for one in made[:600]))
    assert [(one.value, one.version) for one in changed[:3]] == [(0, 2), (2, 2), (4, 2)]
    gone = documents(notes.delete_many([*changed, *made[600:]]))
    assert all(one.deleted for one in gone)
    assert [one.version for one in gone[599:601]] == [4, 3]
    assert list(notes) == []
    assert notes.revive(gone[7]).value == 14


@pytest.mark.both_languages
def test_items_are_taken_as_they_are_needed(clients: ClientFactory) -> None:
    """An endless iterable is fine, as long as nobody reads its results to the end."""
    notes = notes_of(clients.person())
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = iter(notes.create_many(endless()))
    assert next(results).document.value == 1
    assert taken == batches.MOST_OPERATIONS + 1
    close: Callable[[], None] = results.close
    close()


@pytest.mark.both_languages
def test_a_batch_stays_within_the_limits_of_the_server(clients: ClientFactory, proxy: Proxy) -> None:
    """Of operations, two for each deletion, and of bytes; one large document is a batch of its own."""
    assert batches.MOST_OPERATIONS <= rules.MAX_OPERATIONS
    notes = notes_of(clients.person(url=proxy.url))
    large = documents(notes.create_many([b"x" * 1_000_000] * 3))
    assert count_batches(proxy) == 3
    proxy.seen.clear()
    documents(notes.delete_many(documents(notes.create_many(range(300)))))
    assert count_batches(proxy) == 1 + 2
    assert len(large) == 3


@pytest.mark.both_languages
def test_what_cannot_be_written_is_told_and_the_rest_goes_on(clients: ClientFactory) -> None:
    """A value that JSON cannot hold, a document that was changed or is gone, one of elsewhere, a uid in use."""
    client = clients.person()
    vault = client.vault("v", create=True)
    notes, tasks = vault.collection("notes"), vault.collection("tasks")
    results = list(notes.create_many([1, object(), 2, float("nan"), 3]))
    assert [type(one.error) for one in results] == [type(None), Invalid, type(None), Invalid, type(None)]
    assert [one.index for one in results] == [0, 1, 2, 3, 4]
    with pytest.raises(Invalid):
        results[1].document  # noqa: B018
    one, two, three = (result.document for result in results if result.error is None)
    other = tasks.create("task")
    notes.replace(one, "newer")
    notes.delete(two)
    told = list(notes.replace_many([(one, "x"), (two, "y"), (three, "z"), (other, "w"), (three, "again")]))
    assert [type(result.error) for result in told] == [
        *(DocumentConflict, DocumentConflict, type(None), DocumentNotFound, DocumentConflict)
    ]
    assert told[2].document.value == "z"
    assert sorted(note.value for note in notes) == ["newer", "z"]
    uids = [str(uuid.uuid4()), three.uid, other.uid, "no\x00uid", str(uuid.uuid4())]
    told = list(notes.create_many("abcde", uids=uids))
    assert [type(result.error) for result in told] == [type(None), UidTaken, UidTaken, Invalid, type(None)]
    gone = list(notes.delete_many([one, told[0].document, told[4].document, told[4].document]))
    assert [type(result.error) for result in gone] == [DocumentConflict, type(None), type(None), type(None)]
    assert gone[3].document == gone[2].document


@pytest.mark.both_languages
@pytest.mark.parametrize("uids", [1, 3])
def test_uids_are_as_many_as_values(clients: ClientFactory, uids: int) -> None:
    """Otherwise the program has made a mistake, and is told."""
    notes = notes_of(clients.person())
    with pytest.raises(Invalid, match=r"."):
        list(notes.create_many([1, 2], uids=[str(uuid.uuid4()) for _ in range(uids)]))


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE])
def test_a_lost_response_writes_nothing_twice(clients: ClientFactory, proxy: Proxy, fate: str) -> None:
    """Of every batch the first answer or the first request is lost; each item is stored once, as its result says."""
    notes = notes_of(clients.person(url=proxy.url))
    tries: dict[int, int] = {}

    def losing(_method: str, path: str) -> str:
        if not path.endswith("/batch"):
            return PASS
        tries[len(tries)] = 1
        return PASS if len(tries) % 2 == 0 else fate

    proxy.policy = losing
    made = documents(notes.create_many(range(3)))
    changed = documents(notes.replace_many((one, one.value + 10) for one in made))
    gone = documents(notes.delete_many(changed[:2]))
    assert [one.version for one in changed] == [2, 2, 2]
    assert [(one.version, one.deleted) for one in gone] == [(4, True)] * 2
    assert [(one.value, one.version) for one in notes] == [(12, 2)]
    assert [one.version for one in notes.history(made[2].uid)] == [1]


@pytest.mark.both_languages
@pytest.mark.parametrize("what", ["create", "replace", "delete"])
def test_what_others_changed_after_a_lost_response_was_written(
    clients: ClientFactory, server: Server, what: str
) -> None:
    """Another device went on from an item whose response was lost: the item is done, and is not refused."""
    email = unique_email()
    liar = Liar(server.port)
    try:
        client = clients.client(liar.url)
        client.register(email, PASSWORD)
        notes = notes_of(client)
        kept = notes.create("kept")
        other = clients.client()
        other.login(email, PASSWORD)
        theirs = other.vault("v").collection("notes")
        changed: list[str] = []

        def lose(talk: Talk) -> None:
            if not talk.path.endswith("/batch") or changed:
                return
            uid = json.loads(talk.given)["operations"][0]["uid"]
            assert talk.status == 200
            theirs.replace(theirs.get(uid, deleted=True), "theirs")
            changed.append(uid)
            talk.say({"error": {"code": "unavailable", "message": "", "requestId": "x"}}, 503, {"retry-after": "0"})

        liar.lie = lose
        wanted = {
            "create": lambda: notes.create_many(["mine", "also mine"]),
            "replace": lambda: notes.replace_many([(kept, "mine")]),
            "delete": lambda: notes.delete_many([kept]),
        }
        first, *others = wanted[what]()
        assert (first.error, first.document.value, first.uid) == (None, "theirs", changed[0])
        assert [one.document.value for one in others] == (["also mine"] if what == "create" else [])
        assert theirs.get(changed[0]).value == "theirs"
    finally:
        liar.close()


@pytest.mark.both_languages
def test_a_second_run_with_the_same_uids_creates_nothing_twice(clients: ClientFactory, proxy: Proxy) -> None:
    """The connection ends in the middle: what was stored is told, and a new run finds it and does the rest."""
    client = clients.person(url=proxy.url, retries=0)
    notes = notes_of(client)
    uids = [str(uuid.uuid4()) for _ in range(1_100)]
    seen = 0

    def ending(_method: str, path: str) -> str:
        nonlocal seen
        seen += path.endswith("/batch")
        return LOSE if seen == 2 and path.endswith("/batch") else PASS

    proxy.policy = ending
    stored: list[str] = []
    with pytest.raises(Unavailable):
        stored.extend(result.document.uid for result in notes.create_many(range(1_100), uids=uids))
    assert stored == uids[:500]
    again = list(notes.create_many(range(1_100), uids=uids))
    assert [type(one.error) for one in again] == [UidTaken] * 1_000 + [type(None)] * 100
    assert sorted(one.value for one in notes) == list(range(1_100))


@pytest.mark.both_languages
def test_a_server_that_takes_less_gets_smaller_batches(clients: ClientFactory, own_server: Server) -> None:
    """A batch over its limit is sent in halves; one document over it is refused alone. A full quota stops the run."""
    own_server.settings |= {"MAX_BODY_BYTES": "20000", "QUOTA_DOCUMENTS": "30"}
    own_server.start()
    client = clients.client(f"http://127.0.0.1:{own_server.port}")
    client.register(unique_email(), PASSWORD)
    notes = notes_of(client)
    values = [b"x" * 3_000] * 10 + [b"x" * 30_000] + [b"y" * 3_000] * 10
    results = list(notes.create_many(values))
    assert [one.index for one in results if one.error is not None] == [10]
    assert isinstance(results[10].error, PayloadTooLarge)
    assert client.usage().documents == 20
    with pytest.raises(QuotaExceeded):
        list(notes.create_many(range(11)))
    assert client.usage().documents == 20
    assert len(documents(notes.create_many(range(10)))) == 10


def test_whoever_forgets_to_iterate_is_told(clients: ClientFactory) -> None:
    """Nothing was written, and a warning says so."""
    notes = notes_of(clients.person())

    def forget() -> None:
        notes.create_many(["one"])
        gc.collect()

    with pytest.warns(RuntimeWarning, match="Nothing was written"):
        forget()
    assert list(notes) == []
