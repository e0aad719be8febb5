"""Several devices, any interleaving: every one converges to the server, nothing is lost, nothing comes back."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.sync.machine import Place, Sync

LONG = bool(os.environ.get("SOAK"))
SETTINGS = settings(
    max_examples=3_000 if LONG else 60,
    stateful_step_count=60 if LONG else 40,
    derandomize=not LONG,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_device_converges(where: str) -> None:
    """Creates, puts, deletes, lost answers, retries, restarts, jumping clocks, syncs with any limits and filters."""
    place = Place(where)
    try:
        run_state_machine_as_test(type("Here", (Sync,), {"place": place}), settings=SETTINGS)
    finally:
        place.close()
