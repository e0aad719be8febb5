"""The model can fail: each planted fault is caught, and each stands in docs/testing.md."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.kit.faults.planted_faults import no_stale_names
from tests.kit.samples import chosen
from tests.sync.planted import AFTER_A_RESTORE, AT_LENGTH, FAULTS
from tests.sync.restartable_server import RestartableServer
from tests.sync.state_machine import Restored, Sync

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
SETTINGS = settings(
    max_examples=1_000,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    "fault", chosen("faults of sync", FAULTS, [fault for fault in FAULTS if fault not in AT_LENGTH])
)
def test_a_planted_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A server, or a device, with one thing wrong does not pass."""
    place = RestartableServer(str(tmp_path / "vault.db"))
    machine = type("Here", (Restored if fault in AFTER_A_RESTORE else Sync,), {"place": place})
    FAULTS[fault](monkeypatch)
    try:
        with no_stale_names(), pytest.raises(AssertionError) as caught, contextlib.redirect_stdout(io.StringIO()):
            run_state_machine_as_test(machine, settings=SETTINGS)
    finally:
        monkeypatch.undo()
        place.close()
    print(f"{fault}: {type(caught.value).__name__} {str(caught.value)[:200]}")  # noqa: T201


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which faults were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in FAULTS if f"| {fault} |" not in text] == []
