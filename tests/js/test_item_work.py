"""Files of other programs in TypeScript: work grows with the size of a file, and not with its square."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.items.growing_files import GROWING
from tests.js.items_program import asked

FEW, TIMES = 200, 8
BRIEF = 1.25  # times the reference, in which a measure says nothing; with a square, each large file takes longer


@pytest.mark.parametrize("formats", [("cxf",), ("bitwarden",), ("1pux", "keepass-xml"), ("chrome", "dotenv")])
def test_eight_times_the_size_is_eight_times_the_work(tmp_path: Path, formats: tuple[str, ...]) -> None:
    """In, and out again where a format can be written: with a square of it, it would be 64 times.

    What is measured is the time of the processor in one process, for a small file and then for a large one.
    """
    chosen = {name: make for name, make in GROWING.items() if make(1).format in formats}
    given = []
    for number, make in enumerate(chosen.values()):
        paths = [tmp_path / f"{number}-{count}" for count in (FEW, FEW * TIMES)]
        for path, count in zip(paths, (FEW, FEW * TIMES), strict=True):
            path.write_bytes(make(count).data)
        given.append({"format": make(1).format, "paths": [str(path) for path in paths]})
    told = tmp_path / "given.json"
    told.write_text(json.dumps(given))
    measured = dict(zip(chosen, asked("work", told), strict=True))
    slow = {
        name: (small, large, reference)
        for name, (small, large, reference) in measured.items()
        if large > max(BRIEF * reference, 3 * TIMES * small)
    }
    assert slow == {}
