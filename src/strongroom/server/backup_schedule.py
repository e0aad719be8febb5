"""Scheduled backups: when one is due, and which are kept (retention).

A backup runs in another process, of low priority. Every server process starts one when it is due; that process takes a
lock, checks again, and exits if another was first. So any number of processes and nodes can share a folder.
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

_NAME = re.compile(r"strongroom-([0-9]{8}T[0-9]{6})Z\.backup")
_TIME_FORMAT: Final = "%Y%m%dT%H%M%S"
_SKEW: Final = 600_000  # milliseconds by which a name may be ahead of this clock: the clocks of nodes differ
_POLL_SECONDS: Final = 60.0
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


class BackupFile(NamedTuple):
    """The file of a backup, and the time in its name."""

    made_at: int
    path: Path


def backup_name(now: int) -> str:
    """The name of a backup that starts now."""
    return f"strongroom-{time.strftime(_TIME_FORMAT, time.gmtime(now / 1000))}Z.backup"


def unused_name(folder: Path, now: int) -> str:
    """The first name that is not taken yet, from now on."""
    while os.path.lexists(folder / backup_name(now)):
        now += 1000
    return backup_name(now)


def timestamp_of(name: str) -> int | None:
    """The time in the name of a backup; None if it is not the name of a backup."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return calendar.timegm(time.strptime(match[1], _TIME_FORMAT)) * 1000
    except ValueError:
        return None


def list_backups(folder: Path) -> list[BackupFile]:
    """List the scheduled backups in a folder, oldest first: regular files that are not empty.

    Anything else, links and folders of such a name included, is ignored.
    """
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            made_at = timestamp_of(entry.name)
            if made_at is not None:
                with suppress(OSError):  # it was deleted meanwhile
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found.append(BackupFile(made_at, Path(entry.path)))
    return sorted(found)


def is_from_the_future(one: BackupFile, now: int) -> bool:
    """Whether its name is later than now: a clock was or is wrong. It does not count as a backup."""
    return one.made_at > now + _SKEW


def newest(folder: Path, now: int) -> BackupFile | None:
    """The newest backup in a folder, without those from the future."""
    return max((one for one in list_backups(folder) if not is_from_the_future(one, now)), default=None)


def is_due(folder: Path, every: int, now: int) -> bool:
    """Whether the next backup is due."""
    made = [one.made_at for one in list_backups(folder) if one.made_at <= now + min(_SKEW, every)]
    return not made or now - made[-1] >= every - 999  # names count in seconds


def expired(made: Sequence[BackupFile], keep: BackupRetention, now: int, new: Path | None = None) -> list[BackupFile]:
    """The backups to delete. Kept is the newest of each of the last hours, days, … that have one.

    The new backup (`new`) is always kept. One from the future is neither deleted nor counted.
    """
    counted = sorted(one for one in made if not is_from_the_future(one, now))
    kept = {*counted[-max(keep.last, 1) :], *(one for one in counted if one.path == new)}
    for form, count in (
        ("%Y-%m-%d %H", keep.hours),
        ("%Y-%m-%d", keep.days),
        ("%G-%V", keep.weeks),
        ("%Y-%m", keep.months),
        ("%Y", keep.years),
    ):
        of_each = {time.strftime(form, time.gmtime(one.made_at / 1000)): one for one in counted}  # the newest of each
        kept |= set(sorted(of_each.values())[-count:] if count else [])
    return [one for one in counted if one not in kept]


class BackupSchedule:
    """Runs backups at an interval, for as long as the server runs."""

    def __init__(
        self, settings: Settings, clock: Callable[[], int], log: Log, on_failure: Callable[[], None] = lambda: None
    ) -> None:
        self._on_failure = on_failure
        self._settings = settings
        self._clock = clock
        self._log = log
        self._folder = Path(settings.backup_dir)

    async def run(self) -> None:
        """Run a backup whenever one is due. Failures are retried with exponential backoff."""
        every = self._settings.backup_every
        failures = 0
        unsent = bool(self._settings.backup_to)  # unknown at the start: send the newest if it is missing there
        while True:
            delay = min(_POLL_SECONDS, every / 2000)
            if failures or unsent or is_due(self._folder, every, self._clock()):
                failures = 0 if await self._run_backup() else failures + 1
                unsent = False
                if failures:
                    delay = min(_FIRST_RETRY * 2 ** (failures - 1), _LAST_RETRY, every / 1000)
            await asyncio.sleep(max(delay, 0.2))

    async def _run_backup(self) -> bool:
        """Run one backup and log its output; whether it succeeded."""
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
            return self._report_failure(f"it cannot be started: {error.strerror}")
        try:
            output, errors = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        for line in output.decode(errors="replace").splitlines():
            self._log.say("info", line)
        if process.returncode == 0:
            return True
        reason = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("strongroom: ")
        if process.returncode == 1 and b"verified" in output:  # made, without the rows that cannot be read
            self._log.say("error", reason)
            return True
        return self._report_failure(reason or f"exit code {process.returncode}")

    def _report_failure(self, reason: str) -> bool:
        """Log and count a failed attempt."""
        self._on_failure()
        hint = "'strongroom doctor' says what is wrong; 'strongroom backup FILE' makes one by hand."
        self._log.say("error", f"backup failed: {reason.rstrip('.')}. {hint}")
        return False

    def _environment(self) -> dict[str, str]:
        """The environment of the backup process; secrets are passed in it, where other users cannot read them."""
        settings = self._settings
        given = {name: str(getattr(settings, name.lower())) for name in _PASSED_ON}
        keep = settings.backup_keep
        given["BACKUP_EVERY"] = f"{settings.backup_every}ms"
        given["BACKUP_KEEP"] = f"{keep.last}last,{keep.hours}h,{keep.days}d,{keep.weeks}w,{keep.months}m,{keep.years}y"
        given[SETTINGS_FILE] = os.devnull  # all settings are here: no settings file may override them
        settings_names = {name for option in TABLE for name in (option.variable, option.file_variable)}
        return {name: value for name, value in os.environ.items() if name not in settings_names} | given
