"""The files that archives lie in: written whole or not at all, readable by their owner only, encrypted or not."""

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
_OTHERS: Final = {  # what is easily taken for an archive, by how it begins
    b"SQLite format 3\0": "a database of SQLite, which DB_PATH names",
    b"\x1f\x8b": "something compressed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "something compressed with zstd: unpack it first",
    b"\xfd7zXZ\0": "something compressed with xz: unpack it first",
    b"BZh": "something compressed with bzip2: unpack it first",
    b"PK\x03\x04": "a ZIP file: unpack it first",
    b"-----BEGIN AGE ENCRYPTED FILE-----": "an armoured file of age: decrypt it first, with age --decrypt",
    b"{": "JSON, perhaps the export of one account, which clients import",
}
SYNC_BYTES: Final = 8 * 1024 * 1024  # written back this often, so that nobody else's commit waits behind all of it


class Key(NamedTuple):
    """What a backup is encrypted to; nothing is an open one."""

    passphrase: str = ""
    recipient: str = ""


class _Out:
    """A new file that is written back to the disk as it grows, and whose bytes are summed up."""

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
    """Have a new file filled under another name, read it again, give it its name; its size.

    `fill` gives the checksum of the archive that it wrote, and `check` the one of an archive that it reads. What is
    read here is read in pieces, with a rest after each. `for_service`: the service must be able to read it.
    """
    if path.exists():
        raise terminal.Stop(f"{path} exists already; name another file, for nothing is ever written over.")
    half = path.with_name(f".{path.name}.{os.getpid()}{locks.HALF}")
    out = None
    locks.abandoned(path.parent, remove=True)
    try:
        out = _Out(half, for_service=for_service)
        sink = _sealed(out, key)
        checksum = fill(sink)
        if sink is not out:
            sink.close()
        written = out.close()
        _forget(half)
        if not (_digest_of(half, rest) == written if key.recipient else _reads_as(checksum, check, half)):
            raise terminal.Stop(f"{path} does not read back as it was written; the disk may be failing.")
        _give_name(half, path)
        database_file.sync_folder(path.parent)
    except FileExistsError:
        raise terminal.Stop(f"{path} was made by somebody else meanwhile; nothing is ever written over.") from None
    except OSError as error:
        raise terminal.Stop(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        if out is not None:
            out.abandon()
            half.unlink(missing_ok=True)
    return out.size


def _give_name(half: Path, path: Path) -> None:
    """Give a file its name, unless there is one of that name by now."""
    try:
        path.hardlink_to(half)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        half.rename(path)


def _sealed(out: Sink, key: Key) -> Any:
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


def stream(key: Key, fill: Callable[[Any], str]) -> int:
    """Write an archive to standard output; its size. Whatever is said from now on goes to standard error.

    If it fails on the way the end is not written, and whoever reads it does not take it for whole.
    """
    if sys.stdout.isatty():
        raise terminal.Stop("An archive does not belong on a terminal; lead it into a file or to another program.")
    out = _Stream()
    try:
        sink = _sealed(out, key)
        fill(sink)
        if sink is not out:
            sink.close()
        out.close()
    except BrokenPipeError:
        raise terminal.Stop("Whoever read the archive has gone; it is not whole.", terminal.NOBODY_READS) from None
    except OSError as error:
        raise terminal.Stop(f"Cannot write the archive to standard output: {error.strerror}.") from None
    return out.size


class _Stream:
    """Standard output, kept for the archive alone and without a buffer: what was not written is not written later."""

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
    """The file of an archive, which can be read again from its beginning.

    What comes through a pipe or is fetched from elsewhere is kept in a file without a name in the folder `near`, which
    is gone when the command ends, however it ends.
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
    """The file of an archive, or standard input, to be read once."""
    if name == STREAM:
        if sys.stdin.isatty():
            raise terminal.Stop("Standard input is a terminal; lead an archive into it, or name a file.")
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below
    except PermissionError as error:
        advice = file_owners.run_as_owner(Path(name))
        raise terminal.Stop(f"Cannot read {name}: {error.strerror}. {advice}") from None
    except OSError as error:
        raise terminal.Stop(f"Cannot read {name}: {error.strerror}.") from None
    with file:
        yield file


def _spool(near: Path) -> Any:
    try:
        return TemporaryFile(dir=near, prefix="strongroom-")
    except OSError as error:
        raise terminal.Stop(f"Cannot keep the archive in {near} while it is read: {error.strerror}.") from None


def _copy(file: IO[bytes], spool: IO[bytes], near: Path) -> None:
    while piece := file.read(1024 * 1024):
        try:
            spool.write(piece)
            spool.flush()
        except OSError as error:
            raise terminal.Stop(f"Cannot keep the archive in {near} while it is read: {error.strerror}.") from None
    spool.seek(0)


def asks_for_a_passphrase(file: IO[bytes]) -> bool:
    """Whether the archive in a file is encrypted to a passphrase; the file is at its beginning afterwards."""
    first = file.readline(64)
    file.seek(0)
    return first.startswith(b"strongroom sealed")


@contextmanager
def opened(file: IO[bytes], name: str, passphrase: str, identity: str | None) -> Iterator[Source]:
    """The archive that a file holds, whatever it is encrypted to; a passphrase that nobody gave is asked for."""
    source = _unsealed(file, name, passphrase, identity)
    try:
        yield source
    except OSError as error:
        raise terminal.Stop(f"Cannot read {name}: {error.strerror or error}.") from None
    finally:
        if isinstance(source, _Closes):
            source.close()


@runtime_checkable
class _Closes(Protocol):
    def close(self) -> None:
        """Read no further."""


class _Replayed:
    """A file of which the first line was read already, to see what it is."""

    def __init__(self, first: bytes, file: IO[bytes]) -> None:
        self._first = first
        self._file = file

    def read(self, size: int) -> bytes:
        if not self._first:
            return self._file.read(size)
        taken, self._first = self._first[:size], self._first[size:]
        return taken + (self._file.read(size - len(taken)) if len(taken) < size else b"")


def _unsealed(file: IO[bytes], name: str, passphrase: str, identity: str | None) -> Any:
    first = file.readline(64)
    if not first:
        where = "Standard input" if name == STREAM else name
        raise BadArchive(
            f"{where} is empty. Whatever should have written an archive there has failed; take another one."
        )
    if not first.startswith((b"strongroom", b"age-encryption.org")):
        what = next((f"; it looks like {kind}" for start, kind in _OTHERS.items() if first.startswith(start)), "")
        raise BadArchive(f"{_named(name)} is not an archive of strongroom{what}.")
    if not first.startswith((b"strongroom sealed", b"age-encryption.org")):
        return _Replayed(first, file)
    from strongroom import sealing

    try:
        if first == sealing.AGE_MAGIC:
            if identity is None:
                raise terminal.Stop("The archive is encrypted with age; name the file of your identity by --identity.")
            return sealing.AgeOpener(file, _text_of(identity))
        if first != sealing.MAGIC:
            raise BadArchive("The archive has a form that this release does not know, or its first line is damaged.")
        return sealing.Opener(file, passphrase or ask_passphrase(name))
    except sealing.CannotSeal as error:
        raise terminal.Stop(str(error)) from None


def ask_passphrase(name: str) -> str:
    """The passphrase of an archive, from whoever is at the terminal; not from a pipe that the archive comes by."""
    given = terminal.ask_secret("Passphrase of the archive", twice=False, piped=name != STREAM)
    if not given:
        pipe = "" if name == STREAM else "lead a line with it into standard input, "
        raise terminal.Stop(
            f"{_named(name)} is encrypted, and no passphrase was given: set BACKUP_PASSPHRASE, name a file with it by "
            f"--backup-passphrase-file or BACKUP_PASSPHRASE_FILE, {pipe}or type it at a terminal."
        )
    return given


def _named(name: str) -> str:
    """What a sentence calls an archive."""
    return "The archive on standard input" if name == STREAM else name


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise terminal.Stop(f"Cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
