"""Where backups go besides BACKUP_DIR: a folder, SFTP, or storage that speaks S3.

A backup is sent after it was made and verified here. It gets its name there only when it has arrived whole. The same
rule as here says which are kept there, and nothing is deleted that does not have the name of a backup.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from strongroom.server.backup_schedule import Kept, expired, is_misdated, time_of
from strongroom.server.destinations.protocol import HALF, CannotSend, Destination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strongroom.server.settings import BackupRetention, Settings

__all__ = ["CannotSend", "Destination", "destination", "kept_of", "newest", "send"]

_UNFINISHED: Final = re.compile(rf"\.(strongroom-\w+\.backup){re.escape(HALF)}")
_A_DAY: Final = 86_400_000


def destination(where: str, settings: Settings, variables: Mapping[str, str]) -> Destination:
    """What a value of BACKUP_TO names. The keys of S3 are variables: AWS_ACCESS_KEY_ID and so on."""
    if where.startswith("sftp://"):
        from strongroom.server.destinations.sftp import Sftp

        return Sftp(urlsplit(where), settings.backup_ssh_key, settings.backup_ssh_hosts)
    if where.startswith("s3://"):
        from strongroom.server.destinations.s3 import S3

        return S3(urlsplit(where), variables)
    from strongroom.server.destinations.folder import Folder

    return Folder(Path(where).expanduser())


async def send(to: Destination, path: Path, keep: BackupRetention, now: int) -> bool:
    """Send a backup, unless it is there already, and delete those that are not kept; whether it was sent."""
    async with to:
        there = await to.sizes()
        size = path.stat().st_size  # noqa: ASYNC240 - nothing else runs in this process
        missing = path.name not in there
        if not missing and (there[path.name] != size or not await to.has(path)):
            raise CannotSend(
                f"{to.named} has another file of the name {path.name}, or a damaged copy of it; give each service its "
                "own place, or move that file away, and this one is sent."
            )
        if missing:
            await to.put(path)
        made = [*kept_of(there), *([Kept(time_of(path.name) or now, Path(path.name))] if missing else [])]
        for old in expired(made, keep, now, Path(path.name)):
            await to.delete(old.path.name)
        for name in there:
            if _is_abandoned(name, now):
                await to.delete(name)
    return missing


async def newest(where: Destination, now: int) -> Kept | None:
    """The newest backup that lies there."""
    async with where:
        made = kept_of(await where.sizes())
    return max((one for one in made if not is_misdated(one, now)), default=None)


def kept_of(there: Mapping[str, int]) -> list[Kept]:
    """The backups among files."""
    times = {name: time_of(name) for name, size in there.items() if size}
    return sorted(Kept(made_at, Path(name)) for name, made_at in times.items() if made_at is not None)


def _is_abandoned(name: str, now: int) -> bool:
    """Whether it was left by somebody who stopped on the way, more than a day ago."""
    match = _UNFINISHED.fullmatch(name)
    begun = None if match is None else time_of(match[1])
    return begun is not None and begun < now - _A_DAY
