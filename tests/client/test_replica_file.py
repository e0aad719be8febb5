"""The tables of a replica's file: what they keep, and that every question about documents has an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from strongroom.client.errors import Tampered
from strongroom.client.replica.incoming import is_new
from strongroom.client.replica.store.file import File
from strongroom.client.replica.store.records import PUT, Entry, Mark
from strongroom.model import Document

OURS, THEIRS = "vault-1", "vault-2"


def row(uid: str, vault: str = OURS, collection: str = "notes", version: int = 1, at: int = 1) -> Document:
    return Document(uid, vault, collection, "data", f"hmac {version}", version, at, at, None)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    opened = File(tmp_path / "replica")
    yield opened
    opened.close()


class Asked:
    """A connection that keeps the plan of every statement."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.plans: dict[str, list[str]] = {}

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            plan = self._db.execute(f"EXPLAIN QUERY PLAN {statement}", values)
            self.plans[statement] = [str(step[3]) for step in plan]
        return self._db.execute(statement, values)

    def executemany(self, statement: str, rows: Any) -> None:
        for one in rows:
            self.execute(statement, one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_every_question_about_documents_has_an_index(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement reads all documents of the file, or sorts them."""
    file.documents.add([(row("a"), False)])
    file.outbox.put(Entry(vault=OURS, uid="a", collection="notes", kind=PUT, data="", hmac="", version=2, base=1))
    asked = Asked(file._db)
    monkeypatch.setattr(file, "_db", asked)
    documents = file.documents
    documents.get(OURS, "a")
    documents.exists(OURS, "a")
    list(documents.live(OURS))
    list(documents.live(OURS, "notes"))
    documents.heads(OURS, ["a", "b"])
    documents.changed_after(OURS, 0)
    documents.uids(OURS)
    documents.count_live(OURS)
    documents.is_mine(OURS, "a")
    documents.is_deleted(OURS, "a")
    documents.had_version(row("a"))
    documents.forget_times(OURS, ["a"])
    file.outbox.ready(OURS, 0, 10)
    file.outbox.conflicting()
    file.outbox.count_sendable()
    documents.drop(OURS, "a")
    file.vaults.drop(OURS)
    steps = [(statement, step) for statement, plan in asked.plans.items() for step in plan]
    assert len(asked.plans) > 20
    assert not [step for step in steps if step[1].startswith(("SCAN documents", "SCAN d", "SCAN p", "SCAN earlier"))]
    assert not [step for step in steps if "TEMP B-TREE" in step[1] and "outbox" not in step[0]]
    [count] = [plan for statement, plan in asked.plans.items() if statement.startswith("SELECT COUNT(*) FILTER")]
    assert "COVERING INDEX" in count[0]  # the documents themselves are not read


def test_a_dropped_vault_leaves_nothing(file: File) -> None:
    """Its documents, its earlier versions and its names go; a collection of the same name in another vault stays."""
    for vault in (OURS, THEIRS):
        file.documents.add([(row("a", vault), False)])
        file.documents.put([(row("a", vault, version=2, at=2), False)])
    file.vaults.drop(OURS)
    assert list(file.documents.live(OURS)) == []
    assert not file.documents.had_version(row("a"))
    assert OURS not in str(file.select("SELECT * FROM places"))
    assert list(file.documents.live(THEIRS, "notes")) == [row("a", THEIRS, version=2, at=2)]
    assert file.documents.had_version(row("a", THEIRS))
    assert [len(file.select(f"SELECT * FROM {table}")) for table in ("documents", "earlier", "places")] == [1, 1, 2]
    file.documents.add([(row("b"), False)])  # it comes again
    assert file.documents.uids(OURS) == {"b"}
    assert not file.documents.had_version(row("a"))


def test_what_is_taken_for_new_and_is_here_is_replaced(file: File) -> None:
    """`add` keeps what `put` would have kept, and the version before is known as an earlier one."""
    file.documents.put([(row("a"), False)])
    file.documents.add([(row("b", at=2), False), (row("a", version=2, at=3), True)])
    assert file.documents.get(OURS, "a") == row("a", version=2, at=3)
    assert file.documents.is_deleted(OURS, "a")
    assert file.documents.had_version(row("a"))
    assert list(file.documents.live(OURS)) == [row("b", at=2)]


def test_a_mark_is_lowered_by_nothing_but_a_decision(file: File) -> None:
    """Rows below leave it, whatever they are; one above takes its place, and so does the same one again."""
    file.documents.add([(row("a", version=5), True)])
    assert file.marks.of(OURS) == {}
    for version in (3, 1, 4):
        file.documents.put([(row("a", version=version), False)])
        mark = file.marks.get(OURS, "a")
        assert mark == Mark(5, "hmac 5", "notes", deleted=True)
        assert mark.is_above(row("a", version=4))
        assert not mark.is_above(row("a", version=5))
    file.documents.put([(row("a", version=5), True)])
    assert file.marks.get(OURS, "a") is None
    file.documents.put([(row("a", version=2), False)])
    file.documents.put([(row("a", version=6), False)])
    assert file.marks.of(OURS) == {}
    file.documents.put([(row("a", version=3), False)])
    file.marks.lower(OURS, "a")
    file.documents.put([(row("a", version=2), False)])
    assert file.marks.of(OURS) == {"a": Mark(3, "hmac 3", "notes", deleted=False)}


def test_the_file_knows_the_collection_of_a_document(file: File) -> None:
    """By that a row in another one is refused, after another version too."""
    file.documents.add([(row("a"), False), (row("b", collection="letters"), False)])
    file.documents.put([(row("a", version=2, at=2), False)])
    heads = file.documents.heads(OURS, ["a", "b"])
    assert {uid: head[4] for uid, head in heads.items()} == {"a": "notes", "b": "letters"}
    for uid, collection in (("a", "letters"), ("b", "notes")):
        with pytest.raises(Tampered):
            is_new(heads[uid], row(uid, collection=collection, version=3, at=3))


def test_documents_without_a_time_are_all_iterated(file: File) -> None:
    """Those that a restored server has lost have the time 0: more of them than are read at once, each comes once."""
    rows = [row(f"{number:04}", at=number + 1) for number in range(700)]
    file.documents.add([(one, False) for one in rows])
    file.documents.forget_times(OURS, [one.uid for one in rows[:600]])
    lost = [msgspec.structs.replace(one, created_at=0, updated_at=0) for one in rows[:600]]
    assert list(file.documents.live(OURS)) == list(file.documents.live(OURS, "notes")) == lost + rows[600:]


def test_a_reader_beside_the_writer_sees_new_collections(file: File, tmp_path: Path) -> None:
    """The numbers of vaults and collections are in the file alone, never in memory."""
    reader = File(tmp_path / "replica")
    assert not reader.is_writer
    assert reader.documents.get(OURS, "a") is None
    file.documents.add([(row("a"), False)])
    assert reader.documents.get(OURS, "a") == row("a")
    with suppress(RuntimeError), file.transaction():
        file.documents.add([(row("b", THEIRS), False)])
        raise RuntimeError
    file.documents.add([(row("c", THEIRS, "letters"), False)])
    assert list(reader.documents.live(THEIRS)) == [row("c", THEIRS, "letters")]
    assert list(reader.documents.live(OURS)) == [row("a")]
    reader.close()


def test_a_document_whose_collection_is_gone_from_the_file_is_in_none(file: File) -> None:
    """No name of a collection is empty, so no key opens it: a damaged file is noticed, and shows nothing false."""
    file.documents.add([(row("a"), False)])
    file.run("DELETE FROM places WHERE collection = 'notes'")
    assert file.documents.get(OURS, "a") == row("a", collection="")
