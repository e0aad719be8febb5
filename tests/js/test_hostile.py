"""The lies of the hostile chapter against the TypeScript client: the same table, the same refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.hostile import (
    chapters,  # noqa: F401 - enters all attacks
    swaps,
    three_epochs,
)
from tests.client.hostile.attack import ATTACKS, NONE, play
from tests.client.hostile.fixtures import liar, people  # noqa: F401
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import People
from tests.js.hostile_stage import TypeScriptStage
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.samples import some

ON_CLIENT = [made.name for made in ATTACKS.values() if made.client != NONE]
ON_REPLICA = [made.name for made in ATTACKS.values() if made.replica != NONE]


@pytest.fixture(scope="module", autouse=True)
def _room() -> Iterator[None]:
    """Every session of tests has a room of its own."""
    TypeScriptStage.model = None
    yield
    TypeScriptStage.model = None


@pytest.mark.parametrize("name", some("lies to a TypeScript client", ON_CLIENT))
def test_a_client_sees_through_it(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """The refusal that the table says, nothing leaked, nothing written after the lie."""
    stage = TypeScriptStage(clients, liar, people, tmp_path)
    try:
        play(stage, ATTACKS[name], on="client")
    finally:
        stage.close()


@pytest.mark.parametrize("name", some("lies to a TypeScript replica", ON_REPLICA, shift=2))
def test_a_replica_sees_through_it(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """The same of a replica that syncs: its file is as it was before."""
    stage = TypeScriptStage(clients, liar, people, tmp_path, fresh=ATTACKS[name].fresh)
    try:
        play(stage, ATTACKS[name], on="replica")
    finally:
        stage.close()


@pytest.mark.parametrize("name", some("rows with fields of another row", swaps.SWAPS, shift=3))
def test_a_replica_takes_nothing_of_a_row_with_fields_of_another(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """It is refused, or has no effect."""
    stage = TypeScriptStage(clients, liar, people, tmp_path)
    try:
        swaps.play(stage, swaps.SWAPS[name], on="replica")
    finally:
        stage.close()


@pytest.mark.parametrize("name", some("rows with fields of another row", swaps.ON_CLIENT, shift=2))
def test_a_client_takes_nothing_of_a_row_with_fields_of_another(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """What it gives is what it has seen, or a refusal."""
    stage = TypeScriptStage(clients, liar, people, tmp_path)
    try:
        swaps.play(stage, swaps.SWAPS[name], on="client")
    finally:
        stage.close()


def test_three_epochs_set_nothing_back(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
) -> None:
    """A server without a key says that it was restored, three times: what was seen stays, and what was deleted."""
    stage = TypeScriptStage(clients, liar, people, tmp_path)
    try:
        three_epochs.play(stage)
    finally:
        stage.close()


def test_an_older_row_of_the_same_content_lowers_nothing(
    clients: TypeScriptClientFactory,
    liar: Liar,  # noqa: F811
    people: People,  # noqa: F811
    tmp_path: Path,
) -> None:
    """What was written between the two is older than what this device has seen, and a conflict."""
    stage = TypeScriptStage(clients, liar, people, tmp_path)
    try:
        three_epochs.play_equal(stage)
    finally:
        stage.close()
