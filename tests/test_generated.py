"""Generated files are in the repository, and are what their generator writes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generate_blocking


@pytest.mark.parametrize("source", generate_blocking.FILES, ids=lambda path: path.name)
def test_the_blocking_clients_are_up_to_date(source: Path) -> None:
    """`make generate` after a change of an asynchronous module, or this fails."""
    assert generate_blocking.FILES[source].read_text("utf-8") == generate_blocking.blocking(source)


@pytest.mark.parametrize("source", generate_blocking.FILES, ids=lambda path: path.name)
def test_a_planted_change_is_seen(source: Path, tmp_path: Path) -> None:
    """One more method in the asynchronous module is one more in the blocking one, and nothing in it awaits."""
    planted = tmp_path / source.name
    method = "\n    async def planted(self) -> None:\n        await self.close()\n"
    planted.write_text(source.read_text("utf-8") + method, "utf-8")
    made = generate_blocking.blocking(planted)
    assert made != generate_blocking.FILES[source].read_text("utf-8")
    assert made.endswith("    def planted(self) -> None:\n        self.close()\n")
    assert not {"async", "await"} & set(made.partition("\n")[2].split())
