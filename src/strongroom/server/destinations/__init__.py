"""Destinations of backups (BACKUP_TO): a folder, an SFTP server, or S3 storage.

A backup is sent after it was made and verified here. It gets its final name there only after it arrived completely.
The same retention applies there, and only files with the name of a backup are deleted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from strongroom.server.backup_schedule import BackupFile, expired, is_from_the_future, timestamp_of
from strongroom.server.destinations.protocol import PARTIAL_SUFFIX, CannotSend, Destination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strongroom.server.settings import BackupRetention, Settings

__all__ = ["CannotSend", "Destination", "backups_among", "destination", "newest", "send"]

_UNFINISHED: Final = re.compile(rf"\.(strongroom-\w+\.backup){re.escape(PARTIAL_SUFFIX)}")
_A_DAY: Final = 86_400_000


def destination(where: str, settings: Settings, variables: Mapping[str, str]) -> Destination:
    """The destination of a value of BACKUP_TO. The credentials of S3 are variables: AWS_ACCESS_KEY_ID and so on."""
    if where.startswith("sftp://"):
        from strongroom.server.destinations.sftp import Sftp

        return Sftp(urlsplit(where), settings.backup_ssh_key, settings.backup_ssh_hosts)
    if where.startswith("s3://"):
        from strongroom.server.destinations.s3 import S3

        return S3(urlsplit(where), variables)
    from strongroom.server.destinations.folder import Folder

    return Folder(Path(where).expanduser())


async def send(to: Destination, path: Path, keep: BackupRetention, now: int) -> bool:
    """Send a backup unless it is there, and delete expired ones; whether it was sent."""
    async with to:
        there = await to.sizes()
        size = path.stat().st_size  # noqa: ASYNC240 - nothing else runs in this process
        missing = path.name not in there
        if not missing and (there[path.name] != size or not await to.has(path)):
            raise CannotSend(
                f"{to.label} has a different file named {path.name}, or a damaged copy of it. Give each service a "
                "destination of its own, or move that file away; then this backup is sent."
            )
        if missing:
            await to.put(path)
        made = [
            *backups_among(there),
            *([BackupFile(timestamp_of(path.name) or now, Path(path.name))] if missing else []),
        ]
        for old in expired(made, keep, now, Path(path.name)):
            await to.delete(old.path.name)
        for name in there:
            if _is_abandoned(name, now):
                await to.delete(name)
    return missing


async def newest(where: Destination, now: int) -> BackupFile | None:
    """The newest backup at a destination."""
    async with where:
        made = backups_among(await where.sizes())
    return max((one for one in made if not is_from_the_future(one, now)), default=None)


def backups_among(there: Mapping[str, int]) -> list[BackupFile]:
    """The backups among files, oldest first."""
    times = {name: timestamp_of(name) for name, size in there.items() if size}
    return sorted(BackupFile(made_at, Path(name)) for name, made_at in times.items() if made_at is not None)


def _is_abandoned(name: str, now: int) -> bool:
    """Whether it is a partial upload that was started more than a day ago."""
    match = _UNFINISHED.fullmatch(name)
    begun = None if match is None else timestamp_of(match[1])
    return begun is not None and begun < now - _A_DAY
