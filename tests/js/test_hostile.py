"""The lies of the hostile chapter against the TypeScript client: the same table, the same refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.hostile import test_attacks  # noqa: F401 - enters all attacks
from tests.client.hostile.attack import ATTACKS, NONE, play
from tests.client.hostile.conftest import liar, people  # noqa: F401
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import People
from tests.js.hostile_stage import TypeScriptStage
from tests.js.typescript_client import TypeScriptFaces
from tests.support.sampling import some

# Why an attack is not played here.
NOT_PLAYED = {
    "a session of another account, after an unlock": "the victim unlocks its replica",
}
PLAYED = [made.name for made in ATTACKS.values() if made.client != NONE and made.name not in NOT_PLAYED]


@pytest.fixture(scope="module", autouse=True)
def _room() -> Iterator[None]:
    """Every session of tests has a room of its own."""
    TypeScriptStage.model = None
    yield
    TypeScriptStage.model = None


@pytest.mark.parametrize("name", some(PLAYED))
def test_a_client_sees_through_it(
    faces: TypeScriptFaces,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """The refusal that the table says, nothing leaked, nothing written after the lie."""
    stage = TypeScriptStage(faces, liar, people, tmp_path)
    try:
        play(stage, ATTACKS[name], on="client")
    finally:
        stage.close()


def test_all_but_these_are_played() -> None:
    """Every lie of the table's second column is told to this client, in `make soak` or on one day in four."""
    assert set(PLAYED) | set(NOT_PLAYED) == {made.name for made in ATTACKS.values() if made.client != NONE}
