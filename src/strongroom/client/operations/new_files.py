"""New files on this device."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from strongroom.errors import Invalid

_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BEGINNING: Final = 4_096  # bytes
# How the files begin that an export of the same kind may replace.
ACCOUNT: Final = re.compile(rb'\{"kind":"header","format":"strongroom-export",')
PLAINTEXT: Final = re.compile(rb'\{"vault":"(?:[^"\\]|\\.)*","uid":"[^"]*"[,}]')


@contextmanager
def new_file(path: str | os.PathLike[str], kind: re.Pattern[bytes]) -> Iterator[Callable[[bytes], object]]:
    """An atomic write: a file that only its owner can read, renamed to its name when it is complete.

    A file that is there already is replaced only if it is empty, or begins as `kind` says.
    """
    target = Path(path)
    _require_replaceable(target, kind)
    part = target.with_name(f"{target.name}.part")
    try:
        made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_FOLLOW, 0o600)
    except OSError as error:
        raise Invalid({"path": f"cannot be written: {target.name}: {error.strerror or 'unknown error'}"}) from None
    try:
        with os.fdopen(made, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        _require_replaceable(target, kind)
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise


def _require_replaceable(target: Path, kind: re.Pattern[bytes]) -> None:
    """Refuse a path where something else lies than an earlier file of this kind."""
    try:
        found = os.open(target, os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return
    except OSError as error:
        link = error.errno == errno.ELOOP
        said = "is a symbolic link; name the file itself" if link else f"cannot be read: {error.strerror}"
        raise Invalid({"path": f"{said}: {target.name}"}) from None
    try:
        beginning = os.read(found, _BEGINNING) if stat.S_ISREG(os.fstat(found).st_mode) else None
    finally:
        os.close(found)
    if beginning is None:
        raise Invalid({"path": f"is not a file: {target.name}"})
    if beginning and not kind.match(beginning):
        raise Invalid({"path": f"is not an export of this kind: {target.name} is another file. It was not changed"})
