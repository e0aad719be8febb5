"""Every attack ends in the refusal that docs/testing.md says, with nothing leaked and nothing written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from strongroom import errors
from strongroom.client import errors as client_errors
from strongroom.client import keep_mine
from strongroom.errors import Refusal
from tests.client.hostile.attack import ATTACKS, CONFLICT, GAP, HARMLESS, NONE, REPEATED, play
from tests.client.hostile.chapters import PAGE
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.client.hostile.scenario import People, Stage, about_row, about_vault, with_
from tests.kit.clients.factory import PythonClientFactory

ON_CLIENT = [made.name for made in ATTACKS.values() if made.client != NONE]
ON_REPLICA = [made.name for made in ATTACKS.values() if made.replica != NONE]


@pytest.mark.parametrize("name", ON_CLIENT)
def test_a_client_sees_through_it(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path, name: str
) -> None:
    """Client and AsyncClient, in turn."""
    stage = Stage(hostile, liar, people, tmp_path, shared=True)
    try:
        play(stage, ATTACKS[name], on="client")
    finally:
        stage.close()


@pytest.mark.parametrize("name", ON_REPLICA)
def test_a_replica_sees_through_it(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path, name: str
) -> None:
    """The replica's file is as it was before."""
    stage = Stage(hostile, liar, people, tmp_path, fresh=ATTACKS[name].fresh, shared=True)
    try:
        play(stage, ATTACKS[name], on="replica")
    finally:
        stage.close()


@pytest.mark.parametrize("left_out", [False, True])
def test_a_false_epoch_wipes_nothing(
    hostile: PythonClientFactory,
    liar: Liar,
    people: People,
    tmp_path: Path,
    *,
    left_out: bool,
) -> None:
    """A server that says it was restored, and shows a document as it was or not at all: what is here stays here."""
    stage = Stage(hostile, liar, people, tmp_path)
    stage.open_replica()
    before = {note.uid: note.value for note in stage.mine()}
    rows = about_row(
        stage, stage.note.uid, lambda row: None if left_out else stage.old | {"updatedAt": row["updatedAt"]}
    )
    vault = about_vault(stage, with_(epoch="another"))

    def lie(talk: Talk) -> None:
        if talk.path == "/health":
            talk.say(talk.told | {"epoch": "another"})
        elif "/documents" in talk.path:
            rows(talk)
        else:
            vault(talk)

    stage.lies(lie)
    with suppress(Refusal):
        stage.replica.sync()
    assert {note.uid: note.value for note in stage.mine()} == before
    liar.lie = None
    stage.replica.sync(keep_mine)
    assert {note.uid: note.value for note in stage.mine()} == before
    assert {note.uid: note.value for note in stage.theirs()} == before
    assert not [name for name, secret in stage.secrets().items() if secret in liar.received]
    stage.close()


def test_the_table_is_the_harness() -> None:
    """docs/testing.md lists exactly these attacks, with these outcomes."""
    text = PAGE.read_text("utf-8").partition("## A server that lies\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in lines if len(row) == 3][1:]
    assert sorted(tuple(cell.strip("`") for cell in row) for row in rows) == sorted(
        (made.name, made.client, made.replica) for made in ATTACKS.values()
    )


def test_every_outcome_is_a_documented_one() -> None:
    """A class of the client's, or of the server's own."""
    known = {**vars(errors), **vars(client_errors)}
    outcomes = {word for made in ATTACKS.values() for word in (made.client, made.replica)} - {
        NONE,
        HARMLESS,
        CONFLICT,
        GAP,
        REPEATED,
    }
    assert outcomes <= set(known)
    assert len(ATTACKS) >= 25
