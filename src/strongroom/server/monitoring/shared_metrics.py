"""Metrics in shared memory: each worker writes its own slot, and reads those of all."""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from typing import Final, NamedTuple

import msgspec

Samples = dict[str, dict[str, float]]  # by metric, and by label

SLOT_BYTES: Final = 512 * 1024
_HEAD = struct.Struct("<II")  # length and checksum: a reader may see half of a write
_BEAT = struct.Struct("<d")  # the last heartbeat of a process, by the monotonic clock that all share
_decode = msgspec.json.Decoder(Samples).decode
_encode = msgspec.json.Encoder().encode


class SharedMetrics:
    """The shared memory, created before the workers are forked."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._memory = mmap.mmap(-1, slots * SLOT_BYTES)
        self._beats = mmap.mmap(-1, slots * _BEAT.size)
        self._last: list[Samples] = [{} for _ in range(slots)]

    def beat(self, slot: int, timestamp: float | None = None) -> None:
        """Record a heartbeat of the worker in this slot."""
        _BEAT.pack_into(self._beats, slot * _BEAT.size, time.monotonic() if timestamp is None else timestamp)

    def beats(self) -> list[float]:
        """The last heartbeat of each worker."""
        return [timestamp for (timestamp,) in _BEAT.iter_unpack(self._beats[:])]

    def write(self, slot: int, samples: Samples) -> None:
        """Write samples; if they do not fit, the slot stays as it was."""
        data = _encode(samples)
        if len(data) + _HEAD.size <= SLOT_BYTES:
            start = slot * SLOT_BYTES
            self._memory[start : start + _HEAD.size + len(data)] = _HEAD.pack(len(data), zlib.crc32(data)) + data

    def read(self, slot: int) -> Samples:
        """The samples of a slot; those that were read last, if it is just being written."""
        start = slot * SLOT_BYTES
        length, checksum = _HEAD.unpack_from(self._memory, start)
        data = self._memory[start + _HEAD.size : start + _HEAD.size + min(length, SLOT_BYTES)]
        if length and zlib.crc32(data) == checksum:
            self._last[slot] = _decode(data)
        return self._last[slot]


class MetricsSlot(NamedTuple):
    """The slot of one worker."""

    metrics: SharedMetrics
    number: int

    def write(self, samples: Samples) -> None:
        """Write the samples of this worker."""
        self.metrics.write(self.number, samples)

    def before(self) -> Samples:
        """The samples of the worker that had this slot before."""
        return self.metrics.read(self.number)

    def others(self) -> list[Samples]:
        """The samples of all other workers."""
        return [self.metrics.read(slot) for slot in range(self.metrics.slots) if slot != self.number]
