"""Files with secrets or rules: written so that nobody else can read them, read only if nobody else can write them."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST: Final = 1 << 20  # bytes of a file with rules
_MOST_LINKS: Final = 40  # on the way to a file, as in the kernel
_CAREFULLY: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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
    try:
        descriptor = os.open(trusted_path(path, last_link=False), os.O_RDONLY | _CAREFULLY)
    except OSError as error:
        raise FileRefused(f"{path} cannot be read: {error.strerror}.") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(f"{path} is not a file.")
        require_trusted(path, found)
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise FileRefused(f"{path} is too long: more than {_MOST:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileRefused(f"{path} is not text in UTF-8.") from None


def trusted_path(path: str | os.PathLike[str], *, last_link: bool) -> str:
    """The path of a file without links, if nobody but this user and root can put another file there.

    Every folder and every link on the way belongs to one of them, and no other user can write such a folder; one with
    the sticky bit, such as /tmp, they may write, because they cannot replace what is not theirs in it. OSError where
    there is no such file. `last_link` allows that the path itself names a link.
    """
    waiting = _parts(os.path.abspath(path))  # noqa: PTH100 - links are looked at below, one by one
    place, links = "/", 0
    require_trusted(place, os.lstat(place))
    while waiting:
        name = waiting.pop()
        if name == "..":
            place = os.path.dirname(place)  # noqa: PTH120
            continue
        here = os.path.join(place, name)  # noqa: PTH118
        found = os.lstat(here)
        require_owner(here, found)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if not waiting and not last_link:
                raise FileRefused(f"{path} cannot be read: it is a symbolic link; name the file itself.")
            target = os.readlink(here)  # noqa: PTH115
            place = "/" if target.startswith("/") else place
            waiting += _parts(target)
            continue
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX:
            require_trusted(here, found)
        place = here
    return place


def _parts(path: str) -> list[str]:
    """The names of a path, the first one last."""
    return [name for name in reversed(path.split("/")) if name not in {"", "."}]


def require_trusted(path: str | os.PathLike[str], found: os.stat_result) -> None:
    """Refuse what another user owns or can write."""
    require_owner(path, found)
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise FileRefused(f"Others can write {path} (mode {mode:o}); run: chmod go-w {path}")


def require_owner(path: str | os.PathLike[str], found: os.stat_result) -> None:
    """Refuse what another user owns."""
    if found.st_uid not in {0, os.geteuid()}:
        raise FileRefused(f"{path} belongs to another user; its owner must be you or root.")
