"""The rotation of `make test`: every test has its day, and no day has too many."""

from __future__ import annotations

from pathlib import Path

from tests.support.rotation import SLOW, TWINS, on_other_days

ROOT = Path(__file__).resolve().parents[1]
DAYS = 24  # after which every turn has come


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
    """Within 24 days each runs at least three times, and what is neither slow nor a twin every day."""
    every = names()
    left_out = [on_other_days(every, day) for day in range(740_000, 740_000 + DAYS)]
    for name in every:
        assert sum(name in others for others in left_out) <= DAYS - 3, name
    assert not any(name.startswith("tests/contract/") for others in left_out for name in others)


def test_one_of_two_twins_runs_each_day() -> None:
    """Never both, never none; a test whose twin was not collected always runs."""
    pair = [f"tests/server/test_a.py::test_b[{engine}-large]" for engine in ("sqlite", "postgres")]
    turns = [sorted(on_other_days(pair, day)) for day in range(DAYS)]
    assert {len(others) for others in turns} == {1}
    assert turns[0::2] == [turns[0]] * (DAYS // 2)
    assert turns[1::2] == [turns[1]] * (DAYS // 2) != turns[0::2]
    assert not any(on_other_days(pair[:1], day) for day in range(DAYS))


def test_every_entry_names_a_test() -> None:
    """A test that was renamed would run every day, and nobody would notice."""
    for prefix in SLOW:
        path, _, function = prefix.partition("::")
        assert (ROOT / path).exists(), prefix
        assert not function or f"def {function}" in (ROOT / path).read_text("utf-8"), prefix
