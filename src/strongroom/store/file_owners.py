"""Owners and modes of the files that are created: a command that root runs leaves none that the service cannot open.

What is new belongs to the owner of the folder that it lies in. The owner is only changed through a descriptor of a file
that was made here, so that a planted link under the name gains nothing. Root follows a link to a database only
where the owner of the link could have created a file.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.store.exceptions import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS: Final = 40  # on one path, as in Linux
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


def real_path(path: Path) -> Path:
    """Resolve a path, and refuse links that root must not follow.

    Root refuses a link that another user has made, unless the folder that it leads to is that user's: otherwise any
    user who may write to the folder of the service could have root replace any file.
    """
    real = Path(os.path.realpath(path))
    links = list(_links(path))
    if len(links) > _MOST_LINKS:
        raise CannotOpen(f"{path} is a link that leads nowhere; remove it, or name the file itself.")
    for link in links if is_root() else ():
        folder = next(folder for folder in real.parents if folder.exists())
        maker, owner = link.lstat().st_uid, folder.stat().st_uid
        if maker not in {0, owner}:
            raise CannotOpen(
                f"{link} is a link that user {maker} has made, to {folder}, which belongs to user {owner}; root does "
                f"not follow it. If it is right, name {real} itself, or run: chown -h root {link}"
            )
    return real


def _links(path: Path) -> Iterator[Path]:
    """The links that are met on a path; one more than is allowed if there is no end of them."""
    here = Path(path.absolute().anchor)
    waiting = list(reversed(path.absolute().parts[1:]))
    left = _MOST_LINKS + 1
    while waiting and left:
        part = waiting.pop()
        step = here.parent if part == ".." else here / part
        try:
            is_link = step.is_symlink()
        except PermissionError:
            return  # the caller that opens it reports it
        if not is_link:
            here = step
            continue
        left -= 1
        yield step
        target = step.readlink()
        if target.is_absolute():
            here = Path(target.anchor)
        waiting.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))


def is_same(descriptor: int, path: Path) -> bool:
    """Whether a path still is the open file, under this name only."""
    try:
        named, opened = path.lstat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino, named.st_nlink) == (opened.st_dev, opened.st_ino, 1)


def make_file(path: Path, like: Path | None = None) -> int:
    """Create and open a file that only its owner may read; its owner is that of `like`, or of the folder."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
    chown_like(descriptor, like or path.parent)
    return descriptor


def open_file(path: Path, like: Path | None = None) -> int:
    """Open a file that is made, as `make_file` does, if it is not there; its path has no links (see `real_path`)."""
    try:
        return make_file(path, like)
    except FileExistsError:
        return os.open(path, os.O_RDWR | _NOFOLLOW)


def open_lock(path: Path, like: Path | None = None) -> int:
    """Open a lock file, made if it is not there. A link, or a name of another file, is refused.

    Root writes to it too: through a planted link it would write to any file.
    """
    with suppress(FileExistsError):
        return make_file(path, like)
    try:
        descriptor = os.open(path, os.O_RDWR | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(error.errno, f"{path} is a link and no lock; remove it") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path} is no lock; remove it")
    return descriptor


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file that is there. A link, or what is no file and would keep one waiting, is refused."""
    try:
        descriptor = os.open(path, flags | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(error.errno, f"{path} is a link; remove it") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path} is no file")
    return descriptor


def make_folder(path: Path) -> None:
    """Make a folder for its owner only, and those above it, if they are not there."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700 if folder == path else 0o755, exist_ok=True)
        if is_root():
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW)
            try:
                chown_like(descriptor, folder.parent)
            finally:
                os.close(descriptor)
    if not path.is_dir():
        path.mkdir(mode=0o700)  # says what is in the way


def owner_of(path: Path) -> int | None:
    """The user that owns a file, by number; None if that cannot be seen."""
    try:
        return path.stat().st_uid
    except OSError:
        return None


def run_as_owner(path: Path) -> str:
    """The advice to a user who may not read a file: its owner, and how to run the command as that user.

    A file of root's that a group may read, as the settings in /etc, is the service's that has the name of the group.
    """
    for there in (path, *path.absolute().parents):
        with suppress(OSError):
            found = there.stat()
            break
    else:
        return "Run the command as the service's user: sudo -u strongroom strongroom …"
    owner = _user_name(found.st_uid)
    if hasattr(os, "geteuid") and found.st_uid == os.geteuid():
        return f"{there} is yours, and its mode forbids it: chmod u+rwX {there}"
    shared = found.st_uid == 0 and found.st_gid != 0 and found.st_mode & 0o040
    service = (_user_of_group(found.st_gid) if shared else None) or owner
    sudo = "sudo" if service == "root" else f"sudo -u {service}"
    return f"{there} belongs to {owner}: run the command as the service's user, {sudo} strongroom …"


def _user_name(number: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return f"#{number}"  # as sudo takes it


def _user_of_group(number: int) -> str | None:
    """The user that has the name of a group."""
    try:
        import grp
        import pwd

        return pwd.getpwnam(grp.getgrgid(number).gr_name).pw_name
    except (ImportError, KeyError):
        return None


def is_readable(path: Path) -> bool:
    """Whether this user may read a file that is there; of one that is not, there is nothing to say."""
    effective = os.access in os.supports_effective_ids
    return not path.exists() or os.access(path, os.R_OK, effective_ids=effective)


def is_root() -> bool:
    """Whether root runs this."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def chown_like(descriptor: int, like: Path) -> None:
    """Change the owner of an open file that was created here to that of another; best effort, the doctor checks it."""
    if is_root():
        with suppress(OSError):
            owner = like.stat()
            if owner.st_uid:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
