"""Compares what a server has after an import with the file that was imported, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from strongroom.client.errors import Tampered
from strongroom.client.format.keyring import Keyring
from strongroom.client.operations.account_file import AccountFile, Line, raw_lines
from strongroom.errors import AccountNotEmpty, Invalid
from strongroom.export_rows import (
    ExportedBlob,
    ExportedDocument,
    ExportedKeyring,
    ExportedKeyringVersion,
    ExportedVault,
    ExportedVersion,
    ExportRow,
    KeyringRow,
)
from strongroom.wire.export_file import ExportFile
from strongroom.wire.export_lines import Header, Trailer

USED_SINCE: Final = (
    "The account of this file was moved to this server before, and has been changed there since. Log in to it; there "
    "is nothing to import."
)
_NOT_KEPT: Final = "The new server does not have what it was given: a row is missing, or is not the one in the file."
_FILE_CHANGED: Final = "The file was changed while it was imported."


class Comparison:
    """Takes the lines of the new server's export, and compares each with the verified file.

    The server may keep fewer versions, and less trash, than the file has: `finish` says how much is missing. Its
    keyring is the one that was sealed for it, and the file's is the one that this has replaced.
    """

    def __init__(self, file: AccountFile, source: BinaryIO, ring: Keyring, sealed: str) -> None:
        self._export = ExportFile()
        self._file = file
        self._again = ExportFile()
        self._rows = self._read_rows(source)
        self._ring, self._sealed = ring, sealed
        current = file.lines.keyring
        self._keyrings = {one.version: one.keyring for one in file.replaced_keyrings}
        if current is not None:
            self._keyrings[current.version] = current.keyring
        self._missing = 0

    def take(self, raw: bytes) -> Line:
        """Compare the next line of the server's."""
        line = self._export.read(raw)
        if isinstance(line, Header):
            if line.clock < self._file.header.clock:
                raise Tampered(_NOT_KEPT)
        elif isinstance(line, ExportedKeyring | ExportedKeyringVersion):
            self._compare_keyring(line)
        elif not isinstance(line, Trailer):
            self._compare(line)
        return line

    def finish(self) -> int:
        """The number of versions, and of deleted documents' contents, that the server does not have."""
        if not self._export.is_whole or self._export.keyring is None:
            raise Tampered(_NOT_KEPT)
        for row in self._rows:
            self._skip(row)
        if self._again.digest != self._file.lines.digest:
            raise Invalid({"file": _FILE_CHANGED}, _FILE_CHANGED)
        return self._missing + len(self._keyrings)

    def _read_rows(self, source: BinaryIO) -> Iterator[ExportRow]:
        for raw in raw_lines(source):
            line = self._again.read(raw)
            if not isinstance(line, Header | Trailer | ExportedKeyring | ExportedKeyringVersion):
                yield line

    def _compare_keyring(self, line: KeyringRow) -> None:
        if isinstance(line, ExportedKeyringVersion):
            if self._keyrings.pop(line.version, None) != line.keyring:
                raise Tampered(_NOT_KEPT)
        elif line.version > self._ring.version:
            raise AccountNotEmpty(USED_SINCE)
        elif (line.version, line.keyring) != (self._ring.version, self._sealed):
            raise Tampered(_NOT_KEPT)

    def _compare(self, theirs: ExportRow) -> None:
        """Find the row in the file. What the file has before it must be history, which a server may leave out."""
        for ours in self._rows:
            if ours == theirs:
                return
            if _is_purged(ours, theirs):
                self._missing += 1
                return
            if isinstance(ours, ExportedVault) and _is_newer(ours, theirs):
                raise AccountNotEmpty(USED_SINCE)
            self._skip(ours)
        raise AccountNotEmpty(USED_SINCE) if isinstance(theirs, ExportedVault) else Tampered(_NOT_KEPT)

    def _skip(self, row: ExportRow) -> None:
        if not isinstance(row, ExportedVersion | ExportedBlob):
            raise Tampered(_NOT_KEPT)
        self._missing += 1


def _is_newer(ours: ExportedVault, theirs: ExportRow) -> bool:
    return isinstance(theirs, ExportedVault) and theirs.uid == ours.uid and theirs.updated_at > ours.updated_at


def _is_purged(ours: ExportRow, theirs: ExportRow) -> bool:
    """Whether a deleted document is the same without the content that its deletion kept."""
    if not isinstance(ours, ExportedDocument) or not isinstance(theirs, ExportedDocument):
        return False
    if ours.deleted_at is None or theirs.data is not None:
        return False
    return _without_content(ours) == _without_content(theirs)


def _without_content(row: ExportedDocument) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in row.__struct_fields__ if name not in {"data", "purged_at"})
