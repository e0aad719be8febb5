"""Files with secrets or rules: written so that nobody else can read them, read only if nobody else can write them."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST: Final = 1 << 20  # bytes of a file with rules


class FileRefused(Exception):  # noqa: N818 - an outcome that is told to a person
    """A file that cannot be used; the message says why."""


def write_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file with mode 0600. It appears under its name when it is whole, and replaces what was there."""
    target = Path(os.path.abspath(path))  # noqa: PTH100 - without following links
    with suppress(OSError):
        found = target.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise FileRefused(f"{path} is a symbolic link; name the file itself.")
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(f"{path} is there, and is not a file.")
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}")
    try:
        descriptor = _nameless(target.parent)
        named = descriptor is None
        if descriptor is None:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, 0o600)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
                if not named:
                    _give_name(descriptor, part)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FileRefused(f"{path} cannot be written: {error.strerror}.") from None


def _nameless(folder: Path) -> int | None:
    """A file without a name, so that nothing is left if this process is killed; None where there are none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _give_name(descriptor: int, path: Path) -> None:
    """Give a name to a file that has none."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # with a folder's descriptor, Python follows the link in /proc; without one it would make a link to it
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def read_trusted(path: str | os.PathLike[str]) -> str:
    """The text of a file that only this user, or root, can have written: no link, and no folder open to others."""
    target = Path(path)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = "it is a symbolic link; name the file itself" if target.is_symlink() else error.strerror
        raise FileRefused(f"{path} cannot be read: {reason}.") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(f"{path} is not a file.")
        require_trusted(path, found)
        require_trusted_folder(target)
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise FileRefused(f"{path} is too long: more than {_MOST:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileRefused(f"{path} is not text in UTF-8.") from None


def require_trusted_folder(path: Path) -> None:
    """Refuse a file if others could put another one in its place."""
    above = Path(os.path.abspath(path)).parent  # noqa: PTH100 - without following links
    folder = above.stat()
    if not folder.st_mode & stat.S_ISVTX:  # in such a folder, only a file's owner can replace it
        require_trusted(above, folder)


def require_trusted(path: str | os.PathLike[str], found: os.stat_result) -> None:
    """Refuse what another user owns or can write."""
    if found.st_uid not in {0, os.geteuid()}:
        raise FileRefused(f"{path} belongs to another user; its owner must be you or root.")
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise FileRefused(f"Others can write {path} (mode {mode:o}); run: chmod go-w {path}")
