"""The checksum of a write-ahead log is the one that SQLite documents, whatever the length, byte order and start."""

from __future__ import annotations

import random
import struct
import time

import pytest

from strongroom.store.sqlite import write_ahead_log
from tests.kit.rows import each_row

CHANCE = random.Random(5)  # noqa: S311


def as_documented(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The loop of https://sqlite.org/fileformat2.html, section 4.2, one pair of words after the other."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) % 2**32
        two = (two + second + one) % 2**32
    return one, two


@pytest.mark.parametrize("order", ["<", ">"])
@each_row("pairs", [0, 1, 2, 3, 5, 8, 64, 65, 513, 1025, 8193])
def test_it_is_the_documented_one(order: str, pairs: int) -> None:
    """A header has 3 pairs, a frame of any size of page one more than the page; all bits set is the largest sum."""
    for data in (CHANCE.randbytes(8 * pairs), b"\xff" * 8 * pairs, bytes(8 * pairs)):
        for sums in ((0, 0), (2**32 - 1, 2**32 - 1), (CHANCE.getrandbits(32), CHANCE.getrandbits(32))):
            assert write_ahead_log._checksum(data, order, sums) == as_documented(data, order, sums)


def test_it_is_faster_than_pair_by_pair() -> None:
    """A log of 64 MiB is looked at before a server starts."""
    frames = [CHANCE.randbytes(4104) for _ in range(300)]

    def seconds(checksum: object) -> float:
        began = time.process_time()
        for frame in frames:
            checksum(frame, "<", (1, 2))  # type: ignore[operator]
        return time.process_time() - began

    assert (
        min(seconds(write_ahead_log._checksum) for _ in range(3)) < min(seconds(as_documented) for _ in range(3)) / 1.5
    )
