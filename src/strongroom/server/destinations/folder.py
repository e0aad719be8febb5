"""Backups in another folder: on another disk, or on a file system of another machine."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Self

from strongroom.server.destinations.protocol import HALF, PIECE, CannotSend
from strongroom.store.sqlite import database_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Folder:
    """A folder that is there: one that is not mounted must not fill the disk below it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.named = str(path)

    async def __aenter__(self) -> Self:
        """Nothing is open between two files."""
        if not self._path.is_dir():
            raise CannotSend(f"BACKUP_TO {self.named} is no folder; make it, and see that its disk is mounted.")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to let go of."""

    async def sizes(self) -> dict[str, int]:
        """The files that lie there, links aside."""
        with self._in_words(), os.scandir(self._path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)}

    async def has(self, path: Path) -> bool:
        """Compare all of it: a disk is quick."""
        with self._in_words():
            return _digest_of(self._path / path.name) == _digest_of(path)

    async def put(self, path: Path) -> None:
        """Copy a file under another name, read it back from the disk, then give it its name."""
        half = self._path / f".{path.name}{HALF}"
        with self._in_words():
            half.unlink(missing_ok=True)
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as target, path.open("rb") as source:
                shutil.copyfileobj(source, target, PIECE)
                target.flush()
                os.fsync(target.fileno())
            if _digest_of(half) != _digest_of(path):
                half.unlink()
                raise CannotSend(f"{path.name} does not read back from {self.named} as it was written.")
            half.rename(self._path / path.name)
            database_file.sync_folder(self._path)

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Read a file."""
        with self._in_words(), (self._path / name).open("rb") as source:
            shutil.copyfileobj(source, file, PIECE)

    async def delete(self, name: str) -> None:
        """Delete a file."""
        with self._in_words():
            (self._path / name).unlink(missing_ok=True)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CannotSend(f"{self.named} fails: {error.strerror}.") from None


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        if hasattr(os, "posix_fadvise"):  # from the disk, and not from memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").digest()
