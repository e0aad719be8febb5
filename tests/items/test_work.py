"""Work grows with the size of a file, and not with its square: lines of code that run are counted, not seconds."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from strongroom.items import Item, Login, Source
from strongroom.items.formats import READERS, WRITERS, FileRefused, make_plan
from tests.items.growing_files import GROWING, File
from tests.kit.samples import LONG

FEW = 300
MANY = 10_000 if LONG else FEW


def lines_of(run: Callable[[], object]) -> int:
    """How many lines of the formats run in a function; a turn of a loop counts as a line at least."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call" and not frame.f_globals.get("__name__", "").startswith("strongroom.items.formats"):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def in_and_out(file: File) -> Callable[[], object]:
    """Reads a file, stores its items, writes them, and reads that again."""

    def run() -> None:
        try:
            found = [one for one in READERS[file.format](io.BytesIO(file.data), None) if isinstance(one, Item)]
        except FileRefused:  # with too many columns
            return
        if file.format in WRITERS:
            stored = [Item.from_stored(one.to_stored()) for one in found]
            written = WRITERS[file.format]([(f"uid-{number}", one) for number, one in enumerate(stored)], 1_800_000_000)
            assert len(list(READERS[file.format](io.BytesIO(written), None))) == len(found)

    return run


@pytest.mark.parametrize("name", GROWING)
def test_ten_times_the_size_is_ten_times_the_work(name: str) -> None:
    """In, and out again where a format can be written: with a square of it, it would be a hundred times."""
    assert lines_of(in_and_out(GROWING[name](FEW))) < 11 * lines_of(in_and_out(GROWING[name](FEW // 10)))


def test_many_items_with_one_id() -> None:
    """An export of copies (ten thousand in the soak) takes as much work for each, and an import finds all of them."""
    copies = [Login(title="A", source=Source(format="cxf", id="WA")) for _ in range(MANY)]
    written = b""

    def write() -> None:
        nonlocal written
        written = WRITERS["cxf"]([(f"uid-{number}", one) for number, one in enumerate(copies)], 1_800_000_000)

    assert lines_of(write) < 200 * MANY
    ids = [one["id"] for one in json.loads(written)["accounts"][0]["items"]]
    assert len(set(ids)) == MANY
    plan = make_plan(READERS["cxf"](io.BytesIO(written), None), [])
    assert (len(plan.new), plan.problems) == (MANY, [])
