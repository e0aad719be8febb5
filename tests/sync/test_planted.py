"""The model can fail: each planted fault is caught, and each stands in docs/testing.md."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.kit.faults.planted_faults import no_stale_names
from tests.kit.samples import chosen
from tests.kit.servers.restartable_server import RestartableServer
from tests.sync.examples import PAGE, SETTINGS
from tests.sync.planted import AFTER_A_RESTORE, AT_LENGTH, FAULTS
from tests.sync.state_machine import Restored, Sync


@pytest.mark.parametrize(
    "fault", chosen("faults of sync", FAULTS, [fault for fault in FAULTS if fault not in AT_LENGTH])
)
def test_a_planted_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A server, or a device, with one thing wrong does not pass."""
    server = RestartableServer(str(tmp_path / "vault.db"))
    machine = type("Here", (Restored if fault in AFTER_A_RESTORE else Sync,), {"server": server})
    FAULTS[fault](monkeypatch)
    try:
        with no_stale_names(), pytest.raises(AssertionError) as caught, contextlib.redirect_stdout(io.StringIO()):
            run_state_machine_as_test(machine, settings=SETTINGS)
    finally:
        monkeypatch.undo()
        server.close()
    print(f"{fault}: {type(caught.value).__name__} {str(caught.value)[:200]}")  # noqa: T201


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which faults were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in FAULTS if f"| {fault} |" not in text] == []
