"""Reads the B-tree pages of a SQLite file without SQLite, for a file that SQLite refuses. It validates no row.

https://sqlite.org/fileformat2.html has the format. A row is given as long as its own page and the pages of its long
values can be read, whether or not the pages above still lead to it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE = 0x02, 0x05, 0x0A, 0x0D
_HEADERS: Final = {INTERIOR_INDEX: 12, INTERIOR_TABLE: 12, LEAF_INDEX: 8, LEAF_TABLE: 8}
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of an integer, by its serial type
_LONGEST: Final = 64 * 1024 * 1024  # bytes of a row; longer than any that a server takes

Record = tuple[Any, ...]  # integers, bytes for text, memoryviews for blobs, None


class Broken(Exception):  # noqa: N818 - an outcome: this part cannot be read
    """Something points out of its page, or to a page that is not there."""


class Cell(NamedTuple):
    """One cell of a page."""

    rowid: int  # 0 in an index
    record: Record


class Pages:
    """The pages of one file, wherever the newest content of each lies."""

    def __init__(self, read: Callable[[int], bytes | None], count: int, size: int, reserved: int = 0) -> None:
        self._read = read
        self.count = count
        self.size = size
        self._usable = size - reserved

    def kind(self, number: int) -> int | None:
        """The type of a B-tree page; None if it is no B-tree page."""
        page = self._read(number)
        if page is None:
            return None
        found = page[_start(number)]
        return found if found in _HEADERS else None

    def children(self, number: int) -> list[int]:
        """The pages below an interior page, as far as they can be read."""
        page = self._page(number)
        start = _start(number)
        if page[start] not in {INTERIOR_INDEX, INTERIOR_TABLE}:
            return []
        below = [int.from_bytes(page[offset : offset + 4]) for offset in self._offsets(page, number)]
        below.append(int.from_bytes(page[start + 8 : start + 12]))
        return [child for child in below if 0 < child <= self.count]

    def cells(self, number: int) -> Iterator[Cell | None]:
        """The cells of a page that hold a record; None for one that cannot be read."""
        page = self._page(number)
        kind = page[_start(number)]
        if kind == INTERIOR_TABLE:
            return
        for offset in self._offsets(page, number):
            try:
                yield self._cell(page, offset, kind)
            except (Broken, IndexError):
                yield None

    def _page(self, number: int) -> bytes:
        page = self._read(number)
        if page is None or len(page) < self.size or page[_start(number)] not in _HEADERS:
            raise Broken
        return page

    def _offsets(self, page: bytes, number: int) -> list[int]:
        start = _start(number)
        begin = start + _HEADERS[page[start]]
        count = int.from_bytes(page[start + 3 : start + 5])
        if begin + 2 * count > self._usable:
            raise Broken
        offsets = struct.unpack(f">{count}H", page[begin : begin + 2 * count])
        return [offset for offset in offsets if begin + 2 * count <= offset < self._usable]

    def _cell(self, page: bytes, offset: int, kind: int) -> Cell:
        if kind == INTERIOR_INDEX:
            offset += 4
        length, offset = _varint(page, offset)
        rowid = 0
        if kind == LEAF_TABLE:
            rowid, offset = _varint(page, offset)
        if not 0 < length <= _LONGEST:
            raise Broken
        return Cell(_signed(rowid), _record(self._payload(page, offset, length, kind)))

    def _payload(self, page: bytes, offset: int, length: int, kind: int) -> bytes:
        """The payload of a cell, with its overflow pages."""
        usable = self._usable
        most = usable - 35 if kind == LEAF_TABLE else (usable - 12) * 64 // 255 - 23
        local = length
        if length > most:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (length - least) % (usable - 4)
            local = local if local <= most else least
        if offset + local > usable:
            raise Broken
        parts = [page[offset : offset + local]]
        left = length - local
        following = int.from_bytes(page[offset + local : offset + local + 4]) if left else 0
        seen = set()
        while left:
            if not 0 < following <= self.count or following in seen:
                raise Broken
            seen.add(following)
            more = self._read(following)
            if more is None:
                raise Broken
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left -= len(parts[-1])
            following = int.from_bytes(more[:4])
            if bool(left) != bool(following):
                raise Broken
        return b"".join(parts)


def _record(payload: bytes) -> Record:
    """The values of a record, if its header fits it to the byte."""
    length, offset = _varint(payload, 0)
    kinds = []
    while offset < length:
        kind, offset = _varint(payload, offset)
        kinds.append(kind)
    if offset != length:
        raise Broken
    values: list[Any] = []
    for kind in kinds:
        if kind >= 12:
            size = (kind - 12) // 2
            raw = payload[offset : offset + size]
            values.append(raw if kind & 1 else memoryview(raw))
        else:
            size = _INTEGERS.get(kind, 0)
            if kind in {7, 10, 11}:
                raise Broken  # no table of ours has fractions; the others are reserved
            raw = payload[offset : offset + size]
            values.append(int.from_bytes(raw, signed=True) if size else {8: 0, 9: 1}.get(kind))
        if len(raw) < size:
            raise Broken
        offset += size
    if offset != len(payload):
        raise Broken
    return tuple(values)


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[offset + index]
        if index == 8:
            return (value << 8) | byte, offset + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, offset + index + 1
    raise Broken


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _start(number: int) -> int:
    """The offset of the page header: on the first page the file header comes before it."""
    return 100 if number == 1 else 0
