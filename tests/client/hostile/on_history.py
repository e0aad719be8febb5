"""Lies about history: versions of documents and blobs that are swapped, hidden, of elsewhere, of another branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import Tampered
from strongroom.client.format import seal
from strongroom.client.format.encoding import NO_PARENT
from tests.client.hostile.attack import CANARY, GAP, HARMLESS, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_documents import flipped
from tests.client.hostile.scenario import Row, Stage, about, with_


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


# Versions that are hidden, or told twice


def versions(change: Callable[[Stage, list[Row]], list[Row]], **more: Any) -> Callable[[Stage], Lie]:
    """Another list of the note's versions, of which there are three."""

    def prepare(stage: Stage) -> Lie:
        stage.notes.replace(stage.note, f"{CANARY} third")

        def lie(talk: Talk) -> None:
            talk.say(talk.told | {"versions": change(stage, talk.told["versions"])} | more)

        return about("GET", f"/vaults/{stage.uid}/documents/history", lie)

    return prepare


def none(_stage: Stage, _rows: list[Row]) -> list[Row]:
    return []


attack("a history that hides versions", versions(none), act=history, client=HARMLESS)
attack("a version whose successors are hidden", versions(none), act=first_version, client=GAP)
attack("a history with a version twice", versions(lambda _, rows: [*rows, rows[0]]), act=history, client=Tampered)
attack(
    "a history with another content of the current version",
    versions(lambda _, rows: [*rows, rows[0] | {"version": 3}]),
    act=history,
    client=Tampered,
)
attack("a history that does not end", versions(none, hasMore=True, next=0), act=history, client=Tampered)


# Blobs


def first_blob(stage: Stage) -> Any:
    return stage.vault.blob.get_version(stage.old_vault["version"])


def blobs(stage: Stage) -> Any:
    return stage.vault.blob.history()


def blob(find: Callable[[Stage], Row]) -> Callable[[Stage], Lie]:
    """Another blob in the place of the first one."""

    def prepare(stage: Stage) -> Lie:
        row = find(stage)
        path = f"/vault/{stage.uid}/versions/{stage.old_vault['version']}"
        return about("GET", path, lambda talk: talk.say(talk.told | row))

    return prepare


def of_the_second(stage: Stage) -> Row:
    stage.second.blob.put(f"{CANARY} of the second vault")
    row: Row = stage._get(f"/vault/{stage.second.uid}")
    return {"data": row["data"], "salt": row["salt"]}


def of_another_branch(stage: Stage) -> Row:
    """What the owner sealed as this version on another device, and the server says it has refused."""
    keys, row = stage.vault._opened.keys, stage.old_vault
    made = seal.seal_blob(keys, row["name"], row["version"], f"{CANARY} the other branch", parent=NO_PARENT)
    return {"data": made.data, "salt": made.salt}


for told, find in {
    "an older blob of another vault": of_the_second,
    "another version of a blob than was asked for": lambda stage: {"version": stage.raw_vault()["version"]},
    "the newest blob called by an older version": lambda stage: {
        name: stage.raw_vault()[name] for name in ("data", "salt")
    },
    "an older blob with one bit turned over": lambda stage: {"data": flipped(-20)(stage.old_vault["data"])},
    "an older blob of another branch": of_another_branch,
    "a version of another vault": lambda stage: {"uid": stage.second.uid},
}.items():
    attack(told, blob(find), act=first_blob, client=Tampered)


def blob_versions(change: Callable[[Stage, list[Row]], list[Row]]) -> Callable[[Stage], Lie]:
    """Another list of the versions of the blob, of which there are three."""

    def prepare(stage: Stage) -> Lie:
        stage.vault.blob.put(f"{CANARY} blob three")

        def lie(talk: Talk) -> None:
            talk.say({"versions": change(stage, talk.told["versions"])})

        return about("GET", f"/vault/{stage.uid}/versions", lie)

    return prepare


attack("a blob's history that hides versions", blob_versions(none), act=blobs, client=HARMLESS)
attack("a blob whose successors are hidden", blob_versions(none), act=first_blob, client=GAP)
attack("a blob's history with a version twice", blob_versions(lambda _, rows: rows * 2), act=blobs, client=Tampered)
attack(
    "a blob's history with a version beyond all numbers",
    blob_versions(lambda _, rows: [*rows, with_(version=2**63)(rows[0])]),
    act=blobs,
    client=Tampered,
)
