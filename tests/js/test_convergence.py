"""Devices with the Python and with the TypeScript client edit the same vaults: all converge, nothing is lost."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.errors import FlakyStrategyDefinition, HypothesisException
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from strongroom import identifiers
from strongroom.client.format import derive
from tests.client.convergence import ConvergeRestored
from tests.js.mixed_account import ConvergeMixedAccount, MixedGround
from tests.kit.clients.typescript_devices import MixedCrew, Nodes
from tests.kit.samples import LONG, SEED
from tests.kit.servers.restartable_server import RestartableServer
from tests.sync.examples import examples


@pytest.fixture(autouse=True)
def _derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was derived once is not derived again after a crash."""
    monkeypatch.setattr(derive, "password_keys", cache(derive.password_keys))


@pytest.fixture(autouse=True)
def _uids_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uids of the Python client sort as they were made, also within a millisecond."""
    numbers, new_uid = itertools.count(), identifiers.new_uid
    monkeypatch.setattr(identifiers, "new_uid", lambda now: f"{new_uid(now)[:15]}000-8000-{next(numbers):012x}")


@pytest.fixture
def restartable_server(where: str) -> Iterator[RestartableServer]:
    """A server that can restart."""
    made = RestartableServer(where)
    yield made
    made.close()


engines = pytest.mark.parametrize("where", ["sqlite", "postgres"] if LONG else ["sqlite"], indirect=True)


class Observed(RuleBasedStateMachine):
    """Counts the examples that were played to the end, and keeps what went wrong in one."""

    played = 0
    wrong: list[BaseException]

    def teardown(self) -> None:
        """Whatever happened, it ends well."""
        before = sys.exc_info()[1]
        if isinstance(before, Exception) and not isinstance(before, HypothesisException):
            self.wrong.append(before)
        try:
            super().teardown()
        except Exception as fault:
            self.wrong.append(fault)
            raise
        type(self).played += 1


def play(machine: type[RuleBasedStateMachine], short: int, long: int, **more: Any) -> None:
    """Play examples. CONVERGENCE_EXAMPLES is how many, CONVERGENCE_SEED which ones.

    Processes of Node.js make times, uids and salts of their own, so that the same choices may lead elsewhere. Where
    Hypothesis notices, it begins anew with other choices; what went wrong before that still counts.
    """
    here: Any = type("Here", (Observed, machine), {**more, "wrong": []})
    how = settings(examples(short, long), phases=[Phase.explicit, Phase.generate], derandomize=False)
    wanted = int(os.environ.get("CONVERGENCE_EXAMPLES", how.max_examples))
    number = int(os.environ.get("CONVERGENCE_SEED", SEED)) * 1_000_000
    while here.played < wanted:
        number += 1
        try:
            run_state_machine_as_test(seed(number)(here), settings=settings(how, max_examples=wanted - here.played + 1))
        except FlakyStrategyDefinition:
            if here.wrong:
                raise here.wrong[0] from None
    sys.stdout.write(f"{here.played} examples of {machine.__name__}\n")


@engines
def test_devices_of_both_languages_converge(restartable_server: RestartableServer, nodes: Nodes) -> None:
    """Creates, changes, deletions, conflicts decided in every way, lost answers, kills, restarts, and a restore."""
    crew = MixedCrew(restartable_server, 3, nodes, lambda number: number > 0)
    try:
        play(ConvergeRestored, 1, 30 if "://" in restartable_server.where else 120, crew=crew)
    finally:
        crew.close()


@engines
def test_an_account_with_devices_of_both_languages_converges(
    restartable_server: RestartableServer, nodes: Nodes
) -> None:
    """Restores, passwords, recovery, rotations, agents with tokens, kills of every process, late and lost requests."""
    play(
        ConvergeMixedAccount,
        1,
        30 if "://" in restartable_server.where else 120,
        crew=MixedGround(restartable_server, nodes),
    )
