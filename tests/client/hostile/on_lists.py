"""Lies about lists that name no document: collections, the trash, the account's log, its usage, its sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import RolledBack, Tampered
from tests.client.hostile.attack import CANARY, HARMLESS, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.scenario import Row, Stage, about, with_

Change = Callable[[Stage, list[Any]], list[Any]]


def listed(path: str, name: str, change: Change, **more: Any) -> Callable[[Stage], Lie]:
    """Another list under a name in the response."""

    def prepare(stage: Stage) -> Lie:
        def lie(talk: Talk) -> None:
            talk.say(talk.told | {name: change(stage, talk.told[name])} | more)

        return about("GET", path.format(stage.uid), lie)

    return prepare


def repeated(path: str) -> Callable[[Stage], Lie]:
    """The first page again and again."""

    def prepare(stage: Stage) -> Lie:
        first: list[Row] = []

        def lie(talk: Talk) -> None:
            first.append(talk.told)
            talk.say(first[0] | {"hasMore": True})

        return about("GET", path.format(stage.uid), lie)

    return prepare


def nothing(_stage: Stage, _rows: list[Any]) -> list[Any]:
    return []


def twice(_stage: Stage, rows: list[Any]) -> list[Any]:
    return [row for row in rows for _ in range(2)]


# Collections

COLLECTIONS = "/vaults/{}/collections"


def collections(stage: Stage) -> Any:
    return stage.vault.collections()


for name, change in {
    "a collection in the clear": lambda _, wires: [*wires, "notes"],
    "a collection of another vault": lambda stage, wires: [*wires, stage.keys(stage.second).wire],
    "a collection of the server's own making": lambda _, wires: [wires[0][:-6] + "AAAAAA", *wires[1:]],
    "a collection twice": twice,
}.items():
    attack(name, listed(COLLECTIONS, "collections", change), act=collections, client=Tampered)
attack(
    "collections that do not end",
    listed(COLLECTIONS, "collections", nothing, hasMore=True),
    act=collections,
    client=Tampered,
)
attack("the same collections for ever", repeated(COLLECTIONS), act=collections, client=Tampered)
attack(
    "a collection that is hidden",
    listed(COLLECTIONS, "collections", lambda stage, wires: [wire for wire in wires if wire != stage.keys().wire]),
    act=collections,
    client=RolledBack,
)
attack(
    "a collection that holds nothing",
    listed(COLLECTIONS, "collections", lambda stage, wires: [*wires, stage.keys(name="empty").wire]),
    act=collections,
    client=HARMLESS,
)

# The trash

DOCUMENTS = "/vaults/{}/documents"


def trash(stage: Stage) -> Any:
    return list(stage.notes.trash)


def forged(stage: Stage, _rows: list[Row]) -> list[Row]:
    """A tombstone without a notice of its deletion."""
    row = stage.raw(stage.gone.uid)
    return [stage.raw(stage.other.uid) | {"updatedAt": row["updatedAt"], "deletedAt": row["updatedAt"]}]


attack("a trash that hides a document", listed(DOCUMENTS, "documents", nothing, next=0), act=trash, client=HARMLESS)
for name, change in {
    "a trash that shows a document twice": twice,
    "a trash of what was purged": lambda _, rows: [with_(data="")(row) for row in rows],
    "a trash of another collection": lambda stage, rows: [
        with_(collection=stage.keys(name=stage.tasks.name).wire)(row) for row in rows
    ],
    "a trash of what nobody deleted": forged,
}.items():
    attack(name, listed(DOCUMENTS, "documents", change), act=trash, client=Tampered)


def purge_of_another(stage: Stage) -> Lie:
    """The true row of a document that was purged before."""
    theirs = stage.theirs()
    gone = theirs.delete(theirs.create(f"{CANARY} purged"))
    theirs.purge(gone)
    row = stage.raw(gone.uid)
    return about("DELETE", f"/vaults/{stage.uid}/trash/{stage.gone.uid}", lambda talk: talk.say(row, 200))


attack("a purge of another document", purge_of_another, act=lambda s: s.notes.purge(s.gone), client=Tampered)
attack(
    "a trash that is never empty",
    lambda stage: about("DELETE", f"/vaults/{stage.uid}/trash", lambda t: t.say({"purged": 0, "hasMore": True}, 200)),
    act=lambda stage: stage.notes.trash.empty(),
    client=Tampered,
)

# The account's log, its usage and its sessions: the server's word, as far as it does not contradict itself

LOG = "/auth/events"


def log(stage: Stage) -> Any:
    return list(stage.victim.log())


attack("an entry of the log twice", listed(LOG, "events", twice), act=log, client=Tampered)
attack("a log out of order", listed(LOG, "events", lambda _, rows: rows[::-1]), act=log, client=Tampered)
attack("a log that does not end", listed(LOG, "events", nothing, hasMore=True), act=log, client=Tampered)
attack("the same entries of the log for ever", repeated(LOG), act=log, client=Tampered)
attack("a log that hides an entry", listed(LOG, "events", lambda _, rows: rows[1:]), act=log, client=HARMLESS)


def figures(change: Callable[[Row], Row]) -> Callable[[Stage], Lie]:
    return lambda _stage: about("GET", "/auth/me", lambda talk: talk.say(change(talk.told)))


def usage(stage: Stage) -> Any:
    return stage.victim.usage()


attack(
    "a usage below nothing",
    figures(lambda told: told | {"usage": told["usage"] | {"documents": -1}}),
    act=usage,
    client=Tampered,
)
attack(
    "a limit below nothing",
    figures(lambda told: told | {"limits": told["limits"] | {"bytes": -1}}),
    act=usage,
    client=Tampered,
)
attack(
    "a usage that is withheld",
    figures(lambda told: {name: told[name] for name in told if name != "usage"}),
    act=usage,
    client=Tampered,
)
attack(
    "other figures of the usage",
    figures(lambda told: told | {"usage": told["usage"] | {"documents": told["usage"]["documents"] + 7}}),
    act=usage,
    client=HARMLESS,
)


def sessions(stage: Stage) -> Any:
    return stage.victim.sessions()


attack(
    "a session that is hidden",
    listed("/auth/sessions", "sessions", lambda _, rows: rows[1:]),
    act=sessions,
    client=HARMLESS,
)
attack(
    "a session that nobody opened",
    listed("/auth/sessions", "sessions", lambda _, rows: [*rows, rows[0] | {"id": "another", "current": False}]),
    act=sessions,
    client=HARMLESS,
)
