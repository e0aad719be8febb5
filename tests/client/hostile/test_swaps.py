"""A row with fields of another document, collection, vault, account or epoch is refused, or has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.client.operations import rollback
from tests.client.hostile.attack import Broken
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import People, Stage
from tests.client.hostile.swaps import FIELDS, ON_CLIENT, SOURCES, SWAPS, play
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.samples import some


@pytest.mark.parametrize("name", some("rows with fields of another row", ON_CLIENT))
def test_a_client_takes_nothing_of_it(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path, name: str
) -> None:
    """What it gives is what it has seen, or a refusal."""
    stage = Stage(hostile, liar, people, tmp_path, shared=True)
    try:
        play(stage, SWAPS[name], on="client")
    finally:
        stage.close()


@pytest.mark.parametrize("name", some("rows with fields of another row", SWAPS, shift=1))
def test_a_replica_takes_nothing_of_it(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path, name: str
) -> None:
    """It shows what it has shown, and sends nothing that it has not sent before."""
    stage = Stage(hostile, liar, people, tmp_path, shared=True)
    try:
        play(stage, SWAPS[name], on="replica")
    finally:
        stage.close()


@pytest.mark.parametrize(
    "name", ["all of a row made in another collection", "all of a deletion made in another collection"]
)
def test_the_table_can_fail(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Without the memory of collections, a row that another collection's key proves is taken."""
    monkeypatch.setattr(rollback, "require_collection", lambda *_: None)
    stage = Stage(hostile, liar, people, tmp_path)
    try:
        with pytest.raises(Broken, match="the replica shows something else"):
            play(stage, SWAPS[name], on="replica")
    finally:
        stage.close()


def test_every_field_is_swapped_with_every_source() -> None:
    """Alone, all but it, and with all others."""
    assert len(SWAPS) == 2 * len(SOURCES) * (2 * len(FIELDS) + 1)
