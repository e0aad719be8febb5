"""The archive format of backups: blocks, each with a checksum over everything before it; see docs/archive.md.

It holds rows, independent of engine and file. A change, a truncation or an addition is detected while it is read,
before the block in question is returned.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import msgspec
from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC: Final = b"strongroom archive 1\n"
_HEAD = struct.Struct(">cII")  # kind, length of what follows, a checksum of these two
_DIGEST: Final = 32
_MANIFEST, _ROWS, _END = b"M", b"R", b"E"

_LONGEST: Final = 2**30  # bytes of a block: it ends with the row that reaches 1 MiB, and no engine stores a longer row
_LONGEST_MANIFEST: Final = 2**20
_PIECE: Final = 2**20  # read at once: memory is allocated for what has arrived, not for what a block claims

Row = tuple[Any, ...]
_Text = Annotated[str, Meta(max_length=100, pattern=r"^[\x20-\x7e]*\Z")]  # shown to the operator as it is
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Timestamp = Annotated[int, Meta(ge=0, lt=253_402_300_800_000)]  # milliseconds, up to the year 9999
_Value = str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None


class BadArchive(Exception):  # noqa: N818 - said to the operator in one sentence
    """The archive cannot be read; the message is a sentence for the operator."""


class Sink(Protocol):
    """Where an archive is written to."""

    def write(self, data: bytes, /) -> object:
        """Write these bytes."""


class Source(Protocol):
    """Where an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """Read this many bytes; fewer only at the end."""


class TableInfo(Struct, frozen=True):
    """A table in the manifest."""

    name: _Text
    columns: tuple[_Text, ...]
    rows: _Count


class Manifest(Struct, frozen=True):
    """The first block of an archive: where it comes from, and which tables follow."""

    program: _Text  # the version of strongroom that wrote it
    engine: _Text
    created_at: _Timestamp
    epoch: _Text | None
    schema: _Count
    steps: dict[str, str]  # the checksum of each step of the schema, by its number
    tables: tuple[TableInfo, ...]

    @property
    def rows(self) -> int:
        """The number of rows of all tables."""
        return sum(table.rows for table in self.tables)


class _End(Struct, frozen=True):
    rows: int
    blocks: int


_rows = msgspec.msgpack.Decoder(tuple[int, list[tuple[_Value, ...]]])


class Writer:
    """Writes an archive: the manifest, pages of rows in the order of its tables, the end."""

    def __init__(self, sink: Sink, manifest: Manifest) -> None:
        self._sink = sink
        self._chain = hashlib.sha256(MAGIC).digest()
        self._blocks = self._count = 0
        sink.write(MAGIC)
        self._block(_MANIFEST, msgspec.json.encode(manifest))

    def rows(self, table: int, page: Sequence[Row]) -> None:
        """Add rows of the table with this index in the manifest."""
        self._count += len(page)
        self._block(_ROWS, msgspec.msgpack.encode((table, page)))

    def end(self) -> str:
        """Write the last block; the checksum of the archive."""
        self._block(_END, msgspec.json.encode(_End(self._count, self._blocks)))
        return self._chain.hex()

    def _block(self, kind: bytes, payload: bytes) -> None:
        head = _head(kind, len(payload))
        self._chain = _next(self._chain, head, payload)
        self._blocks += 1
        self._sink.write(head)
        self._sink.write(payload)
        self._sink.write(self._chain)


class Reader:
    """Reads an archive. `pages` yields all rows, and raises BadArchive unless the whole archive is intact."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._blocks = 0
        magic = source.read(len(MAGIC))
        if magic != MAGIC:
            if magic[:18] == MAGIC[:18]:
                raise BadArchive("The archive has a form that this release does not know; install a newer strongroom.")
            raise BadArchive("This is not an archive of strongroom.")
        self._chain = hashlib.sha256(MAGIC).digest()
        kind, payload = self._block()
        if kind != _MANIFEST:
            raise _damaged("it does not begin with a manifest")
        self.manifest: Manifest = _read(msgspec.json.Decoder(Manifest), payload)
        self.checksum = ""

    def pages(self) -> Iterator[tuple[str, list[Row]]]:
        """The rows, page by page, each with the name of its table."""
        tables = self.manifest.tables
        counts = [0] * len(tables)
        while True:
            kind, payload = self._block()
            if kind == _END:
                break
            if kind != _ROWS:
                raise _damaged("a block is of no known kind")
            index, page = _read(_rows, payload)
            if not 0 <= index < len(tables) or any(len(row) != len(tables[index].columns) for row in page):
                raise _damaged("rows do not fit their table")
            counts[index] += len(page)
            yield tables[index].name, page
        end = _read(msgspec.json.Decoder(_End), payload)
        whole = end == _End(sum(counts), self._blocks - 1) and counts == [table.rows for table in tables]
        if not whole:
            raise _damaged("it holds other rows than its manifest says")
        if self._source.read(1):
            raise _damaged("something follows its end")
        self.checksum = self._chain.hex()

    def _block(self) -> tuple[bytes, bytes]:
        """The next block, if the checksum over it and everything before it is right."""
        head = self._exactly(_HEAD.size)
        kind, length, _ = _HEAD.unpack(head)
        if head != _head(kind, length):
            raise _damaged(f"block {self._blocks + 1} does not match its checksum")
        if length > (_LONGEST if self._blocks else _LONGEST_MANIFEST):
            raise _damaged(f"block {self._blocks + 1} says that it is longer than any is")
        payload = self._exactly(length)
        chain = _next(self._chain, head, payload)
        if self._exactly(_DIGEST) != chain:
            raise _damaged(f"block {self._blocks + 1} does not match its checksum")
        self._chain = chain
        self._blocks += 1
        return kind, payload

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            pieces.append(self._source.read(min(size, _PIECE)))
            if not pieces[-1]:
                raise _damaged("its end is missing")
            size -= len(pieces[-1])
        return b"".join(pieces)


def _head(kind: bytes, length: int) -> bytes:
    return _HEAD.pack(kind, length, zlib.crc32(kind + length.to_bytes(4)))


def _next(chain: bytes, head: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(chain)
    digest.update(head)
    digest.update(payload)
    return digest.digest()


def _read(decoder: Any, payload: bytes) -> Any:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _damaged("a block cannot be read") from None


def _damaged(why: str) -> BadArchive:
    return BadArchive(f"The archive is damaged: {why}. Take another one.")
