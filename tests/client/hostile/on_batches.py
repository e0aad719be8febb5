"""Lies about batches: results of other operations, fewer or more of them, and success where there was none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import RolledBack, Tampered
from tests.client.hostile.attack import CANARY, HARMLESS, attack, read
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_writes import flipped
from tests.client.hostile.scenario import Row, Stage, about, with_


def replace_two(stage: Stage) -> Any:
    changes = [(stage.note, f"{CANARY} newer"), (stage.other, f"{CANARY} newer")]
    return [result.document for result in stage.notes.replace_many(changes)]


def create_two(stage: Stage) -> Any:
    return [result.document for result in stage.notes.create_many([f"{CANARY} new", f"{CANARY} newer"])]


def delete_two(stage: Stage) -> Any:
    return [result.document for result in stage.notes.delete_many([stage.note, stage.other])]


def replace_and_read(stage: Stage) -> Any:
    replace_two(stage)
    return read(stage)


def pushing_two(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """For a replica: two changes wait to be sent."""

    def prepare(stage: Stage) -> Lie:
        mine = stage.mine()
        for note in (stage.note, stage.other):
            mine.replace(mine.get(note.uid), f"{CANARY} written here")
        return lie(stage)

    return prepare


def batch(stage: Stage, lie: Callable[[Talk], None]) -> Lie:
    return about("POST", f"/vaults/{stage.uid}/batch", lie)


def answered(change: Callable[[Stage, list[Row]], list[Row]]) -> Callable[[Stage], Lie]:
    """Other results than the server's."""
    return lambda stage: batch(stage, lambda talk: talk.say({"results": change(stage, talk.told["results"])}))


LIES: dict[str, Callable[[Stage, list[Row]], list[Row]]] = {
    "a batch with the result of another document": lambda stage, rows: [rows[0], stage.raw(stage.last.uid)],
    "a batch with one result twice": lambda _, rows: [rows[0], *rows[:-1]],
    "a batch with results out of order": lambda _, rows: rows[::-1],
    "a batch with more results": lambda _, rows: [*rows, rows[0]],
    "a batch with fewer results": lambda _, rows: rows[:-1],
    "a batch without results": lambda _, __: [],
    "a batch stored at another version": lambda _, rows: [with_(version=7)(row) for row in rows],
    "a batch with other ciphertext": lambda _, rows: [with_(data=flipped)(row) for row in rows],
    "a batch stored in another collection": lambda _, rows: [with_(collection="notes")(row) for row in rows],
    "a batch stored in another vault": lambda stage, rows: [with_(vaultUid=stage.second.uid)(row) for row in rows],
}
for name, change in LIES.items():
    lie = answered(change)
    attack(name, lie, act=replace_two, client=Tampered, sync=pushing_two(lie), replica=Tampered)
attack(
    "a batch of new documents, with results out of order",
    answered(LIES["a batch with results out of order"]),
    act=create_two,
    client=Tampered,
)
attack(
    "a batch of deletions, one of which is not kept",
    answered(lambda _, rows: [*rows[:-1], with_(deletedAt=None)(rows[-1])]),
    act=delete_two,
    client=Tampered,
)


def said_to_be_stored(stage: Stage) -> Lie:
    """The results that the client hopes for, whatever the server has done."""

    def row(operation: Row) -> Row:
        now = stage.raw(operation["uid"])
        return now | {
            "data": operation["data"],
            "hmac": operation["hmac"],
            "version": operation["version"] + 1,
            "updatedAt": now["updatedAt"] + 1,
        }

    return batch(stage, lambda talk: talk.say({"results": [row(one) for one in talk.asked["operations"]]}, 200))


def stored_after_a_refusal(stage: Stage) -> Lie:
    """Somebody was quicker, so that the server would refuse the batch."""
    theirs = stage.theirs()
    theirs.replace(theirs.get(stage.note.uid), f"{CANARY} of another device")
    return said_to_be_stored(stage)


attack("a batch that is said to be stored, and is not", said_to_be_stored, act=replace_and_read, client=RolledBack)
attack("a refused batch that is said to be stored", stored_after_a_refusal, act=replace_and_read, client=Tampered)


def said_to_be_refused(stage: Stage) -> Lie:
    def lie(talk: Talk) -> None:
        if talk.status == 200:
            named = {"uid": stage.note.uid, "code": "document_conflict", "version": 9, "index": 0}
            talk.refuse(409, "batch_conflict", {"operations": [named]})

    told: list[Talk] = []

    def once(talk: Talk) -> None:
        if not told:
            told.append(talk)
            lie(talk)

    return batch(stage, once)


attack(
    "a batch that was stored, and is said to be refused",
    said_to_be_refused,
    act=replace_two,
    client=HARMLESS,
    writes=("POST /vaults/",),
)
for name, named in {
    "a batch that is refused without a reason": [],
    "a batch that is refused for an operation that is not in it": [{"index": 9, "uid": "x", "code": "uid_taken"}],
    "a batch that is refused although nothing has changed": [{"index": 0, "code": "document_conflict"}],
}.items():
    attack(
        name,
        lambda stage, named=named: batch(  # type: ignore[misc]
            stage, lambda talk: talk.refuse(409, "batch_conflict", {"operations": named})
        ),
        act=replace_two,
        client=Tampered,
    )
