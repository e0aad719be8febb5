"""A board in memory that the processes of one server share: each writes its figures in its own place, all read all."""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from typing import Final, NamedTuple

import msgspec

Samples = dict[str, dict[str, float]]  # what is counted, and its number under each label

SLOT_BYTES: Final = 512 * 1024
_HEAD = struct.Struct("<II")  # length and checksum: a reader may come in the middle of a writing
_BEAT = struct.Struct("<d")  # when a process gave its last sign of life, by the clock that all processes share
_decode = msgspec.json.Decoder(Samples).decode
_encode = msgspec.json.Encoder().encode


class SharedMetrics:
    """Made before the processes are, so that each inherits it."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._memory = mmap.mmap(-1, slots * SLOT_BYTES)
        self._beats = mmap.mmap(-1, slots * _BEAT.size)
        self._last: list[Samples] = [{} for _ in range(slots)]

    def beat(self, slot: int, timestamp: float | None = None) -> None:
        """Note a sign of life of the process in this place."""
        _BEAT.pack_into(self._beats, slot * _BEAT.size, time.monotonic() if timestamp is None else timestamp)

    def beats(self) -> list[float]:
        """The last sign of life of each."""
        return [timestamp for (timestamp,) in _BEAT.iter_unpack(self._beats[:])]

    def write(self, slot: int, samples: Samples) -> None:
        """Write figures; those that are too many for the place stay as they were."""
        data = _encode(samples)
        if len(data) + _HEAD.size <= SLOT_BYTES:
            start = slot * SLOT_BYTES
            self._memory[start : start + _HEAD.size + len(data)] = _HEAD.pack(len(data), zlib.crc32(data)) + data

    def read(self, slot: int) -> Samples:
        """The figures of a place; what was read last, if somebody is just writing there."""
        start = slot * SLOT_BYTES
        length, checksum = _HEAD.unpack_from(self._memory, start)
        data = self._memory[start + _HEAD.size : start + _HEAD.size + min(length, SLOT_BYTES)]
        if length and zlib.crc32(data) == checksum:
            self._last[slot] = _decode(data)
        return self._last[slot]


class MetricsSlot(NamedTuple):
    """One process's place on the board."""

    metrics: SharedMetrics
    number: int

    def write(self, samples: Samples) -> None:
        """Write this process's figures."""
        self.metrics.write(self.number, samples)

    def before(self) -> Samples:
        """What the process counted that had this place before."""
        return self.metrics.read(self.number)

    def others(self) -> list[Samples]:
        """The figures of all other processes."""
        return [self.metrics.read(slot) for slot in range(self.metrics.slots) if slot != self.number]
