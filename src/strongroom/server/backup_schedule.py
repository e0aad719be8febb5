"""Backups that the server makes by itself: when one is due, and which are kept.

The backup is another process, of low priority: it shares nothing with the one that serves. Whoever finds that one is
due starts it; it takes a lock, looks once more, and leaves if somebody else was first. So it does not matter how many
processes and nodes there are.
"""

from __future__ import annotations

import asyncio
import calendar
import os
import re
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.options import SETTINGS_FILE, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strongroom.server.monitoring.log import Log
    from strongroom.server.settings import BackupRetention, Settings

_NAME = re.compile(r"strongroom-(\d{8}T\d{6})Z\.backup")
_FORM: Final = "%Y%m%dT%H%M%S"
_SKEW: Final = 600_000  # milliseconds by which a name may be ahead of this clock: nodes that share a folder differ
_LOOK_SECONDS: Final = 60.0
_FIRST_RETRY: Final = 60.0  # seconds; each further one waits twice as long
_LAST_RETRY: Final = 3600.0
_PASSED_ON: Final = (
    "DB_PATH",
    "DATABASE_URL",
    "BACKUP_DIR",
    "BACKUP_PASSPHRASE",
    "BACKUP_RECIPIENT",
    "BACKUP_TO",
    "BACKUP_SSH_KEY",
    "BACKUP_SSH_HOSTS",
)


class Kept(NamedTuple):
    """A backup that is there."""

    made_at: int
    path: Path


def name_at(now: int) -> str:
    """The name of a backup that is begun now."""
    return f"strongroom-{time.strftime(_FORM, time.gmtime(now / 1000))}Z.backup"


def free_name(folder: Path, now: int) -> str:
    """The name of a backup that is begun now, or of the next second that has none."""
    while os.path.lexists(folder / name_at(now)):
        now += 1000
    return name_at(now)


def time_of(name: str) -> int | None:
    """When the backup of this name was begun; None if it is no name of a backup."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return calendar.timegm(time.strptime(match[1], _FORM)) * 1000
    except ValueError:
        return None


def backups_in(folder: Path) -> list[Kept]:
    """The backups that the server has made there, oldest first: regular files that are not empty.

    Whatever else lies there, a link or a folder of such a name included, is nobody's business.
    """
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            made_at = time_of(entry.name)
            if made_at is not None:
                with suppress(OSError):  # it was deleted meanwhile
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found.append(Kept(made_at, Path(entry.path)))
    return sorted(found)


def is_misdated(one: Kept, now: int) -> bool:
    """Whether it is named later than now: the clock was wrong then, or it is now. It counts as no backup."""
    return one.made_at > now + _SKEW


def newest(folder: Path, now: int) -> Kept | None:
    """The newest of those that can be believed."""
    return max((one for one in backups_in(folder) if not is_misdated(one, now)), default=None)


def is_due(folder: Path, every: int, now: int) -> bool:
    """Whether it is time for the next one."""
    made = [one.made_at for one in backups_in(folder) if one.made_at <= now + min(_SKEW, every)]
    return not made or now - made[-1] >= every - 999  # names count in seconds


def expired(made: Sequence[Kept], keep: BackupRetention, now: int, fresh: Path | None = None) -> list[Kept]:
    """Those that are not kept: of each of the last hours, days, … that have one, the newest is.

    The one that was just made (`fresh`) always stays. One that is named later than now neither goes nor takes a place.
    """
    counted = sorted(one for one in made if not is_misdated(one, now))
    wanted = {*counted[-max(keep.last, 1) :], *(one for one in counted if one.path == fresh)}
    for form, count in (
        ("%Y-%m-%d %H", keep.hours),
        ("%Y-%m-%d", keep.days),
        ("%G-%V", keep.weeks),
        ("%Y-%m", keep.months),
        ("%Y", keep.years),
    ):
        of_each = {time.strftime(form, time.gmtime(one.made_at / 1000)): one for one in counted}  # the last one counts
        wanted |= set(sorted(of_each.values())[-count:] if count else [])
    return [one for one in counted if one not in wanted]


class Schedule:
    """Makes backups for as long as the server runs."""

    def __init__(
        self, settings: Settings, clock: Callable[[], int], log: Log, on_failure: Callable[[], None] = lambda: None
    ) -> None:
        self._on_failure = on_failure
        self._settings = settings
        self._clock = clock
        self._log = log
        self._folder = Path(settings.backup_dir)

    async def run(self) -> None:
        """Look now and then; make one when it is time. After a failure try again, later each time."""
        every = self._settings.backup_every
        failures = 0
        unsent = bool(self._settings.backup_to)  # perhaps: whether the newest was sent before the start is not known
        while True:
            pause = min(_LOOK_SECONDS, every / 2000)
            if failures or unsent or is_due(self._folder, every, self._clock()):
                failures = 0 if await self._one() else failures + 1
                unsent = False
                if failures:
                    pause = min(_FIRST_RETRY * 2 ** (failures - 1), _LAST_RETRY, every / 1000)
            await asyncio.sleep(max(pause, 0.2))

    async def _one(self) -> bool:
        """Make one; whether that went well. What it says is a line in the log."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "strongroom", "backup", "--scheduled"),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:  # no memory, too many processes
            return self._failed(f"it cannot be started: {error.strerror}")
        try:
            said, complained = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        for line in said.decode(errors="replace").splitlines():
            self._log.say("info", line)
        if process.returncode == 0:
            return True
        reason = complained.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("strongroom: ")
        if process.returncode == 1 and b"verified" in said:  # made, but for what cannot be read
            self._log.say("error", reason)
            return True
        return self._failed(reason or f"code {process.returncode}")

    def _failed(self, reason: str) -> bool:
        """Tell that an attempt failed. Every one that fails comes by here, once."""
        self._on_failure()
        hint = "'strongroom doctor' says what is wrong; 'strongroom backup FILE' tries it by hand."
        self._log.say("error", f"backup failed: {reason.rstrip('.')}. {hint}")
        return False

    def _environment(self) -> dict[str, str]:
        """What the process needs to know; secrets go this way, for nobody else sees an environment."""
        settings = self._settings
        given = {name: str(getattr(settings, name.lower())) for name in _PASSED_ON}
        keep = settings.backup_keep
        given["BACKUP_EVERY"] = f"{settings.backup_every}ms"
        given["BACKUP_KEEP"] = f"{keep.last}last,{keep.hours}h,{keep.days}d,{keep.weeks}w,{keep.months}m,{keep.years}y"
        given[SETTINGS_FILE] = os.devnull  # it is all said here: no file may say otherwise, or be in the way
        settings_names = {name for option in TABLE for name in (option.variable, option.file_variable)}
        return {name: value for name, value in os.environ.items() if name not in settings_names} | given
