"""Inspects the write-ahead log of a SQLite file before SQLite reads it: what can be read, and what had been written.

SQLite recovers the log up to the last commit before the first frame whose checksum is wrong, and says nothing of what
follows. After a kill or a loss of power that is right, because only the last transaction can be unfinished. After
damage it drops transactions that were acknowledged. This module distinguishes the two. https://sqlite.org/fileformat2.html
section 4 has the format; https://sqlite.org/walformat.html the format of the index.

The log is damaged if it holds a frame of the current generation (one with the salts of the header) that follows, by its
checksum, a commit which cannot be recovered: the frames of a transaction are written after the commit before it has
reached the disk, so an unfinished transaction is the last one. Frames of an earlier, longer one that was never
committed may lie behind it; they follow it by no checksum. It is also damaged if the index (`-shm`) says that more was
committed than can be recovered: the index learns of a commit after the disk has it. And it is damaged if its header
cannot be read and anything follows it, be it zeros: the header reaches the disk before the first frame; or if the file
beside it holds nothing. What cannot be noticed: damage to the last transaction after a loss of power, when the index is
gone. It looks like an unfinished one; so do the last two, if the checksum of the first of them is what was damaged.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from strongroom.store import file_owners

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER: Final = struct.Struct(">8I")  # magic, version, page size, checkpoints, two salts, two checksums
_FRAME: Final = struct.Struct(">II8sII")  # page, pages of the database after a commit or 0, salts, two checksums
_MAGIC: Final = 0x377F0682  # with checksums over little-endian words; 1 more for big-endian
_VERSION: Final = 3_007_000
_INDEX_VERSION: Final = 3_007_000
_INDEX: Final = struct.Struct("=III2BHII2I8s2I")  # the header of the index, twice; then what was copied into the file
_WORD: Final = 32  # bits
_MASK: Final = 2**_WORD - 1

Sums = tuple[int, int]


class LogState(NamedTuple):
    """The state of a log: its frames, and how many can be read."""

    frames: int = 0  # known to have been written in its current generation, whether they can be read or not
    readable: int = 0  # that SQLite recovers: up to the last commit before the first that cannot be read
    damaged: bool = False
    copied: int | None = None  # frames that had all been copied into the file, if the index knows


class Frame(NamedTuple):
    """One frame of a log: a page as it was after a change."""

    number: int  # from 1
    page: int
    commit: int  # pages of the database after the commit that this frame ends; 0 if it does not end one
    salts: bytes
    sums: Sums
    offset: int  # of the page in the log


class Index(NamedTuple):
    """The index of a log (`-shm`): what was committed, and what was checkpointed."""

    committed: int  # the last frame of the last commit
    salts: bytes
    copied: int
    copying: int  # the last frame that a copy into the file has begun with


def inspect(database: Path) -> LogState:
    """Inspect the log of this file. Only for a file that no process has open: a log in use looks damaged."""
    database = Path(os.path.realpath(database))
    log = database.with_name(f"{database.name}-wal")
    try:
        with os.fdopen(file_owners.open_plain(log), "rb") as file:
            return _inspect(file, database)
    except FileNotFoundError:
        return _gone(_index(database))


def _gone(index: Index | None) -> LogState:
    """A log that is missing or empty: damaged if its index says that it held what the file does not have yet."""
    if index is None or index.committed <= index.copied:
        return LogState()
    return LogState(index.committed, 0, damaged=True, copied=_copied(index, index.salts))


def _inspect(file: BinaryIO, database: Path) -> LogState:
    raw = file.read(_HEADER.size)
    index = _index(database)
    if len(raw) < _HEADER.size:
        return _gone(index)
    header = _header(raw)
    if header is None:
        length = os.fstat(file.fileno()).st_size
        if not raw.strip(b"\0") and not _has_content(file) and (index is not None or length == _HEADER.size):
            return _gone(index)
        size = page_size(database)
        salts = _commonest_salts(file, size) if index is None else index.salts
        seen = sum(frame.salts == salts for frame in _frames(file, size))
        committed = 0 if index is None else index.committed
        return LogState(max(seen, committed, 1), 0, damaged=True, copied=_copied(index, salts))
    size, salts, order, sums = header
    readable = valid = last = 0
    follows_a_commit = False  # that cannot be recovered, and was on the disk before a frame that follows it
    before: Frame | None = None
    for frame in _frames(file, size):
        if frame.salts != salts:
            continue
        if valid == frame.number - 1:
            found = _checksum(_content(file, frame, size), order, sums)
            if found == frame.sums:
                valid, sums = frame.number, found
                readable = frame.number if frame.commit else readable
                last = frame.number
                continue
        if before is not None and before.number == frame.number - 1 and before.commit >= before.page > 0:
            chained = _checksum(_content(file, frame, size), order, before.sums) == frame.sums
            follows_a_commit = follows_a_commit or chained
        last, before = frame.number, frame
    if index is not None and index.salts != salts:
        index = None  # of another generation
    committed = 0 if index is None else index.committed
    damaged = committed > readable or follows_a_commit
    if last and not _bytes_of(database):  # SQLite would throw away the log of a file that holds nothing
        damaged = True
    return LogState(max(last, committed) if damaged else last, readable, damaged, _copied(index, salts))


def verified_frames(log: Path, database: Path) -> Iterator[tuple[Frame, bytes]]:
    """All frames whose content is as it was written, with their pages, also behind one that is not.

    Each frame holds the checksum of all before it. So one can be verified if its own content and the checksum in the
    frame before it are whole. Only frames of the generation of the last one written are given; if the header cannot be
    read, that is the generation that most frames belong to.
    """
    with log.open("rb") as file:
        raw = file.read(_HEADER.size)
        if len(raw) < _HEADER.size:
            return
        header = _header(raw)
        size = page_size(database) if header is None else header[0]
        salts = _commonest_salts(file, size) if header is None else header[1]
        orders = ("<", ">") if header is None else (header[2],)
        before: Sums = _HEADER.unpack(raw)[6:8]
        for frame in _frames(file, size):
            content = _content(file, frame, size)
            if frame.salts == salts and any(_checksum(content, order, before) == frame.sums for order in orders):
                yield frame, content[8:]
            before = frame.sums


def page_size(database: Path) -> int:
    """The size of the pages of this file, as it says; if it does not, the size that SQLite takes by itself."""
    try:
        with database.open("rb") as file:
            size = int.from_bytes(file.read(18)[16:18])
    except FileNotFoundError:
        size = 0
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else 4096


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _header(raw: bytes) -> tuple[int, bytes, str, Sums] | None:
    """Page size, salts, byte order and checksum of a header that is whole."""
    magic, version, size, _, _, _, *stored = _HEADER.unpack(raw)
    order = ">" if magic & 1 else "<"
    sums = _checksum(raw[:24], order, (0, 0))
    if magic & ~1 != _MAGIC or sums != tuple(stored) or version != _VERSION:
        return None
    return size, raw[16:24], order, sums


def _frames(file: BinaryIO, size: int) -> Iterator[Frame]:
    """The header of every frame that is there as a whole."""
    length = os.fstat(file.fileno()).st_size
    step = _FRAME.size + size
    for number, offset in enumerate(range(_HEADER.size, length - step + 1, step), 1):
        page, commit, salts, one, two = _FRAME.unpack(os.pread(file.fileno(), _FRAME.size, offset))
        yield Frame(number, page, commit, salts, (one, two), offset + _FRAME.size)


def _content(file: BinaryIO, frame: Frame, size: int) -> bytes:
    """The bytes that the checksum of a frame covers: page, commit, and the content of the page."""
    begin = frame.offset - _FRAME.size
    raw = os.pread(file.fileno(), _FRAME.size + size, begin)
    return raw[:8] + raw[_FRAME.size :]


def _checksum(data: bytes, order: str, sums: Sums) -> Sums:
    """SQLite's checksum, continued from the one before.

    For each pair of words it takes (one, two) to (one + first + two, two + second + the new one), modulo 2**32. That is
    linear, so the sums of two halves can be added once the first is multiplied by what the length of the second makes
    of it. All pairs are therefore lanes of one large integer, which is halved again and again: several times as fast as
    one pair after the other.
    """
    if order == ">":
        words = array("I", data)
        words.byteswap()
        data = words.tobytes()
    lanes = len(data) // 8
    mask = _lanes(lanes)
    whole = int.from_bytes(data, "little")
    ones = whole & mask
    twos = ones + (whole >> _WORD & mask) & mask
    one_by_one, one_by_two, two_by_two = _after(lanes)
    one = sums[0] * one_by_one + sums[1] * one_by_two
    two = sums[0] * one_by_two + sums[1] * two_by_two
    while lanes > 1:
        if lanes % 2:
            ones, twos = ones << 2 * _WORD, twos << 2 * _WORD  # a pair of zeros before all others changes nothing
        lanes = (lanes + 1) // 2
        mask = _lanes(lanes)
        by = _after(lanes)
        first_ones, first_twos = ones & mask, twos & mask
        ones = (ones >> 2 * _WORD * lanes) + (first_ones * by[0] & mask) + (first_twos * by[1] & mask) & mask
        twos = (twos >> 2 * _WORD * lanes) + (first_ones * by[1] & mask) + (first_twos * by[2] & mask) & mask
    return (one + ones) & _MASK, (two + twos) & _MASK


@lru_cache
def _lanes(count: int) -> int:
    """The lower word of each of so many lanes of two words."""
    return int.from_bytes(_MASK.to_bytes(8, "little") * count, "little")


@lru_cache
def _after(pairs: int) -> tuple[int, int, int]:
    """The matrix by which so many pairs of zeros change a checksum: symmetric, with Fibonacci numbers as entries."""
    before, number = 1, 0
    for _ in range(2 * pairs):
        before, number = number, (before + number) & _MASK
    return before, number, (before + number) & _MASK


def _has_content(file: BinaryIO) -> bool:
    """Whether anything but zeros follows."""
    while piece := file.read(1 << 20):
        if piece.strip(b"\0"):
            return True
    return False


def _commonest_salts(file: BinaryIO, size: int) -> bytes:
    counts: dict[bytes, int] = {}
    for frame in _frames(file, size):
        counts[frame.salts] = counts.get(frame.salts, 0) + 1
    return max(counts, key=lambda salts: counts[salts], default=b"")


def _index(database: Path) -> Index | None:
    """Read the index that was left behind, if it is whole: both copies of its header are the same and sound."""
    try:
        with os.fdopen(file_owners.open_plain(database.with_name(f"{database.name}-shm")), "rb") as file:
            raw = file.read(136)
    except OSError:
        return None
    if len(raw) < 136 or raw[:48] != raw[48:96]:
        return None
    version, _, _, ready, _, _, committed, _, _, _, salts, *sums = _INDEX.unpack(raw[:48])
    native = "<" if sys.byteorder == "little" else ">"
    if version != _INDEX_VERSION or not ready or _checksum(raw[:40], native, (0, 0)) != tuple(sums):
        return None
    (copied,) = struct.unpack("=I", raw[96:100])
    (copying,) = struct.unpack("=I", raw[128:132])
    return Index(committed, salts, copied, copying)


def _copied(index: Index | None, salts: bytes) -> int | None:
    """Up to which frame the file holds everything; None if that is not known, or the last copy was not finished."""
    if index is None or index.salts != salts or index.copying > index.copied:
        return None
    return index.copied
