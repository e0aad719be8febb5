"""`strongroom backup` and `strongroom restore`."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from strongroom.cli import configuration, terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from strongroom.archive import Manifest
    from strongroom.server.settings import Settings

_WHERE = ("DB_PATH", "DATABASE_URL", "BACKUP_PASSPHRASE")
_NICENESS = 10  # those who serve come first; the lowest would starve on a machine that is never idle
_REST = 3  # times as long as the work before it
_LONGEST_REST = 1.0  # seconds
W = TypeVar("W", bound="_Watcher")
_BACKUP = """
Write one moment of the whole service into FILE, while the server goes on. The file is readable by you only, and is read
again before it gets its name; one that exists is never written over. Settings are read as for 'strongroom serve'.
BACKUP_PASSPHRASE or BACKUP_RECIPIENT, if one is set, encrypts it. With --verify, FILE is opened and counted instead.
"""
_RESTORE = """
Put the service that FILE holds in the place of the one that is there. Stop the server first, on all nodes. FILE is read
to its end before anything is touched. What was there is kept, and you are told where. Clients notice by a new epoch.
An archive of a SQLite file can be restored into PostgreSQL, and the other way round. If it is interrupted, run the same
command again.
"""
LEFT_OUT = 1  # the exit code of a backup that is made, but for rows that cannot be read
_CODES = (
    "Exit codes: 0 done; 1 done, but for rows that cannot be read, which are named; 2 wrong use, a bad setting, or a "
    "file or database that is refused."
)
_OPENS = "The passphrase that opens FILE; else it is asked for. The option names a file with it"


def add_backup(parser: argparse.ArgumentParser) -> None:
    """What `strongroom backup` takes."""
    parser.description = _BACKUP
    parser.add_argument("file", metavar="FILE", nargs="?", help="the archive to write, or to verify")
    parser.add_argument("--verify", action="store_true", help="only open FILE, and count what it holds")
    parser.add_argument(
        "--scheduled",
        action="store_true",
        help="what the server runs by itself: make one in BACKUP_DIR if it is time, and let go of the oldest",
    )
    _add_options(parser, *_WHERE, "BACKUP_RECIPIENT")
    parser.set_defaults(run=backup)


def add_restore(parser: argparse.ArgumentParser) -> None:
    """What `strongroom restore` takes."""
    parser.description = _RESTORE
    parser.add_argument("file", metavar="FILE", help="the archive to restore")
    _add_options(parser, *_WHERE, BACKUP_PASSPHRASE=_OPENS)
    parser.set_defaults(run=restore)


def _add_options(parser: argparse.ArgumentParser, *variables: str, **meanings: str) -> None:
    configuration.add_option(parser)
    for option in TABLE:
        if option.variable in variables:
            metavar = "FILE" if option.is_secret else "VALUE"
            meaning = meanings.get(option.variable, option.meaning)
            parser.add_argument(option.option, dest=option.variable, metavar=metavar, help=meaning)
    parser.add_argument(
        "--identity", metavar="FILE", help="the file of your age identity, which opens what was encrypted to it"
    )
    parser.epilog = _CODES


def backup(options: argparse.Namespace) -> int:
    """Make a backup, or look at one."""
    settings = configuration.settings_of(options)
    if options.scheduled:
        return _scheduled(settings)
    if options.file is None:
        raise terminal.Stop("Name the FILE that the backup is to be written to, or with --verify the one to look at.")
    path = Path(options.file)
    if options.verify:
        manifest, checksum = _verified(path, settings, options.identity)
        _show(manifest, checksum)
        return 0
    manifest, checksum, size, left_out = _make(path, settings)
    _show(manifest, checksum)
    terminal.say(f"wrote {path}: {size:,} bytes, read back and found whole.")
    return _told_of(left_out)


def _told_of(left_out: list[str]) -> int:
    """Say which rows a backup lacks; the exit code."""
    if not left_out:
        return 0
    terminal.complain(f"the backup is made, without {len(left_out):,} rows: {'; '.join(left_out)}")
    return LEFT_OUT


def _make(path: Path, settings: Settings, *, alone: bool = False) -> tuple[Manifest, str, int, list[str]]:
    """Write the file; what it says of itself, its checksum, its size, and what had to be left out."""
    from strongroom.cli import archives
    from strongroom.server import operate

    made: list[tuple[Manifest, str]] = []

    def fill(sink: Any) -> str:
        made.append(operate.backup(settings, sink, watcher, alone=alone))
        return made[0][1]

    def check(half: Path) -> str:
        return _verified(half, settings, None, watcher)[1]

    with suppress(AttributeError, OSError):  # no such call, or the system refuses it: the backup is made all the same
        os.nice(_NICENESS)
    key = archives.Key(settings.backup_passphrase, settings.backup_recipient)
    with _in_sentences(_Gentle()) as watcher:
        size = archives.write(path, key, fill, check, watcher.rest)
    return *made[0], size, watcher.sentences


def _verified(
    path: Path, settings: Settings, identity: str | None, watcher: _Watcher | None = None
) -> tuple[Manifest, str]:
    """Read an archive to its end; what it says of itself, and its checksum."""
    from strongroom.cli import archives
    from strongroom.store.backup import verify

    with (
        _in_sentences(watcher or _Watcher()) as watching,
        archives.opened(path, settings.backup_passphrase, identity) as source,
    ):
        reader = verify(source, watching)
    return reader.manifest, reader.checksum


def _scheduled(settings: Settings) -> int:
    """Make one in the folder, unless somebody else does or it is not time; then let go of those that are too old."""
    from strongroom.cli import archives
    from strongroom.server import schedule
    from strongroom.store.backup import Busy
    from strongroom.store.turns import FileLock

    folder = Path(settings.backup_dir)
    now = time.time_ns() // 1_000_000
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
    except OSError as error:
        raise terminal.Stop(f"Cannot write to BACKUP_DIR {folder}: {error.strerror}.") from None
    if not lock.alone() or not schedule.is_due(folder, settings.backup_every, now):
        return 0
    for half in folder.glob(f".*{archives.HALF}"):  # nobody else is writing here: whoever was is gone
        half.unlink(missing_ok=True)
    path = folder / schedule.name_at(now)
    try:
        manifest, _, size, left_out = _make(path, settings, alone=True)
    except Busy:
        return 0
    for old in schedule.expired(schedule.backups_in(folder), settings.backup_keep):
        old.path.unlink(missing_ok=True)
    seconds = (time.time_ns() // 1_000_000 - now) / 1000
    terminal.say(f"backup {path.name}: {manifest.rows:,} rows, {size:,} bytes, verified, in {seconds:.1f} s")
    return _told_of(left_out)


def restore(options: argparse.Namespace) -> int:
    """Restore a service."""
    from strongroom.archive import Reader
    from strongroom.cli import archives
    from strongroom.server import operate

    settings = configuration.settings_of(options)
    path = Path(options.file)
    passphrase = settings.backup_passphrase or _asked(path)
    settings = _with(settings, passphrase)
    _verified(path, settings, options.identity)
    with _in_sentences(_Watcher()) as watcher, archives.opened(path, passphrase, options.identity) as source:
        restored = operate.restore(settings, Reader(source), watcher)
    terminal.say(f"restored {restored.rows:,} rows from {path}, verified; the epoch is a new one.")
    if restored.kept is not None:
        terminal.say(f"what was there is kept: {restored.kept}")
    terminal.say(
        "Sessions, API keys and passwords are those of the backup: set a new JWT_SECRET unless you trust them all."
    )
    return 0


def _asked(path: Path) -> str:
    """The passphrase, asked for once although the archive is read twice."""
    try:
        with path.open("rb") as file:
            sealed = file.readline(64).startswith(b"strongroom sealed")
    except OSError as error:
        raise terminal.Stop(f"Cannot read {path}: {error.strerror}.") from None
    return terminal.ask_secret("Passphrase of the archive", twice=False) if sealed else ""


def _with(settings: Settings, passphrase: str) -> Settings:
    from msgspec.structs import replace

    return replace(settings, backup_passphrase=passphrase)


def _show(manifest: Manifest, checksum: str) -> None:
    rows = [("table", "rows"), *((table.name, f"{table.rows:,}") for table in manifest.tables)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, count in rows:
        terminal.say(f"{name:{widths[0]}}  {count:>{widths[1]}}")
    made = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(manifest.created_at / 1000))
    terminal.say(
        f"made {made} UTC from {manifest.engine} by strongroom {manifest.program}, schema {manifest.schema}, "
        f"epoch {manifest.epoch or 'none'}"
    )
    terminal.say(f"checksum {checksum}")


class _Watcher:
    """Shows at the terminal how it goes."""

    def __init__(self) -> None:
        self.bar = terminal.Bar()
        self.sentences: list[str] = []

    def moved(self, doing: str, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.show(doing, done, total)

    def said(self, sentence: str) -> None:
        """Say it, and draw the bar below."""
        self.bar.clear()
        terminal.say(sentence)
        self.sentences.append(sentence)

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        """Nothing to show: the counts are those of the archive."""


class _Gentle(_Watcher):
    """Works a quarter of the time: whoever is slow because others work too rests the longer."""

    def __init__(self) -> None:
        super().__init__()
        self._since = time.monotonic()

    def moved(self, doing: str, done: int, total: int) -> None:
        """Move the bar, and rest."""
        super().moved(doing, done, total)
        self.rest()

    def rest(self) -> None:
        """Leave the disk and the processor to others for a while."""
        time.sleep(min(_REST * (time.monotonic() - self._since), _LONGEST_REST))
        self._since = time.monotonic()


@contextmanager
def _in_sentences(watcher: W) -> Iterator[W]:
    """Whatever stops the work becomes one sentence."""
    from strongroom.archive import BadArchive
    from strongroom.store import CannotOpen
    from strongroom.store.sides import CannotCopy

    try:
        yield watcher
    except (CannotCopy, CannotOpen, BadArchive) as error:
        watcher.bar.clear()
        raise terminal.Stop(str(error)) from None
    except KeyboardInterrupt:
        watcher.bar.clear()
        raise terminal.Stop("Interrupted; nothing is lost. Run the same command again.") from None
    finally:
        watcher.bar.clear()
