"""Every attack ends in the refusal that docs/testing.md says, with nothing leaked and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom import errors
from strongroom.client import errors as client_errors
from tests.client.faces import Faces
from tests.client.hostile import on_accounts, on_documents, on_the_line, on_vaults, on_writes
from tests.client.hostile.attack import ATTACKS, HARMLESS, NONE, play
from tests.client.hostile.liar import Liar
from tests.client.hostile.stage import People, Stage

CHAPTERS = (on_accounts, on_documents, on_writes, on_vaults, on_the_line)
PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
ON_CLIENT = [name for name, made in ATTACKS.items() if made.client != NONE]
ON_REPLICA = [name for name, made in ATTACKS.items() if made.replica != NONE]


@pytest.mark.parametrize("name", ON_CLIENT)
def test_a_client_sees_through_it(hostile: Faces, liar: Liar, people: People, tmp_path: Path, name: str) -> None:
    """Client and AsyncClient, in turn."""
    stage = Stage(hostile, liar, people, tmp_path)
    try:
        play(stage, ATTACKS[name], on="client")
    finally:
        stage.close()


@pytest.mark.parametrize("name", ON_REPLICA)
def test_a_replica_sees_through_it(hostile: Faces, liar: Liar, people: People, tmp_path: Path, name: str) -> None:
    """The replica's file is as it was before."""
    stage = Stage(hostile, liar, people, tmp_path, fresh=ATTACKS[name].fresh)
    try:
        play(stage, ATTACKS[name], on="replica")
    finally:
        stage.close()


def test_the_table_is_the_harness() -> None:
    """docs/testing.md lists exactly these attacks, with these outcomes, in this order."""
    text = PAGE.read_text("utf-8").partition("## A server that lies\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in lines if len(row) == 3][1:]
    assert [tuple(cell.strip("`") for cell in row) for row in rows] == [
        (made.name, made.client, made.replica) for made in ATTACKS.values()
    ]


def test_every_outcome_is_a_documented_one() -> None:
    """A class of the client's, or of the server's own."""
    known = {**vars(errors), **vars(client_errors)}
    outcomes = {word for made in ATTACKS.values() for word in (made.client, made.replica)} - {NONE, HARMLESS}
    assert outcomes <= set(known)
    assert len(ATTACKS) >= 25
