"""A server without any key that changes its epoch three times, to set back what a device has seen."""

from __future__ import annotations

from strongroom.client import UndecidedConflicts, keep_mine
from tests.client.hostile.attack import CANARY, Broken, met
from tests.client.hostile.lying_proxy import Lie
from tests.client.hostile.on_epochs import epoch, reads
from tests.client.hostile.scenario import Row, Stage, about_rows, newest_row, together


def play(stage: Stage) -> None:
    """The device has joined late: it has seen the newest version of one document, and that another is deleted."""
    theirs = stage.theirs()
    past: list[dict[str, Row]] = []
    for number in range(3, 7):
        theirs.replace(theirs.get(stage.note.uid), f"{CANARY} password {number}")
        theirs.replace(theirs.get(stage.other.uid), f"{CANARY} leaked {number}")
        past.append({uid: stage.raw(uid) for uid in (stage.note.uid, stage.other.uid)})
    stage.open_replica()
    theirs.delete(theirs.get(stage.other.uid))
    stage.replica.sync()
    _require_newest(stage, "before")

    def shows(rows: dict[str, Row], name: str) -> Lie:
        def older(shown: list[Row]) -> list[Row]:
            return [rows.get(row["uid"], row) | {"updatedAt": row["updatedAt"]} for row in shown]

        return together(reads(about_rows(stage, older)), epoch(lambda: name))

    stage.lies(shows(past[1], "epoch 1"))
    first = stage.replica.sync()
    if len(first.conflicts) != 2 or not all(conflict.needs_manual_resolution for conflict in first.conflicts):
        raise Broken(f"two conflicts for a person are due: {first.conflicts}")
    _require_newest(stage, "after the first epoch")
    for number, rows in ((2, past[0]), (3, past[1]), (4, past[2])):
        stage.lies(shows(rows, f"epoch {number}"))
        found = met(stage.replica.sync)
        if not isinstance(found, UndecidedConflicts):
            raise Broken(f"epoch {number} is to end in UndecidedConflicts: {found!r}")
        _require_newest(stage, f"after epoch {number}")
    # A person decides, and each epoch is compared with what was decided; nothing that was seen is lowered.
    for number, rows in ((5, past[0]), (6, past[1])):
        for conflict in stage.replica.conflicts():
            conflict.resolve(keep_mine)
        stage.lies(shows(rows, f"epoch {number}"))
        met(stage.replica.sync)
        _require_newest(stage, f"after epoch {number}, decided")
    stage.liar.lie = None
    for _ in range(3):
        for conflict in stage.replica.conflicts():
            conflict.resolve(keep_mine)
        met(stage.replica.sync)
    if stage.replica.conflicts():
        raise Broken("a conflict stays, though the server is honest again")
    _require_newest(stage, "when the server is honest again")
    values = [note.value for note in stage.theirs()]
    if f"{CANARY} password 6" not in values or any("leaked" in value for value in values):
        raise Broken(f"the server has {values}")


def play_equal(stage: Stage) -> None:
    """A restored server shows an older row of the same content, and then the one that was written in between."""
    theirs = stage.theirs()
    past: list[Row] = []
    for value in ("one", "other", "third", "one"):
        theirs.replace(theirs.get(stage.note.uid), f"{CANARY} {value}")
        past.append(stage.raw(stage.note.uid))
    stage.open_replica()
    shown = stage.shown()

    def shows(row: Row) -> Lie:
        lie = newest_row(stage, stage.note.uid, lambda now: row | {"updatedAt": now["updatedAt"]})
        return together(reads(lie), epoch(lambda: "equal"))

    stage.lies(shows(past[0]))
    first = stage.replica.sync()
    stage.owner.vault(stage.vault.name).collection(stage.tasks.name).create("another")  # the clock goes on
    stage.lies(shows(past[1]))
    second = stage.replica.sync()
    if first.conflicts or len(second.conflicts) != 1 or not second.conflicts[0].needs_manual_resolution:
        raise Broken(f"one conflict for a person is due, and it was {first.conflicts} and {second.conflicts}")
    if stage.shown() != shown:
        raise Broken(f"the replica shows {stage.shown()}")


def _require_newest(stage: Stage, when: str) -> None:
    shown = [note.value for note in stage.mine()]
    if f"{CANARY} password 6" not in shown or any("leaked" in value for value in shown):
        raise Broken(f"{when}, the replica shows {shown}")
