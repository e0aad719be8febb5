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
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strongroom.model import Keep
    from strongroom.server.observe import Log
    from strongroom.server.settings import Settings

_NAME = re.compile(r"strongroom-(\d{8}T\d{6})Z\.backup")
_FORM: Final = "%Y%m%dT%H%M%S"
_LOOK_SECONDS: Final = 60.0
_AFTER_A_FAILURE: Final = 600.0
_PASSED_ON: Final = ("DB_PATH", "DATABASE_URL", "BACKUP_DIR", "BACKUP_PASSPHRASE", "BACKUP_RECIPIENT")


class Kept(NamedTuple):
    """A backup in the folder."""

    made_at: int
    path: Path


def name_at(now: int) -> str:
    """The name of a backup that is begun now."""
    return f"strongroom-{time.strftime(_FORM, time.gmtime(now / 1000))}Z.backup"


def backups_in(folder: Path) -> list[Kept]:
    """The backups that the server has made there, oldest first. Other files are nobody's business."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is not None:
                with suppress(ValueError):
                    found.append(Kept(calendar.timegm(time.strptime(match[1], _FORM)) * 1000, path))
    return sorted(found)


def is_due(folder: Path, every: int, now: int) -> bool:
    """Whether it is time for the next one."""
    made = backups_in(folder)
    return not made or now - made[-1].made_at >= every - 999  # names count in seconds


def expired(made: Sequence[Kept], keep: Keep) -> list[Kept]:
    """Those that are not kept: of each of the last days, weeks and months that have one, the newest is."""
    wanted = set(made[-1:])
    for form, count in (("%Y-%m-%d", keep.days), ("%G-%V", keep.weeks), ("%Y-%m", keep.months)):
        newest = {time.strftime(form, time.gmtime(one.made_at / 1000)): one for one in made}  # the last of each counts
        wanted |= set(sorted(newest.values())[-count:] if count else [])
    return [one for one in made if one not in wanted]


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
        """Look now and then; make one when it is time."""
        every = self._settings.backup_every
        while True:
            pause = min(_LOOK_SECONDS, every / 2000)
            if is_due(self._folder, every, self._clock()) and not await self._one():
                pause = min(_AFTER_A_FAILURE, every / 1000)
            await asyncio.sleep(max(pause, 0.2))

    async def _one(self) -> bool:
        """Make one; whether that went well. What it says is a line in the log."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "strongroom", "backup", "--scheduled"),
            env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, complained = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        if process.returncode == 0:
            if said.strip():
                self._log.say("info", said.decode(errors="replace").strip())
            return True
        reason = complained.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("strongroom: ")
        self._on_failure()
        self._log.say("error", f"backup failed: {reason or f'code {process.returncode}'}")
        return False

    def _environment(self) -> dict[str, str]:
        """What the process needs to know; secrets go this way, for nobody else sees an environment."""
        settings = self._settings
        given = {name: str(getattr(settings, name.lower())) for name in _PASSED_ON}
        keep = settings.backup_keep
        given["BACKUP_EVERY"] = f"{settings.backup_every}ms"
        given["BACKUP_KEEP"] = f"{keep.days}d,{keep.weeks}w,{keep.months}m"
        return {**os.environ, **given}
