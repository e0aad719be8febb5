"""Fixed samples of long tables whose rows are alike; `make soak` plays every row. tests/samples.md lists each table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")
LONG: Final = bool(os.environ.get("SOAK"))
TIMES: Final = int(os.environ.get("SOAK_TIMES", "1"))  # so many times as many random examples in `make soak`
SEED: Final = 20_261_118  # of what `make test` chooses at random: the same on every day
_SHARE: Final = 4


class Use(NamedTuple):
    """A table, and the test that plays its rows; no test where the rows are tests of their own."""

    table: str
    test: str


taken: Final[Counter[Use]] = Counter()  # rows that this process plays
total: Final[Counter[Use]] = Counter()  # rows that `make soak` would play in their place


def some(table: str, rows: Iterable[T], shift: int = 0) -> list[T]:
    """Every fourth row, from the first one or from that of the shift; every row in `make soak`."""
    every = list(rows)
    return chosen(table, every, every[shift % _SHARE :: _SHARE])


def chosen(table: str, rows: Iterable[T], sample: Iterable[T]) -> list[T]:
    """The sample; every row in `make soak`. Both are counted for the last line of the run."""
    every = list(rows)
    played = every if LONG else list(sample)
    use = Use(table, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0])
    taken[use] += len(played)
    total[use] += len(every)
    return played


def rounds(short: int, long: int, variable: str = "") -> int:
    """How often, in `make test` and in `make soak`, where a variable of the environment may set another number."""
    return int(os.environ.get(variable, long)) if LONG else short
