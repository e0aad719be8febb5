"""The matrix can fail: each planted bug is caught, and each stands in docs/testing.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.faults.planted_faults import no_stale_names
from tests.kit.samples import some
from tests.security.matrix import Matrix, staged
from tests.security.planted import BUGS

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


@pytest.mark.parametrize("bug", some("faults of the server against the matrix", BUGS))
@async_test
async def test_a_planted_bug_is_caught(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """A server with one thing wrong is not what the table says."""
    async with staged({"db_path": tmp_path / "vault.db"}, clock) as stage:
        matrix = Matrix(stage, brief=True)
        with no_stale_names(), monkeypatch.context() as patch:
            BUGS[bug](patch, stage)
            if "revoked" in bug:  # it has to be there when the key is revoked
                await stage.set_up()
            caught = await anext(matrix.failures(), None)
    assert caught is not None, f"not noticed in {matrix.cells} cells"
    print(f"{bug}: {caught}")  # noqa: T201 - what caught it, for who writes the page


def test_the_bugs_are_listed() -> None:
    """Whoever reads the page learns which bugs were planted."""
    text = PAGE.read_text("utf-8")
    assert [bug for bug in BUGS if f"| {bug} |" not in text] == []
