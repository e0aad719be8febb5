"""No way around the second factor goes unnoticed: each that is planted is caught by the table, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.faults.planted_faults import no_stale_names
from tests.security.conftest import Nodes
from tests.security.fixtures import Stage
from tests.security.matrix import Matrix, Target, Way
from tests.security.planted_second_factor import FAULTS
from tests.security.table import EVERYBODY, PRINCIPALS, ROWS

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
OF_SECOND_FACTORS = [row for row in ROWS if row.enrolled]


async def first_failure(stage: Stage) -> str | None:
    """Play the rows about second factors, each once; what came out otherwise than the table says."""
    matrix = Matrix(stage, brief=True)
    for row in OF_SECOND_FACTORS:
        name = "nobody" if row.may == EVERYBODY else "owner"
        method, _, path = row.route.partition(" ")
        answer = await matrix._asked(row, Way(method, path), name, PRINCIPALS[name], Target(), good=True)
        if (answer.status, answer.code) != row.good:
            return f"{row.name}: {(answer.status, answer.code)} instead of {row.good}"
    ticket = (await stage.enrolled()).ticket
    me = await stage.send("GET", "/auth/me", ticket)
    return None if me.status == 401 else f"GET /auth/me with a ticket: {me.status} instead of 401"


async def prepared(one: Stage, two: Stage) -> Stage:
    """A stage with two accounts, and another node."""
    one.other_node = two.app
    for name in ("ann", "bob"):
        one.accounts[name] = await one.register(name)
    one.bearers = {"nobody": None, "owner": one.accounts["ann"].access}
    return one


@async_test
async def test_the_table_is_kept(nodes: Nodes) -> None:
    """Without a fault nothing is noticed."""
    async with nodes({}, {}) as (one, two):
        assert await first_failure(await prepared(one, two)) is None


@pytest.mark.parametrize("fault", FAULTS)
@async_test
async def test_a_planted_way_around_is_caught(nodes: Nodes, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A server that lets somebody around the second factor is not what the table says."""
    async with nodes({}, {}) as (one, two):
        stage = await prepared(one, two)
        with no_stale_names(), monkeypatch.context() as patch:
            FAULTS[fault](patch, stage)
            caught = await first_failure(stage)
    assert caught is not None
    print(f"{fault}: {caught}")  # noqa: T201 - what caught it, for who writes the page


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in FAULTS if f"| {fault} |" not in text] == []
