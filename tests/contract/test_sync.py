"""The `sync` spelling of the list, and a reader that must miss nothing."""

import threading

import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good
from tests.kit.people.api_user import ApiUser


@pytest.mark.parametrize("prefix", ["vault", "vaults"])
def test_sync_is_the_list_with_since(ann: ApiUser, vault: Json, prefix: str) -> None:
    """`sync` answers as the list with `since` does, and adds `syncedAt`, which equals `next`."""
    documents = [ann.document(vault) for _ in range(4)]
    ann.delete(vault, documents[0])
    path = f"/{prefix}/{vault['uid']}/documents"
    for query in (
        "since=0",
        f"since={documents[1]['updatedAt']}",
        "since=0&limit=2",
        "since=0&collection=else",
    ):
        body = good(ann.http.get(f"{path}/sync?{query}"))
        assert body.pop("syncedAt") == body["next"]
        assert body == good(ann.http.get(f"{path}?{query}"))


def test_sync_without_since(ann: ApiUser, vault: Json) -> None:
    """Without `since`, `sync` begins at 0, tombstones included."""
    document = ann.document(vault)
    tombstone = ann.delete(vault, document)
    body = good(ann.http.get(f"{docs(vault)}/sync"))
    assert body["documents"] == [tombstone]
    assert body["syncedAt"] == body["next"] == tombstone["updatedAt"]


def test_sync_include_deleted(ann: ApiUser, vault: Json) -> None:
    """`includeDeleted` holds here too."""
    ann.delete(vault, ann.document(vault))
    assert good(ann.http.get(f"{docs(vault)}/sync?includeDeleted=false"))["documents"] == []


def test_two_devices(ann: ApiUser, vault: Json) -> None:
    """A second device that follows `next` learns of every create, change, delete and revival, once each."""
    since = 0

    def news() -> list[Json]:
        nonlocal since
        body = good(ann.http.get(f"{docs(vault)}/sync?since={since}"))
        since = body["syncedAt"]
        found: list[Json] = body["documents"]
        return found

    document = ann.document(vault)
    assert news() == [document]
    assert news() == []
    changed = good(ann.put(vault, document))
    assert news() == [changed]
    tombstone = ann.delete(vault, document)
    assert news() == [tombstone]
    revived = good(ann.put(vault, tombstone))
    assert news() == [revived]
    assert news() == []


@pytest.mark.parametrize("limit", ["", "&limit=7"], ids=["whole", "pages"])
def test_reader_misses_nothing(ann: ApiUser, vault: Json, limit: str) -> None:
    """A reader that polls while eight writers write sees every document exactly once."""
    written: list[str] = []

    def write() -> None:
        written.extend(ann.document(vault)["uid"] for _ in range(25))

    writers = [threading.Thread(target=write) for _ in range(8)]
    for thread in writers:
        thread.start()
    seen: list[str] = []
    since, running = 0, True
    while running:
        running = any(thread.is_alive() for thread in writers)
        body = good(ann.http.get(f"{docs(vault)}/sync?since={since}{limit}"))
        while True:
            seen += [document["uid"] for document in body["documents"]]
            since = body["next"]
            if not body["hasMore"]:
                break
            body = good(ann.http.get(f"{docs(vault)}/sync?since={since}{limit}"))
    assert len(written) == 200
    assert sorted(seen) == sorted(written)
