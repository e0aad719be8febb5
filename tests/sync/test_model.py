"""Several devices, any interleaving: every one converges to the server, nothing is lost, nothing comes back."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.kit.servers.restartable_server import RestartableServer
from tests.sync.examples import examples
from tests.sync.state_machine import Restored, Sync


def play(machine: type[Sync], where: str, how: settings) -> None:
    """Play many examples on one database."""
    server = RestartableServer(where)
    try:
        run_state_machine_as_test(type("Here", (machine,), {"server": server}), settings=how)
    finally:
        server.close()


def test_every_device_converges(where: str) -> None:
    """Creates, puts, deletes, lost answers, retries, restarts, jumping clocks, syncs with any limits and filters."""
    play(Sync, where, examples(6, 100) if "://" in where else examples(17, 400))


def test_a_restore_loses_nothing_that_a_device_holds(where: str) -> None:
    """The same, and once the operator goes back to a backup: the new epoch lets every device bring back what it has."""
    play(Restored, where, examples(3 if "://" in where else 10, 50 if "://" in where else 200))
