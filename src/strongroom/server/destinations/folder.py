"""Backup destination: a folder on another disk or a network file system."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Self

from strongroom.server.destinations.protocol import PARTIAL_SUFFIX, PIECE, CannotSend
from strongroom.store.sqlite import database_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Folder:
    """An existing folder. It is never created: an unmounted one must not fill the disk below it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.label = str(path)

    async def __aenter__(self) -> Self:
        """Check that the folder exists."""
        if not self._path.is_dir():
            raise CannotSend(f"BACKUP_TO {self.label} is not a folder; create it, and check that its disk is mounted.")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to close."""

    async def sizes(self) -> dict[str, int]:
        """The regular files there, without links."""
        with self._translate_errors(), os.scandir(self._path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)}

    async def has(self, path: Path) -> bool:
        """Compare the whole content: a disk is fast."""
        with self._translate_errors():
            return _digest_of(self._path / path.name) == _digest_of(path)

    async def put(self, path: Path) -> None:
        """Copy a file under a temporary name, verify it from the disk, then rename it."""
        partial = self._path / f".{path.name}{PARTIAL_SUFFIX}"
        with self._translate_errors():
            partial.unlink(missing_ok=True)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as target, path.open("rb") as source:
                shutil.copyfileobj(source, target, PIECE)
                target.flush()
                os.fsync(target.fileno())
            if _digest_of(partial) != _digest_of(path):
                partial.unlink()
                raise CannotSend(f"{path.name} does not read back from {self.label} as it was written.")
            partial.rename(self._path / path.name)
            database_file.sync_folder(self._path)

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Read a file."""
        with self._translate_errors(), (self._path / name).open("rb") as source:
            shutil.copyfileobj(source, file, PIECE)

    async def delete(self, name: str) -> None:
        """Delete a file."""
        with self._translate_errors():
            (self._path / name).unlink(missing_ok=True)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CannotSend(f"{self.label} fails: {error.strerror}.") from None


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        if hasattr(os, "posix_fadvise"):  # from the disk, and not from memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").digest()
