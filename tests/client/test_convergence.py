"""Several replicas, any interleaving, crashes at any step: every one converges, nothing is lost, nothing comes back."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from strongroom import identifiers
from strongroom.client.format import derive
from strongroom.errors import Refusal
from tests.client.account_convergence import ConvergeAccount, Ground
from tests.client.convergence import Converge, ConvergeRestored
from tests.client.planted_replica import AFTER_A_RESTORE, FAULTS
from tests.kit.clients.crew import Crew
from tests.kit.samples import chosen
from tests.kit.servers.restartable_server import RestartableServer
from tests.sync.examples import PAGE, SETTINGS, examples


@pytest.fixture(autouse=True)
def _derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was derived once is not derived again after a crash: it takes longer than a whole example."""
    monkeypatch.setattr(derive, "password_keys", cache(derive.password_keys))


@pytest.fixture(autouse=True)
def _uids_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uids sort as they were made, also within a millisecond: the same choices must always come to the same example."""
    numbers, new_uid = itertools.count(), identifiers.new_uid
    monkeypatch.setattr(identifiers, "new_uid", lambda now: f"{new_uid(now)[:15]}000-8000-{next(numbers):012x}")


@pytest.fixture
def restartable_server(where: str) -> Iterator[RestartableServer]:
    """A server that can restart."""
    made = RestartableServer(where)
    yield made
    made.close()


@pytest.fixture
def sqlite_server(tmp_path: Path) -> Iterator[RestartableServer]:
    """The same, on SQLite."""
    made = RestartableServer(str(tmp_path / "vault.db"))
    yield made
    made.close()


def play(machine: type[Converge], server: RestartableServer, short: int, long: int) -> None:
    """Play many examples on one account."""
    here = type("Here", (machine,), {"crew": Crew(server, 3)})
    run_state_machine_as_test(here, settings=examples(short, long))


def test_every_replica_converges(restartable_server: RestartableServer) -> None:
    """Creates, changes, deletions, conflicts decided in every way, lost answers, late requests, crashes, restarts."""
    play(Converge, restartable_server, *((4, 50) if "://" in restartable_server.where else (10, 200)))


def test_a_restore_loses_nothing_that_a_replica_holds(restartable_server: RestartableServer) -> None:
    """The same, and once the operator goes back to a backup."""
    play(ConvergeRestored, restartable_server, 2 if "://" in restartable_server.where else 3, 50)


def test_an_account_converges_whatever_it_goes_through(restartable_server: RestartableServer) -> None:
    """Restores, passwords, recovery, rotations, agents with tokens, kills of every process, late and lost requests.

    CONVERGENCE_EXAMPLES is how many examples, CONVERGENCE_SEED which ones, as in `make soak`.
    """
    how = examples(1 if "://" in restartable_server.where else 3, 15 if "://" in restartable_server.where else 100)
    here = type("Here", (ConvergeAccount,), {"crew": Ground(restartable_server)})
    if "CONVERGENCE_EXAMPLES" in os.environ:
        how = settings(how, max_examples=int(os.environ["CONVERGENCE_EXAMPLES"]), derandomize=False)
        here = seed(int(os.environ.get("CONVERGENCE_SEED", "0")))(here)
    run_state_machine_as_test(here, settings=how)


@pytest.mark.parametrize("fault", chosen("faults of a replica", FAULTS, sorted(FAULTS.keys() - AFTER_A_RESTORE)))
def test_a_planted_fault_is_caught(
    sqlite_server: RestartableServer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A replica with one thing wrong does not pass."""
    machine = ConvergeRestored if fault in AFTER_A_RESTORE else Converge
    here = type("Here", (machine,), {"crew": Crew(sqlite_server, 3)})
    FAULTS[fault](monkeypatch)
    with pytest.raises((AssertionError, Refusal)), contextlib.redirect_stdout(io.StringIO()):
        run_state_machine_as_test(here, settings=settings(SETTINGS, max_examples=100))


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which faults were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in FAULTS if f"| {fault} |" not in text] == []
