"""Files of this device that only their owner can read, that programs share, and that are replaced in one step."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from strongroom.client.format.primitives import SecretBytes
from strongroom.client.net.effects import Sleep
from strongroom.errors import Invalid

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects

T = TypeVar("T")
_TURN: Final = 60.0  # seconds to wait for another program that uses a file
_PAUSE: Final = 0.02
_MOST: Final = 1 << 30  # bytes of a file
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class FileLock:
    """A lock that programs share. The operating system releases it when its process ends, however that happens."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> FileLock | None:
        """The lock of a file, or None if it is taken."""
        lock = path.with_name(f"{path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o600)
        except OSError as error:
            raise Invalid({"path": f"cannot be locked: {lock.name}: {_said(error)}"}) from None
        if _lock(descriptor):
            return cls(descriptor)
        os.close(descriptor)
        return None

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)


def _lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def in_turn(path: Path, steps: Effects[T]) -> Effects[T]:
    """Run an operation while no other program uses the file."""
    lock = FileLock.take(path)
    waited = 0.0
    while lock is None:
        if waited > _TURN:
            raise Invalid({"path": f"is in use by another program for too long: {path.name}"})
        yield Sleep(_PAUSE)
        waited += _PAUSE
        lock = FileLock.take(path)
    try:
        return (yield from steps)
    finally:
        lock.release()


def read(path: Path, advice: str) -> bytes | None:
    """The bytes of a file, if only its owner can read it; None if there is none. `advice`: what to do otherwise."""
    name = path.name
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_FOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        link = error.errno == errno.ELOOP
        said = "is a symbolic link; name the file itself" if link else f"cannot be opened: {_said(error)}"
        raise Invalid({"path": f"{said}: {name}"}) from None
    try:
        _check_owner(os.fstat(descriptor), name, advice)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return SecretBytes(file.read(_MOST))
    finally:
        os.close(descriptor)


def _check_owner(found: os.stat_result, name: str, advice: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Invalid({"path": f"is a folder or another thing that is not a file: {name}"})
    if os.name == "nt":
        return  # permissions are those of the folder there
    if found.st_uid != os.geteuid():
        raise Invalid({"path": f"belongs to another user of this machine: {name}"})
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        raise Invalid({"path": f"can be read by others (mode {mode}): {name}. {advice}"})


def check_folder(path: Path) -> None:
    """Refuse a folder in which others could replace the file."""
    try:
        found = path.parent.stat()
    except OSError as error:
        raise Invalid({"path": f"is in a folder that cannot be used: {path.parent}: {_said(error)}"}) from None
    if os.name == "nt":
        return
    shared = stat.S_IMODE(found.st_mode) & 0o022 and not found.st_mode & stat.S_ISVTX
    if shared or found.st_uid not in {0, os.geteuid()}:
        raise Invalid({"path": f"is in a folder in which others can replace it: {path.parent}; use one of your own"})


def replace(path: Path, data: bytes) -> None:
    """Replace a file in one step. It is on disk when this returns."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)  # of a process that was killed
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise Invalid({"path": f"cannot be written: {path.name}: {_said(error)}"}) from None


def _sync_folder(folder: Path) -> None:
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _said(error: OSError) -> str:
    return error.strerror or "unknown error"
