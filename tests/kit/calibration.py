"""Bounds of processor time that hold on every machine: ratios to work that is measured in the same process just before.

No test compares a time with a constant: on a slower machine, or beside other work, it would fail without a fault.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
ATTEMPTS = 3  # of which the best counts: other work may disturb
_READ = 32 * 1024  # bytes
_NUMBERS = "[" + "1," * ((_READ - 2) // 2) + "1]"


class Measure:
    """What a block took."""

    seconds = 0.0


@contextmanager
def measured(clock: Callable[[], float] = time.process_time) -> Iterator[Measure]:
    """What a block takes by a clock, without the garbage collector, whose cost depends on all that the tests hold."""
    measure, collects = Measure(), gc.isenabled()
    gc.disable()
    began = clock()
    try:
        yield measure
    finally:
        measure.seconds = clock() - began
        if collects:
            gc.enable()


def processor_time(work: Callable[[], object]) -> float:
    """The processor time of this process for some work."""
    with measured() as measure:
        work()
    return measure.seconds


def reference_time(size: int, clock: Callable[[], float] = time.process_time) -> float:
    """The time in which Python's own JSON decoder reads a list of numbers of so many bytes, measured with a part of it.

    For 1 MiB it is about 50 ms on an idle machine of 2024.
    """
    with measured(clock) as measure:
        json.loads(_NUMBERS)
    return measure.seconds * size / _READ


def assert_within(ratio: float, size: int, work: Callable[[], T], what: object = "") -> T:
    """Work takes at most so many times as long as the reference of this size, once in three attempts; its result."""
    seen = []
    for _ in range(ATTEMPTS):
        reference = reference_time(size)
        with measured() as measure:
            result = work()
        seen.append(measure.seconds / reference)
        if seen[-1] <= ratio:
            return result
    raise AssertionError(f"{what}: {min(seen):.2f} times the reference, of {ratio:.2f}")


def assert_linear(work: Callable[[int], object], size: int, what: object = "") -> None:
    """Work takes at most three times as long as for half the size; with the square of the size, it takes four times."""
    seen = []
    work(size // 8)  # what is done only once, such as an import, is done
    for _ in range(ATTEMPTS):
        half = processor_time(lambda: work(size // 2))
        seen.append(processor_time(lambda: work(size)) / half)
        if seen[-1] <= 3:
            return
    raise AssertionError(f"{what}: {min(seen):.2f} times the work of half the size")
