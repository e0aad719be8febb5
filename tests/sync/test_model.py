"""Several devices, any interleaving: every one converges to the server, nothing is lost, nothing comes back."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.kit.samples import LONG, TIMES
from tests.sync.restartable_server import RestartableServer
from tests.sync.state_machine import Restored, Sync


def examples(short: int, long: int) -> settings:
    """How many, here and in `make soak`, where they are others each time, and SOAK_TIMES as many.

    There a failure is shown as it was found. All examples share a server, and after a failure it is no longer as it
    was: what is left when the example is made smaller may have nothing to do with the fault.
    """
    return settings(
        max_examples=long * TIMES if LONG else short,
        stateful_step_count=60 if LONG else 40,
        derandomize=not LONG,
        phases=[Phase.explicit, Phase.generate] if LONG else list(Phase),
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def play(machine: type[Sync], where: str, how: settings) -> None:
    """Play many examples on one database."""
    place = RestartableServer(where)
    try:
        run_state_machine_as_test(type("Here", (machine,), {"place": place}), settings=how)
    finally:
        place.close()


def test_every_device_converges(where: str) -> None:
    """Creates, puts, deletes, lost answers, retries, restarts, jumping clocks, syncs with any limits and filters."""
    play(Sync, where, examples(6, 100) if "://" in where else examples(17, 400))


def test_a_restore_loses_nothing_that_a_device_holds(where: str) -> None:
    """The same, and once the operator goes back to a backup: the new epoch lets every device bring back what it has."""
    play(Restored, where, examples(3 if "://" in where else 10, 50 if "://" in where else 200))
