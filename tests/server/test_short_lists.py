"""Lists of few changes are answered by one short read; they say the same as a list that is read as a stream."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from strongroom.server.snapshots import Snapshot
from strongroom.store.queries.documents import SHORT_LIST_BYTES, SHORT_LIST_ROWS
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of every snapshot that a list opened."""
    opened: list[Any] = []
    read = Snapshot.read

    async def recorded(snapshot: Snapshot, *args: Any) -> Any:
        opened.append(args)
        return await read(snapshot, *args)

    monkeypatch.setattr(Snapshot, "read", recorded)
    return opened


async def filled(server: InProcessServer, sizes: list[int]) -> tuple[Person, str, list[dict[str, Any]]]:
    """Somebody with documents of these sizes: the path of the list, and the documents."""
    person = await server.person()
    vault = await person.vault()
    made = [await person.document(vault, collection="ab"[n % 2], data="A" * size) for n, size in enumerate(sizes)]
    return person, f"/vaults/{vault['uid']}/documents", made


@async_test
async def test_few_changes_open_no_snapshot(open_server: OpenServer, snapshots: list[Any]) -> None:
    """As many as one short read may give, each as large as it may be."""
    async with open_server() as server:
        person, path, made = await filled(server, [SHORT_LIST_BYTES] * SHORT_LIST_ROWS)
        found = (await person("GET", f"{path}?since=0")).json()
        assert [one["uid"] for one in found["documents"]] == [one["uid"] for one in made]
        assert (found["next"], found["hasMore"]) == (made[-1]["updatedAt"], False)
        assert found["documents"][0]["data"] == "A" * SHORT_LIST_BYTES
        assert not snapshots


@pytest.mark.parametrize(
    "sizes",
    [[4] * (SHORT_LIST_ROWS + 1), [4, SHORT_LIST_BYTES + 1, 4], [4, 3_000_000]],
    ids=["too many", "one that is larger", "one that is large"],
)
@async_test
async def test_more_changes_are_streamed(sizes: list[int], open_server: OpenServer, snapshots: list[Any]) -> None:
    """However large they are, only some of them are in memory."""
    async with open_server() as server:
        person, path, made = await filled(server, sizes)
        found = (await person("GET", f"{path}?since=0")).json()
        assert [(one["uid"], len(one["data"])) for one in found["documents"]] == [
            (one["uid"], size) for one, size in zip(made, sizes, strict=True)
        ]
        assert len(snapshots) == 1


@async_test
async def test_a_short_list_says_what_a_stream_says(
    open_server: OpenServer, snapshots: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, whatever is asked for: limits, collections, tombstones, the trash."""
    async with open_server() as server:
        person, path, made = await filled(server, [4] * 6)
        await person("DELETE", f"{path}/{made[1]['uid']}", {"version": 1})
        await person("PUT", f"{path}/{made[2]['uid']}", {"version": 1, "data": "?"})
        questions = [
            f"{base}?since={since}{limit}{collection}{deleted}"
            for base, since, limit, collection, deleted in itertools.product(
                (path, f"{path}/sync"),
                (0, made[3]["updatedAt"], made[-1]["updatedAt"], made[-1]["updatedAt"] + 10**9, 2**53 - 1),
                ("", "&limit=1", "&limit=2", "&limit=100"),
                ("", "&collection=a", "&collection=none"),
                ("", "&includeDeleted=false", "&deleted=only"),
            )
        ]
        short = [(await person("GET", question)).content for question in questions]
        once = len(snapshots)
        monkeypatch.setattr("strongroom.store.queries.documents.SHORT_LIST_ROWS", -1)
        streamed = [(await person("GET", question)).content for question in questions]
        assert short == streamed
        assert once < len(snapshots) - once
