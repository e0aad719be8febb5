"""The builds that tests keep for later runs: made once, and never used once their sources have changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.clients.javascript import kept


def test_a_stale_build_is_never_used(tmp_path: Path) -> None:
    """It is made when its sources are new, and not used if they changed while it was made."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / ".done").touch()
    sources, made = ["first"], []

    def make(folder: Path) -> None:
        made.append(sources[0])
        (folder / "built").write_text(sources[0])

    def make_late(folder: Path) -> None:
        make(folder)
        sources[0] = "fourth"

    def build(how: Callable[[Path], None] = make) -> str:
        folder = kept("b", how, packages=tmp_path, place=tmp_path / "builds", sources=lambda: sources[0])
        return (folder / "built").read_text()

    assert [build(), build()] == ["first", "first"]
    sources[0] = "second"
    assert [build(), build()] == ["second", "second"]
    assert made == ["first", "second"]
    sources[0] = "third"
    with pytest.raises(AssertionError, match="were changed while"):
        build(make_late)
    sources[0] = "third"
    assert (build(), made) == ("third", ["first", "second", "third", "third"])
    sources[0] = "first"
    assert (build(), len(made)) == ("first", 4)
