"""Archive files: written atomically, readable by their owner only, optionally encrypted."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from strongroom.archive import BadArchive
from strongroom.cli import terminal
from strongroom.store import file_owners, locks
from strongroom.store.sqlite import database_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from strongroom.archive import Sink, Source

STREAM: Final = "-"  # standard output, or standard input
_LOOKALIKES: Final = {  # files mistaken for an archive, by their first bytes
    b"SQLite format 3\0": "a SQLite database, which DB_PATH names",
    b"\x1f\x8b": "a file compressed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "a file compressed with zstd: unpack it first",
    b"\xfd7zXZ\0": "a file compressed with xz: unpack it first",
    b"BZh": "a file compressed with bzip2: unpack it first",
    b"PK\x03\x04": "a ZIP file: unpack it first",
    b"-----BEGIN AGE ENCRYPTED FILE-----": "an armoured file of age: decrypt it first, with age --decrypt",
    b"{": "JSON, perhaps the export of one account, which clients import",
}
SYNC_BYTES: Final = 8 * 1024 * 1024  # between two syncs, so that commits of the server do not wait for the whole file


class Key(NamedTuple):
    """What a backup is encrypted with; nothing leaves it unencrypted."""

    passphrase: str = ""
    recipient: str = ""


class _ArchiveFile:
    """A new file that is synced to the disk as it grows, with a running checksum."""

    def __init__(self, path: Path, *, for_service: bool) -> None:
        descriptor = locks.create_unfinished(path, for_service=for_service)
        self._held = os.dup(descriptor)  # the lock is held until the file is renamed or removed
        self._file = os.fdopen(descriptor, "wb", buffering=64 * 1024)
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
        if hasattr(os, "posix_fadvise"):  # leave the page cache to the server
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._since = 0

    def close(self) -> str:
        """Sync and close the file; the checksum of its content."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._digest.hexdigest()

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def write(
    path: Path,
    key: Key,
    fill: Callable[[Any], str],
    check: Callable[[Path], str],
    rest: Callable[[], None],
    *,
    for_service: bool = False,
) -> int:
    """Write an archive under a temporary name, verify it, and rename it; its size.

    `fill` writes the archive and returns its checksum; `check` reads one and returns its checksum. `rest` is called
    after each piece that is read here. `for_service`: the service must be able to read the file.
    """
    if path.exists():
        raise terminal.CommandFailed(f"{path} exists already; name another file: nothing is overwritten.")
    half = path.with_name(f".{path.name}.{os.getpid()}{locks.HALF}")
    out = None
    locks.abandoned(path.parent, remove=True)
    try:
        out = _ArchiveFile(half, for_service=for_service)
        sink = _encrypting(out, key)
        checksum = fill(sink)
        if sink is not out:
            sink.close()
        written = out.close()
        _drop_cache(half)
        if not (_digest_of(half, rest) == written if key.recipient else _reads_back(checksum, check, half)):
            raise terminal.CommandFailed(f"{path} does not read back as it was written; the disk may be failing.")
        _give_name(half, path)
        database_file.sync_folder(path.parent)
    except FileExistsError:
        raise terminal.CommandFailed(
            f"{path} was created by another process meanwhile; nothing was overwritten. Name another file."
        ) from None
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        if out is not None:
            out.abandon()
            half.unlink(missing_ok=True)
    return out.size


def _give_name(half: Path, path: Path) -> None:
    """Rename a file, unless the name is taken by now."""
    try:
        path.hardlink_to(half)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        half.rename(path)


def _encrypting(out: Sink, key: Key) -> Any:
    if not (key.passphrase or key.recipient):
        return out
    from strongroom import sealing

    try:
        if key.recipient:
            return sealing.AgeSealer(out, [key.recipient])
        return sealing.Sealer(out, key.passphrase)
    except sealing.CannotSeal as error:
        raise terminal.CommandFailed(str(error)) from None


def _reads_back(checksum: str, check: Callable[[Path], str], half: Path) -> bool:
    try:
        return check(half) == checksum
    except terminal.CommandFailed:
        return False


def _drop_cache(path: Path) -> None:
    """Drop the file from the page cache, so that it is read from the disk next time."""
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


def stream(key: Key, fill: Callable[[Any], str]) -> int:
    """Write an archive to standard output; its size. All messages go to standard error from now on.

    After a failure the end of the archive is missing, so that the reader does not take it for complete.
    """
    if sys.stdout.isatty():
        raise terminal.CommandFailed(
            "Standard output is a terminal; redirect the archive into a file or another program."
        )
    out = _StandardOutput()
    try:
        sink = _encrypting(out, key)
        fill(sink)
        if sink is not out:
            sink.close()
        out.close()
    except BrokenPipeError:
        raise terminal.CommandFailed(
            "The reader of the archive closed its end; the archive is incomplete.", terminal.OUTPUT_CLOSED
        ) from None
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot write the archive to standard output: {error.strerror}.") from None
    return out.size


