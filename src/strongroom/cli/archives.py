"""The files that archives lie in: written whole or not at all, readable by their owner only, encrypted or not."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from strongroom.archive import BadArchive
from strongroom.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from strongroom.archive import Source

SYNC_BYTES: Final = 8 * 1024 * 1024  # written back this often, so that nobody else's commit waits behind all of it
HALF: Final = ".half"


class Key(NamedTuple):
    """What a backup is encrypted to; nothing is an open one."""

    passphrase: str = ""
    recipient: str = ""


class _Out:
    """A new file that is written back to the disk as it grows, and whose bytes are summed up."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=64 * 1024)
        self._digest = hashlib.sha256()
        self._since = 0
        self.size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)
        self._since += len(data)
        if self._since >= SYNC_BYTES:
            self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fdatasync(self._file.fileno()) if hasattr(os, "fdatasync") else os.fsync(self._file.fileno())
        if hasattr(os, "posix_fadvise"):  # others need the memory more
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._since = 0

    def close(self) -> str:
        """The checksum of all that was written, once the disk has it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._digest.hexdigest()

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()


def write(
    path: Path, key: Key, fill: Callable[[Any], str], check: Callable[[Path], str], rest: Callable[[], None]
) -> int:
    """Have a new file filled under another name, read it again, give it its name; its size.

    `fill` gives the checksum of the archive that it wrote, and `check` the one of an archive that it reads. What is
    read here is read in pieces, with a rest after each.
    """
    if path.exists():
        raise terminal.Stop(f"{path} exists already; name another file, for nothing is ever written over.")
    half = path.with_name(f".{path.name}.{os.getpid()}{HALF}")
    out = None
    try:
        out = _Out(half)
        sink = _sealed(out, key)
        checksum = fill(sink)
        if sink is not out:
            sink.close()
        written = out.close()
        _forget(half)
        if not (_digest_of(half, rest) == written if key.recipient else _reads_as(checksum, check, half)):
            raise terminal.Stop(f"{path} does not read back as it was written; the disk may be failing.")
        half.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise terminal.Stop(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        if out is not None:
            out.abandon()
            half.unlink(missing_ok=True)
    return out.size


def _sealed(out: _Out, key: Key) -> Any:
    if not (key.passphrase or key.recipient):
        return out
    from strongroom import sealing

    try:
        if key.recipient:
            return sealing.AgeSealer(out, [key.recipient])
        return sealing.Sealer(out, key.passphrase)
    except sealing.CannotSeal as error:
        raise terminal.Stop(str(error)) from None


def _reads_as(checksum: str, check: Callable[[Path], str], half: Path) -> bool:
    try:
        return check(half) == checksum
    except terminal.Stop:
        return False


def _forget(path: Path) -> None:
    """Let the bytes be read from the disk next time, and not from memory, where the system allows it."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _digest_of(path: Path, rest: Callable[[], None]) -> str:
    with path.open("rb", buffering=0) as file:
        digest = hashlib.sha256()
        while piece := file.read(1024 * 1024):
            digest.update(piece)
            rest()
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def opened(path: Path, passphrase: str, identity: str | None) -> Iterator[Source]:
    """An archive to read, whatever it is encrypted to; a passphrase that nobody gave is asked for."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise terminal.Stop(f"Cannot read {path}: {error.strerror}.") from None
    with file:
        source = _unsealed(file, passphrase, identity)
        try:
            yield source
        except OSError as error:
            raise terminal.Stop(f"Cannot read {path}: {error.strerror or error}.") from None
        finally:
            if source is not file:
                source.close()


def _unsealed(file: IO[bytes], passphrase: str, identity: str | None) -> Any:
    first = file.readline(64)
    if not first.startswith((b"strongroom sealed", b"age-encryption.org")):
        file.seek(0)
        return file
    from strongroom import sealing

    try:
        if first == sealing.AGE_MAGIC:
            if identity is None:
                raise terminal.Stop("The archive is encrypted with age; name the file of your identity by --identity.")
            return sealing.AgeOpener(file, _text_of(identity))
        if first != sealing.MAGIC:
            raise BadArchive("The archive has a form that this release does not know, or its first line is damaged.")
        return sealing.Opener(file, passphrase or terminal.ask_secret("Passphrase of the archive", twice=False))
    except sealing.CannotSeal as error:
        raise terminal.Stop(str(error)) from None


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise terminal.Stop(f"Cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
