"""Lies about history and trash: versions that are swapped, of elsewhere, of another branch; a purge not done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import Tampered
from strongroom.client.format import seal
from tests.client.hostile.attack import CANARY, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_documents import flipped
from tests.client.hostile.scenario import Row, Stage, about


def first_version(stage: Stage) -> Any:
    return stage.notes.get_version(stage.note.uid, 1)


def history(stage: Stage) -> Any:
    return stage.notes.history(stage.note.uid)


def shown(find: Callable[[Stage], Row]) -> Callable[[Stage], Lie]:
    """Another row in the place of the note's first version."""

    def prepare(stage: Stage) -> Lie:
        row = find(stage)
        path = f"/vaults/{stage.uid}/documents/{stage.note.uid}/versions/1"
        return about("GET", path, lambda talk: talk.say(row))

    return prepare


def other_branch(stage: Stage) -> Row:
    """What the owner sealed as the first version on another device, and the server says it has refused."""
    made = seal.seal_document(stage.keys(), stage.note.uid, 1, f"{CANARY} the other branch")
    return stage.old | {"data": made.data, "hmac": made.hmac}


def listed(change: Callable[[Stage, Row], Row]) -> Callable[[Stage], Lie]:
    """Another row in the history of the note."""

    def prepare(stage: Stage) -> Lie:
        def lie(talk: Talk) -> None:
            talk.say(talk.told | {"versions": [change(stage, row) for row in talk.told["versions"]]})

        return about("GET", f"/vaults/{stage.uid}/documents/history", lie)

    return prepare


def trash_of_the_living(stage: Stage) -> Lie:
    row = stage.raw(stage.note.uid)
    told = {"documents": [row], "hasMore": False, "next": row["updatedAt"]}
    return about("GET", f"/vaults/{stage.uid}/documents", lambda talk: talk.say(told))


def kept(stage: Stage) -> Lie:
    row = stage.raw(stage.gone.uid)
    return about("DELETE", f"/vaults/{stage.uid}/trash/{stage.gone.uid}", lambda talk: talk.say(row, 200))


attack("a version of another document", shown(lambda s: s.raw(s.other.uid)), act=first_version, client=Tampered)
attack("another version than was asked for", shown(lambda s: s.raw(s.note.uid)), act=first_version, client=Tampered)
attack(
    "a newer content called by an older version",
    shown(lambda s: s.raw(s.note.uid) | {"version": 1}),
    act=first_version,
    client=Tampered,
)
attack(
    "an older version with one bit turned over",
    shown(lambda s: s.old | {"data": flipped(-20)(s.old["data"])}),
    act=first_version,
    client=Tampered,
)
attack("an older version of another branch", shown(other_branch), act=first_version, client=Tampered)
attack(
    "a history of another branch",
    listed(lambda s, row: row | {"hmac": other_branch(s)["hmac"]}),
    act=history,
    client=Tampered,
)
attack("a history of another document", listed(lambda s, row: row | {"uid": s.other.uid}), act=history, client=Tampered)
attack("a history without proofs", listed(lambda _, row: row | {"hmac": None}), act=history, client=Tampered)
attack("a trash of what is alive", trash_of_the_living, act=lambda s: list(s.notes.trash), client=Tampered)
attack("a purge that is not done", kept, act=lambda s: s.notes.purge(s.gone), client=Tampered)
