"""Rows with fields of another row: of every document, collection, vault, account and epoch, by a generated table.

The other row is one that is stored there, or one that a holder of the keys there has made for the note's uid, to follow
on what the device has seen. Each field is swapped alone, all but each, and the whole row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from strongroom.client.format import names, seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import short
from strongroom.client.format.keys import CollectionKeys
from strongroom.errors import Refusal, UidTaken
from tests.client.hostile.attack import CANARY, Broken, met
from tests.client.hostile.lying_proxy import Lie
from tests.client.hostile.on_documents import tokens_keys
from tests.client.hostile.on_epochs import reads, restored
from tests.client.hostile.scenario import Row, Stage, later, newest_row

FIELDS: Final = ("uid", "vaultUid", "collection", "data", "hmac", "version", "createdAt", "updatedAt", "deletedAt")


class Swap(NamedTuple):
    """Fields of the note's row that are those of another one."""

    source: str
    fields: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the swap is called."""
        left = [field for field in FIELDS if field not in self.fields]
        called = "all" if not left else f"all but {left[0]}" if len(left) == 1 else self.fields[0]
        return f"{called} of {self.source}"


def _made(keys: Callable[[Stage], CollectionKeys], *, deletion: bool = False) -> Callable[[Stage], Row]:
    """What a holder of these keys makes for the note's uid, after what is there."""

    def make(stage: Stage) -> Row:
        now, where = stage.raw(stage.note.uid), keys(stage)
        version, content = now["version"] + 1, to_content(f"{CANARY} swapped")
        sort = seal.DELETION if deletion else seal.DOCUMENT
        made = seal.seal_content(where, sort, stage.note.uid, version, content, parent=short(now["hmac"]))
        place = {"vaultUid": where.vault, "collection": where.wire, "updatedAt": later(stage)}
        return now | place | {"data": made.data, "hmac": made.hmac, "version": version}

    return make


def _in_second(stage: Stage) -> Row:
    """A document of the account's other vault, in a collection of the same name."""
    there = stage.owner.vault(stage.second.name).collection(stage.notes.name)
    made = there.create(f"{CANARY} elsewhere")
    return stage.raw(made.uid, stage.second.uid)


def _seconds_keys(stage: Stage) -> CollectionKeys:
    return stage.keys(stage.second)


def _mallorys(stage: Stage) -> Row:
    """A document of the same uid in an account of the server's friend."""
    vault = stage.people.mallory.vault("mine", create=True)
    with suppress(UidTaken):  # the room of an attack before
        vault.collection("notes").create("planted", uid=stage.note.uid)
    found: Row = stage.raw_of_mallory(f"/vaults/{vault.uid}/documents/{stage.note.uid}")
    return found


def _mallorys_keys(stage: Stage) -> CollectionKeys:
    opened = stage.people.mallory.vault("mine", create=True)._opened
    return names.collection_keys(opened.keys, "notes", sealed=opened.sealed)


SOURCES: Final[dict[str, Callable[[Stage], Row]]] = {
    "another document": lambda stage: stage.raw(stage.other.uid),
    "a deleted document": lambda stage: stage.raw(stage.gone.uid),
    "another collection": lambda stage: stage.raw(stage.task.uid),
    "a row made in another collection": _made(tokens_keys),
    "a deletion made in another collection": _made(tokens_keys, deletion=True),
    "another vault": _in_second,
    "a row made in another vault": _made(_seconds_keys),
    "another account": _mallorys,
    "a row made in another account": _made(_mallorys_keys),
    "an earlier version": lambda stage: stage.old,
}
EPOCH: Final = ", in another epoch"


def _fields() -> Iterator[tuple[str, ...]]:
    yield FIELDS
    for field in FIELDS:
        yield (field,)
        yield tuple(other for other in FIELDS if other != field)


SWAPS: Final = {
    swap.name: swap
    for epoch in ("", EPOCH)
    for source in SOURCES
    for swap in (Swap(source + epoch, fields) for fields in _fields())
}
ON_CLIENT: Final = [name for name in SWAPS if not name.endswith(EPOCH)]  # a client alone knows of no epoch


def _lie(stage: Stage, swap: Swap) -> Lie:
    other = SOURCES[swap.source.removesuffix(EPOCH)](stage)
    change = {field: other[field] for field in swap.fields}

    def told(_stage: Stage) -> Lie:
        return reads(newest_row(stage, stage.note.uid, lambda row: row | change))

    return restored(told)(stage) if swap.source.endswith(EPOCH) else told(stage)


def play(stage: Stage, swap: Swap, *, on: str) -> None:
    """Show a row with swapped fields to a device: it is refused, or has no effect; then the server is honest again."""
    if on == "replica":
        stage.open_replica()
    lie = _lie(stage, swap)
    shown, texts = (stage.shown(), stage.texts()) if on == "replica" else (None, set[str]())
    stored = stage.stored()
    stage.lies(lie)
    found = met(lambda: stage.replica.sync() if on == "replica" else stage.notes.get(stage.note.uid).value)
    if not stage.liar.lies:
        raise Broken(f"{swap.name}: the lie was never told")
    stage.liar.lie = None
    if on == "client" and not isinstance(found, Refusal) and found != f"{CANARY} note":
        raise Broken(f"{swap.name}: the client was given {found!r}")
    anew = [text for sent in stage.liar.sent if sent.late and sent.writes for text in sent.texts() if text not in texts]
    if anew:
        raise Broken(f"{swap.name}: sealed after the lie: {anew}")
    if stage.stored() != stored:
        raise Broken(f"{swap.name}: the server has something else than before")
    if on == "replica" and stage.shown() != shown:
        raise Broken(f"{swap.name}: the replica shows something else than before: {found!r}")
