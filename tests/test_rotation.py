"""The rotation of `make test`: every test has its day, and no day has too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rotation import SLOW, TWINS, on_other_days

ROOT = Path(__file__).resolve().parents[1]
FIRST = 740_000  # a day
WEEKS = 14
DAYS = 72  # after which every row of a sample had its turn
ENGINES = ("sqlite", "postgres")
# Files whose tests run every day, and every second, third and fourth; all of them have twins.
FILES = (
    "tests/cli/test_a.py",
    "tests/cli/test_invite.py",
    "tests/operating/test_log_recovery.py",
    "tests/operating/test_destinations.py",
)


def names() -> list[str]:
    """Names like those of real tests: slow ones, twins, slow twins, others."""
    slow = [f"{prefix}{'' if '::' in prefix else '::test'}{at}" for prefix in SLOW for at in range(10)]
    both = [
        f"{name}[{value}]"
        for folder, pair in TWINS.items()
        for name in slow
        if name.startswith(folder)
        for value in pair
    ]
    twins = [
        f"{folder}test_a.py::test_b{at}[x-{value}-y]"
        for folder, pair in TWINS.items()
        for at in range(10)
        for value in pair
    ]
    return [*slow, *both, *twins, *(f"tests/contract/test_a.py::test_b[{engine}]" for engine in ("sqlite", "postgres"))]


def test_every_test_has_its_day() -> None:
    """Within two weeks each runs, and what is neither slow nor a twin every day."""
    every = names()
    left_out = [on_other_days(every, day) for day in range(FIRST, FIRST + 3 * WEEKS)]
    for begin in range(2 * WEEKS):
        assert not set.intersection(*left_out[begin : begin + WEEKS])
    assert not any(name.startswith("tests/contract/") for others in left_out for name in others)


@pytest.mark.parametrize("share", [2, 3, 4])
def test_every_row_of_a_sample_has_its_day(share: int) -> None:
    """Rows of which a share is collected each day: all of them run, each with both engines, however slow they are."""
    assert [1, *(SLOW[name] for name in FILES[1:])] == [1, 2, 3, 4]
    rows = [f"{prefix}::test_rows[{row}-{engine}]" for prefix in FILES for row in range(12) for engine in ENGINES]
    ran: set[str] = set()
    for day in range(FIRST, FIRST + DAYS):
        collected = [name for name in rows if int(name.partition("[")[2].partition("-")[0]) % share == day % share]
        ran |= {*collected} - on_other_days(collected, day)
    assert ran == {*rows}


def test_one_of_two_twins_runs_each_day() -> None:
    """Never both, never none, and none of them three days in turn; a test whose twin was not collected always runs."""
    pair = [f"tests/server/test_a.py::test_b[{engine}-large]" for engine in ENGINES]
    turns = [sorted(on_other_days(pair, day)) for day in range(24)]
    assert {len(others) for others in turns} == {1}
    assert not any(turns[day] == turns[day + 1] == turns[day + 2] for day in range(22))
    assert not any(on_other_days(pair[:1], day) for day in range(24))


def test_every_entry_names_a_test() -> None:
    """A test that was renamed would run every day, and nobody would notice."""
    for prefix in SLOW:
        path, _, function = prefix.partition("::")
        assert (ROOT / path).exists(), prefix
        assert not function or f"def {function}" in (ROOT / path).read_text("utf-8"), prefix
