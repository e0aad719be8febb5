"""The rotation of `make test`: every test has its day, and no day has too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.rotation import LAST, SLOW, TWINS, is_file_of_another_day, on_other_days, rank
from tests.kit.sampling import number_of

ROOT = Path(__file__).resolve().parents[1]
FIRST = 740_000  # a day
WEEKS = 14
DAYS = 88  # after which every row of a sample had its turn
ENGINES = ("sqlite", "postgres")
# Entries of tests that have twins, by how many days pass from one turn to the next: files, and tests with own turns.
ENTRIES = {
    1: "tests/server/test_a.py::",
    2: "tests/operating/",
    3: "tests/security/test_matrix.py::test_the_whole_matrix",
    4: "tests/cli/test_invite.py",
    5: "tests/cli/test_database.py",
    7: "tests/operating/test_destinations.py::",
}


def _path(entry: str) -> str:
    """The beginning of a test's name that an entry is for."""
    return entry if "::" in entry else f"{entry}test_a.py::test" if entry.endswith("/") else f"{entry}::test"


def names() -> list[str]:
    """Names like those of real tests: slow ones, twins, slow twins, others."""
    slow = [f"{_path(prefix)}{at}" for prefix in SLOW for at in range(4)]
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
    assert not any(name.startswith("tests/contract/test_a.py") for others in left_out for name in others)


@pytest.mark.parametrize("share", [2, 3, 4])
def test_every_row_of_a_sample_has_its_day(share: int) -> None:
    """Rows of which a share is collected each day: all of them run, each with both engines, however slow they are."""
    assert {name: SLOW.get(name, 1) for name in ENTRIES.values()} == {name: days for days, name in ENTRIES.items()}
    assert {*SLOW.values()} <= {*ENTRIES}
    rows = [f"{_path(name)}[{row}-{engine}]" for name in ENTRIES.values() for row in range(12) for engine in ENGINES]
    ran: set[str] = set()
    for day in range(FIRST, FIRST + DAYS):
        today = number_of(day) % share
        collected = [name for name in rows if int(name.partition("[")[2].partition("-")[0]) % share == today]
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


def test_a_file_whose_tests_have_another_day_is_not_imported() -> None:
    """Of a file that is named, all tests that are no twins have one day, and the file is left out on all others."""
    of_files = [name for name in SLOW if name.endswith(".py")]
    assert of_files
    for path in of_files:
        tests = {f"{path}::test_{at}" for at in range(10)}
        for day in range(FIRST, FIRST + WEEKS):
            assert on_other_days(tests, day) == (tests if is_file_of_another_day(path, day) else set())
    assert not any(is_file_of_another_day(path) for path in ("tests/web/test_qr.py", "tests/test_rows.py"))


def test_no_test_of_a_file_that_is_named_has_an_entry_of_its_own() -> None:
    """It would not be collected on the days that this entry gives it."""
    assert not [name for name in SLOW for path in SLOW if path.endswith(".py") and name.startswith(f"{path}::")]


def test_slow_tests_begin_first() -> None:
    """In the order of the table; the longest entry that fits decides."""
    assert rank("tests/web/test_qr.py::test_a") == 0
    assert rank("tests/js/test_guide.py::test_a") > rank("tests/js/test_move.py::test_a") > 0
    assert rank("tests/contract/test_a.py::test_b[sqlite]") == LAST