class _StandardOutput:
    """Standard output, reserved for the archive and unbuffered: nothing is written after a failure."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self.size = 0

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def opened_file(name: str, near: Path, fetch: Callable[[IO[bytes]], None] | None = None) -> Iterator[IO[bytes]]:
    """Open the file of an archive so that it is seekable.

    What comes through a pipe or is fetched from a destination is spooled into an unnamed file in the folder `near`,
    which disappears when the command ends, however it ends.
    """
    with ExitStack() as stack:
        if fetch is not None:
            file = stack.enter_context(_spool(near))
            fetch(file)
            file.seek(0)
            yield file
            return
        file = stack.enter_context(opened_stream(name))
        if not file.seekable():
            spool = stack.enter_context(_spool(near))
            _copy(file, spool, near)
            file = spool
        yield file


@contextmanager
def opened_stream(name: str) -> Iterator[IO[bytes]]:
    """Open the file of an archive, or standard input, to be read once."""
    if name == STREAM:
        if sys.stdin.isatty():
            raise terminal.CommandFailed("Standard input is a terminal; redirect an archive into it, or name a file.")
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below
    except PermissionError as error:
        advice = file_owners.run_as_owner(Path(name))
        raise terminal.CommandFailed(f"Cannot read {name}: {error.strerror}. {advice}") from None
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot read {name}: {error.strerror}.") from None
    with file:
        yield file


def _spool(near: Path) -> Any:
    try:
        return TemporaryFile(dir=near, prefix="strongroom-")
    except OSError as error:
        raise terminal.CommandFailed(
            f"Cannot store the archive in {near} while it is read: {error.strerror}."
        ) from None


def _copy(file: IO[bytes], spool: IO[bytes], near: Path) -> None:
    while piece := file.read(1024 * 1024):
        try:
            spool.write(piece)
            spool.flush()
        except OSError as error:
            raise terminal.CommandFailed(
                f"Cannot store the archive in {near} while it is read: {error.strerror}."
            ) from None
    spool.seek(0)


def needs_passphrase(file: IO[bytes]) -> bool:
    """Whether the archive is encrypted with a passphrase; rewinds the file."""
    first = file.readline(64)
    file.seek(0)
    return first.startswith(b"strongroom sealed")


@contextmanager
def opened(file: IO[bytes], name: str, passphrase: str, identity: str | None) -> Iterator[Source]:
    """The decrypted archive in a file; prompts for a passphrase that is needed and was not given."""
    source = _decrypting(file, name, passphrase, identity)
    try:
        yield source
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot read {name}: {error.strerror or error}.") from None
    finally:
        if isinstance(source, _Closeable):
            source.close()


@runtime_checkable
class _Closeable(Protocol):
    def close(self) -> None:
        """Close it."""


class _RewoundFile:
    """A file whose first line was read already, and is read again."""

    def __init__(self, first: bytes, file: IO[bytes]) -> None:
        self._first = first
        self._file = file

    def read(self, size: int) -> bytes:
        if not self._first:
            return self._file.read(size)
        taken, self._first = self._first[:size], self._first[size:]
        return taken + (self._file.read(size - len(taken)) if len(taken) < size else b"")


def _decrypting(file: IO[bytes], name: str, passphrase: str, identity: str | None) -> Any:
    first = file.readline(64)
    if not first:
        where = "Standard input" if name == STREAM else name
        raise BadArchive(
            f"{where} is empty: the program that should have written the archive has failed. Use another archive."
        )
    if not first.startswith((b"strongroom", b"age-encryption.org")):
        what = next((f"; it looks like {kind}" for start, kind in _LOOKALIKES.items() if first.startswith(start)), "")
        raise BadArchive(f"{_label(name)} is not a strongroom archive{what}.")
    if not first.startswith((b"strongroom sealed", b"age-encryption.org")):
        return _RewoundFile(first, file)
    from strongroom import sealing

    try:
        if first == sealing.AGE_MAGIC:
            if identity is None:
                raise terminal.CommandFailed(
                    "The archive is encrypted with age; name the file of your identity with --identity."
                )
            return sealing.AgeOpener(file, terminal.read_text(identity))
        if first != sealing.MAGIC:
            raise BadArchive("The archive has a format that this release does not know, or its first line is damaged.")
        return sealing.Opener(file, passphrase or ask_passphrase(name))
    except sealing.CannotSeal as error:
        raise terminal.CommandFailed(str(error)) from None


def ask_passphrase(name: str) -> str:
    """Prompt for the passphrase of an archive; not from standard input if the archive comes from there."""
    given = terminal.ask_secret("Passphrase of the archive", twice=False, piped=name != STREAM)
    if not given:
        pipe = "" if name == STREAM else "pipe a line with it into standard input, "
        raise terminal.CommandFailed(
            f"{_label(name)} is encrypted, and no passphrase was given: set BACKUP_PASSPHRASE, name a file with it in "
            f"--backup-passphrase-file or BACKUP_PASSPHRASE_FILE, {pipe}or type it at a terminal."
        )
    return given


def _label(name: str) -> str:
    """The name of an archive in messages."""
    return "The archive on standard input" if name == STREAM else name
