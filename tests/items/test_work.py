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
from strongroom.items.formats import READERS, WRITERS, Problem, make_plan
from tests.support.sampling import LONG

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


def in_and_out(name: str, raw: dict[str, Any]) -> Callable[[], object]:
    """Reads a file, stores its items, writes them, and reads that again."""
    data = json.dumps(raw).encode()

    def run() -> None:
        found = list(READERS[name](io.BytesIO(data), None))
        assert not [one for one in found if isinstance(one, Problem)]
        stored = [Item.from_stored(one.to_stored()) for one in found if isinstance(one, Item)]
        written = WRITERS[name]([(f"uid-{number}", one) for number, one in enumerate(stored)], 1_800_000_000)
        assert len(list(READERS[name](io.BytesIO(written), None))) == len(found)

    return run


def cxf(*items: dict[str, Any]) -> dict[str, Any]:
    """A file of CXF with these items."""
    return {"accounts": [{"items": [{"id": "WA", "title": "A", "credentials": []} | one for one in items]}]}


def notes(count: int) -> list[dict[str, Any]]:
    """Credentials of one type, before one that makes the order of all another than ours."""
    made = [{"type": "note", "content": {"fieldType": "string", "value": str(number)}} for number in range(count)]
    return [*made, {"type": "basic-auth", "username": {"fieldType": "string", "value": "ada"}}]


def uris(count: int) -> dict[str, Any]:
    """An item of Bitwarden with one address again and again."""
    return {"type": 1, "name": "A", "login": {"uris": [{"uri": "https://a.example", "match": 1}] * count}}


CASES: dict[str, Callable[[int], Callable[[], object]]] = {
    "items of CXF with one id": lambda count: in_and_out("cxf", cxf(*[{}] * count)),
    "credentials of one item of CXF": lambda count: in_and_out("cxf", cxf({"credentials": notes(count)})),
    "items of Bitwarden with one id": lambda count: in_and_out(
        "bitwarden", {"encrypted": False, "items": [{"id": "x", "type": 2, "name": "A"}] * count}
    ),
    "addresses of one item of Bitwarden": lambda count: in_and_out(
        "bitwarden", {"encrypted": False, "items": [uris(count)]}
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ten_times_the_size_is_ten_times_the_work(name: str) -> None:
    """In and out again: with a square of it, it would be a hundred times."""
    assert lines_of(CASES[name](FEW)) < 11 * lines_of(CASES[name](FEW // 10))


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
