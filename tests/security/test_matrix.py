"""Every route, every principal, every kind of id: who gets what is a table, and the server keeps to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom.model import Variant
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres
from tests.security.matrix import Matrix, rowless, staged


async def play(place: dict[str, Any], clock: Clock, variant: str, **cut: bool) -> int:
    async with staged(place, clock, variant) as stage:
        matrix = Matrix(stage, variant, **cut)
        failures = [failure async for failure in matrix.failures()]
    assert not failures, f"{len(failures)} of {matrix.cells}:\n" + "\n".join(failures[:40])
    return matrix.cells


@pytest.mark.parametrize("variant", list(Variant))
def test_every_route_has_a_row(variant: Variant) -> None:
    """A route that the table does not know, or a row for no route, is a hole in what follows."""
    assert rowless(variant.value) == set()


@async_test
async def test_the_whole_matrix(tmp_path: Path, clock: Clock) -> None:
    """All of it: other spellings and HEAD included; what is refused is refused to the byte alike.

    In `make test` those who are let in nowhere ask for a quarter of the targets; so do the others
    for the malformed ones.
    """
    assert await play({"db_path": tmp_path / "vault.db"}, clock, "both") > 10_000


@pytest.mark.parametrize("variant", ["document", "blob"])
@async_test
async def test_the_matrix_of_a_narrowed_server(tmp_path: Path, clock: Clock, variant: str) -> None:
    """A server of one variant, over a database that holds everything."""
    assert await play({"db_path": tmp_path / "vault.db"}, clock, variant, brief=True) > 1_000


@async_test
async def test_the_matrix_on_postgresql(clock: Clock) -> None:
    """A smaller cut: every row and every principal, fewer spellings; in `make test` a quarter of the targets each.

    Rows about second factors have a quarter of the principals there.
    """
    assert await play({"database_url": postgres().migrated()}, clock, "both", brief=True, sampled=True) > 1_000
