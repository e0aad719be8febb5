"""Many idle event streams cost little memory, and do not slow down writes."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from bench import proc
from bench.streams import Person, Place, furnished, settle, stream, writes
from tests.kit.asynchronous import async_test
from tests.kit.samples import rounds

MIB = 1024 * 1024
ALLOWED = 64 * MIB  # for two thousand
ATTEMPTS = 5  # the machine has other things to do


class Settled(Place):
    """A server on a database that the test brings along."""

    def __init__(self, where: str, folder: Path) -> None:
        self.engine = "postgres" if "://" in where else "sqlite"
        self.folder, self.where, self._postgres = folder, where, None


async def speed(port: int, writer: Person) -> float:
    """Writes a second."""
    return (await writes(port, writer, rounds(1, 3)))[0]


@pytest.mark.alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@async_test
async def test_idle_streams_cost_little_memory_and_do_not_slow_writes(where: str, tmp_path: Path) -> None:
    """Each of an account of its own: under 32 KiB each, and writes are as quick as without them."""
    count = rounds(500, 2_000)
    *readers, writer = people = await settle(where, count + 1)
    place = Settled(where, tmp_path)
    with place.serving() as (pid, port):
        await furnished(port, people)
        await speed(port, writer)  # whatever grows once has grown
        found = []
        for _ in range(ATTEMPTS):
            alone = await speed(port, writer)
            before = proc.memory_bytes([pid])
            streams = [await stream(port, reader) for reader in readers]
            grown = proc.memory_bytes([pid]) - before
            beside = await speed(port, writer)
            assert grown < ALLOWED * count // 2_000, f"{grown / MIB:.1f} MiB"
            print(f"{count} idle streams: {grown / MIB:.1f} MiB; {alone:.0f} writes/s alone, {beside:.0f} beside them")  # noqa: T201
            for one in streams:
                one.close()
            found.append(beside / alone)
            if found[-1] > 0.85:
                break
        assert max(found) > 0.85, statistics.fmean(found)
