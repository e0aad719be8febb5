"""Validation of backup settings at start: those with which no backup could ever be made or sent."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strongroom.server.settings import Settings

_LIBRARIES: Final = {"sftp": "asyncssh", "s3": "obstore"}  # by URL scheme, which is also the name of the extra


def refuse_impossible_backups(settings: Settings) -> None:
    """Raise BadSetting for the first setting that backups cannot work with."""
    from strongroom.server.settings import BadSetting

    for sentence in (*bad_recipient(settings), *_bad_destination(settings)):
        raise BadSetting(sentence)


def bad_recipient(settings: Settings) -> Iterator[str]:
    """Why BACKUP_RECIPIENT is invalid, if it is."""
    if not settings.backup_recipient:
        return
    from strongroom import sealing

    try:
        sealing.check_recipient(settings.backup_recipient)
    except sealing.CannotSeal as error:
        yield f"BACKUP_RECIPIENT cannot be used: {error}"


def _bad_destination(settings: Settings) -> Iterator[str]:
    """What is missing for BACKUP_TO. Whether the destination can be reached now does not matter."""
    kind, is_address, _ = settings.backup_to.partition("://")
    if not is_address:
        return
    if find_spec(_LIBRARIES[kind]) is None:
        yield f"BACKUP_TO needs a library that is not installed; run: pip install 'strongroom[{kind}]'"
    if kind == "sftp":
        for name, path in (
            ("BACKUP_SSH_KEY", settings.backup_ssh_key),
            ("BACKUP_SSH_HOSTS", settings.backup_ssh_hosts),
        ):
            try:
                if path:
                    Path(path).expanduser().open("rb").close()
            except OSError as error:
                yield f"Cannot read the file {path} that {name} names: {error.strerror}."
