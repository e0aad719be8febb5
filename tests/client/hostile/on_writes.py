"""Lies about what was written."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from strongroom.client.format import seal
from strongroom.client.format.encoding import short
from strongroom.errors import DocumentConflict
from tests.client.hostile.attack import CANARY, RolledBack, Tampered, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.scenario import Row, Stage, about, with_


def answered(change: Callable[[Row], Row]) -> Callable[[Stage], Lie]:
    """Another answer to a write: to its last row, where there are several."""

    def prepare(stage: Stage) -> Lie:
        def lie(talk: Talk) -> None:
            if talk.method == "GET" or f"/vaults/{stage.uid}/" not in talk.path or talk.status >= 300:
                return
            told = talk.told
            if "results" in told:
                talk.say({"results": [*told["results"][:-1], change(told["results"][-1])]})
            else:
                talk.say(change(told))

        return lie

    return prepare


def pushing(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """For a replica: a change waits to be sent."""

    def prepare(stage: Stage) -> Lie:
        mine = stage.mine()
        mine.replace(mine.get(stage.note.uid), f"{CANARY} written here")
        return lie(stage)

    return prepare


def create(stage: Stage) -> Any:
    return stage.notes.create(f"{CANARY} new")


def replace(stage: Stage) -> Any:
    return stage.notes.replace(stage.note, f"{CANARY} newer")


def delete(stage: Stage) -> Any:
    return stage.notes.delete(stage.note)


def flipped(data: str) -> str:
    """The same bytes but for one bit of the last."""
    *others, last = base64.b64decode(data)
    return base64.b64encode(bytes([*others, last ^ 1])).decode()


LIES: dict[str, Callable[[Row], Row]] = {
    "another version is echoed": with_(version=lambda version: version + 1),
    "another uid is echoed": with_(uid="0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"),
    "another vault is echoed": with_(vaultUid="0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"),
    "another collection is echoed": with_(collection="notes"),
    "other ciphertext is kept": with_(data=flipped),
    "another proof is kept": with_(hmac="sr2." + "A" * 70),
    "what was written is deleted at once": lambda row: row | {"deletedAt": row["updatedAt"]},
}
for name, change in LIES.items():
    lie = answered(change)
    attack(name, lie, act=replace, client=Tampered, sync=pushing(lie), replica=Tampered)
    attack(f"{name}, of a new document", lie, act=create, client=Tampered)


def other_branch(stage: Stage) -> Lie:
    """A content that the owner did seal for this version of this document, on another device, and not the one sent."""
    parent = short(stage.note.proof)
    other = seal.seal_document(
        stage.keys(), stage.note.uid, stage.note.version + 1, f"{CANARY} the other branch", parent=parent
    )
    return answered(with_(data=other.data, hmac=other.hmac))(stage)


attack(
    "another of the owner's own contents is kept",
    other_branch,
    act=replace,
    client=Tampered,
    sync=pushing(other_branch),
    replica=Tampered,
)
undone = answered(with_(deletedAt=None))
attack("a deletion that is not kept", undone, act=delete, client=Tampered)
early = answered(with_(updatedAt=1))
attack("a write from before", early, act=replace, client=Tampered, sync=pushing(early), replica=Tampered)
made = answered(with_(createdAt=1))
attack(
    "a write that changes the time of making", made, act=replace, client=Tampered, sync=pushing(made), replica=Tampered
)


def fewer(stage: Stage) -> Lie:
    path = f"/vaults/{stage.uid}/batch"
    return about("POST", path, lambda talk: talk.say({"results": talk.told["results"][:-1]}))


attack(
    "a batch of which something is missing", fewer, act=delete, client=Tampered, sync=pushing(fewer), replica=Tampered
)


def unexplained(stage: Stage) -> Lie:
    path = f"/vaults/{stage.uid}/batch"
    return about("POST", path, lambda talk: talk.refuse(409, "batch_conflict", {"operations": []}))


attack("a batch that is refused for no reason", unexplained, sync=pushing(unexplained), replica=Tampered)


def stuck(stage: Stage) -> Lie:
    """Every batch is out of date, and nothing newer is shown."""
    named = {"uid": stage.note.uid, "code": "document_conflict", "version": 99, "index": 0}
    path = f"/vaults/{stage.uid}/batch"
    return about("POST", path, lambda talk: talk.refuse(409, "batch_conflict", {"operations": [named]}))


attack(
    "every change is refused as out of date",
    lambda stage: about(
        "PUT",
        f"/vaults/{stage.uid}/documents/{stage.note.uid}",
        lambda talk: talk.refuse(409, "document_conflict", {"version": 99, "updatedAt": 1}),
    ),
    act=replace,
    client=DocumentConflict,
    sync=pushing(stuck),
    replica=Tampered,
    writes=("POST /vaults/",),
)


def emptied(stage: Stage) -> Lie:
    """A tombstone from before, its trash emptied, of a document that was revived since."""
    theirs = stage.theirs()
    for text in ("revived", "and changed"):
        theirs.replace(theirs.get(stage.note.uid), f"{CANARY} {text}")
    stage.replica.sync()
    mine = stage.mine()
    mine.replace(mine.get(stage.note.uid), f"{CANARY} written here")
    notice = seal.seal_deletion(stage.keys(), stage.note.uid, 2, parent=short(stage.first.proof))
    old = stage.raw(stage.note.uid) | {"version": 3, "data": "", "hmac": notice.hmac, "deletedAt": 1}
    named = {"uid": stage.note.uid, "code": "document_not_found", "index": 0}

    def lie(talk: Talk) -> None:
        if talk.path == f"/vaults/{stage.uid}/batch":
            talk.refuse(409, "batch_conflict", {"operations": [named]})
        elif talk.path == f"/vaults/{stage.uid}/documents/{stage.note.uid}":
            talk.say(old, 200)

    return lie


attack("an old tombstone whose trash was emptied", emptied, replica=RolledBack, sync=emptied)


def cannot_carry(stage: Stage) -> Lie:
    del stage
    return about("POST", "/auth/api-keys", lambda talk: talk.say(talk.told | {"key": "srk_\n"}))


attack(
    "an API key that no token can carry",
    cannot_carry,
    act=lambda stage: stage.vault.token("agent"),
    client=Tampered,
)
