"""Samples of long tables: a quarter or one row in `make test`, another one each day; every row in `make soak`."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")
LONG = bool(os.environ.get("SOAK"))
TIMES = int(os.environ.get("SOAK_TIMES", "1"))  # so many times as many random examples in `make soak`
_SHARE = 4
# The workers of one run must agree, at midnight too: the first process of a run decides.
DAY = os.environ.setdefault("SAMPLE_DAY", str(dt.datetime.now(dt.UTC).date().toordinal()))


def number_of(day: int) -> int:
    """The number of a day's sample. It rises by two on every tenth day.

    Otherwise a row of every fourth day would never meet the turn of a test that runs every fourth (rotation.py), or
    always that of one engine.
    """
    return day + day // 10


_NUMBER = number_of(int(DAY))


def some(of: Iterable[T], shift: int = 0) -> list[T]:
    """Every fourth row, beginning with that of the day, shifted; every row where there is time."""
    rows = list(of)
    return rows if LONG else rows[(_NUMBER + shift) % _SHARE :: _SHARE]


def one_of(rows: Iterable[T], shift: int = 0) -> list[T]:
    """One row, the next one each day, shifted; every row where there is time."""
    found = list(rows)
    return found if LONG else [found[(_NUMBER + shift) % len(found)]]


def on_one_engine(argument: str, shift: int = 0, *, indirect: bool = True) -> pytest.MarkDecorator:
    """Run a test on one engine, on the other one the next day, shifted; on both where there is time."""
    return pytest.mark.parametrize(argument, one_of(("sqlite", "postgres"), shift), indirect=indirect)


def on_another_day(number: int, of: int) -> bool:
    """Whether today is the turn of another one of so many; never where there is time."""
    return not LONG and (_NUMBER + number) % of != 0


def rounds(short: int, long: int) -> int:
    """How often, in `make test` and in `make soak`."""
    return long if LONG else short
