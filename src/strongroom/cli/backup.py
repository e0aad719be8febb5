"""`strongroom backup` and `strongroom restore`."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import IO, TYPE_CHECKING, Any, TypeVar

from strongroom.cli import configuration, terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from strongroom.archive import Manifest
    from strongroom.server.settings import Settings

_WHERE = ("DB_PATH", "DATABASE_URL", "BACKUP_DIR", "BACKUP_PASSPHRASE", "BACKUP_SSH_KEY", "BACKUP_SSH_HOSTS")
_NICENESS = 10  # those who serve come first; the lowest would starve on a machine that is never idle
_REST = 3  # times as long as the work before it
_LONGEST_REST = 1.0  # seconds
W = TypeVar("W", bound="_Progress")
_BACKUP = """
Write one moment of the whole service into FILE, while the server goes on. The file is readable by you only, and is read
again before it gets its name; one that exists is never written over. With - as FILE the archive goes to standard output
and all else to standard error; check it where it arrives, with 'strongroom backup --verify -'. Settings are read as for
'strongroom serve'. BACKUP_PASSPHRASE or BACKUP_RECIPIENT, if one is set, encrypts it. With --verify, FILE is opened and
counted instead, or with --latest the newest backup in BACKUP_DIR.
"""
_RESTORE = """
Put the service that FILE holds in the place of the one that is there; with --latest that is the newest backup in
BACKUP_DIR. Stop the server first, on all nodes. FILE is read to its end before anything is touched; with - it is
standard input. What was there is kept, and you are told where. A database is only made where there is none if you say
--new. Clients notice by a new epoch. An archive of a SQLite file can be restored into PostgreSQL, and the other way
round. If it is interrupted, run the same command again.
"""
_AFTER = (
    "Sessions, API keys and passwords are those of the backup, also those that were ended, revoked or changed since: a "
    "new JWT_SECRET ends every session, and 'strongroom keys' revokes API keys."
)
_AFTER_NEW = (
    "Sessions, API keys and passwords are those of the backup: with the JWT_SECRET that the service had people stay "
    "logged in, with another one they log in again."
)
LEFT_OUT = 1  # the exit code of a backup that is made, but for rows that cannot be read
_DAMAGED = 1
_CODES = terminal.exit_codes(
    "done", "1 the archive is damaged, or it is made without rows that cannot be read, which are named"
)
_OPENS = "The passphrase that opens FILE; else it is asked for. The option names a file with it"


def add_backup(parser: argparse.ArgumentParser) -> None:
    """What `strongroom backup` takes."""
    parser.description = _BACKUP
    parser.add_argument("file", metavar="FILE", nargs="?", help="the archive to write, or to verify; - is a pipe")
    parser.add_argument("--verify", action="store_true", help="only open FILE, and count what it holds")
    parser.add_argument("--latest", action="store_true", help="with --verify: open the newest backup in BACKUP_DIR")
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
    parser.add_argument("file", metavar="FILE", nargs="?", help="the archive to restore; - is standard input")
    parser.add_argument("--latest", action="store_true", help="restore the newest backup in BACKUP_DIR")
    parser.add_argument("--new", action="store_true", help="make a database, where there is none")
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
    from strongroom.cli import archives

    settings = configuration.settings_of(options)
    if options.scheduled:
        return _scheduled(settings)
    if options.verify:
        _show(*_verified_by_name(_archive_named(options, settings), settings, options.identity))
        return 0
    if options.latest:
        raise terminal.Stop("--latest goes with --verify; to make a backup, name the FILE that it is to be written to.")
    if options.file is None:
        raise terminal.Stop("Name the FILE that the backup is to be written to, or with --verify the one to look at.")
    _refuse_an_empty_name(options.file)
    if options.file == archives.STREAM:
        manifest, checksum, size, left_out = _streamed(settings)
        _show(manifest, checksum)
        terminal.say(f"wrote {size:,} bytes to standard output; 'strongroom backup --verify -' checks what arrived.")
        return _told_of(left_out)
    path = Path(options.file)
    manifest, checksum, size, left_out = _make(path, settings)
    _show(manifest, checksum)
    terminal.say(f"wrote {path}: {size:,} bytes, read back and found whole.")
    return _told_of(left_out)


def _told_of(left_out: list[str]) -> int:
    """Say which rows a backup lacks; the exit code."""
    if not left_out:
        return 0
    from strongroom.store.findings import plural

    terminal.complain(f"the backup is made, without {plural(len(left_out), 'row')}: {'; '.join(left_out)}")
    return LEFT_OUT


def _make(path: Path, settings: Settings, *, exclusive: bool = False) -> tuple[Manifest, str, int, list[str]]:
    """Write the file; what it says of itself, its checksum, its size, and what had to be left out."""
    from strongroom.cli import archives

    def check(half: Path) -> str:
        with half.open("rb") as file:
            return _verified(file, str(half), settings, None, watcher)[1]

    with _in_sentences(_Gentle()) as watcher:
        made = _Made(settings, watcher, exclusive=exclusive)
        ours = bool(settings.backup_dir) and path.parent.resolve() == Path(settings.backup_dir).resolve()
        size = archives.write(path, _key_of(settings), made.fill, check, watcher.rest, for_service=ours)
    return *made.result, size, watcher.sentences


def _streamed(settings: Settings) -> tuple[Manifest, str, int, list[str]]:
    """Write to standard output."""
    from strongroom.cli import archives

    with _in_sentences(_Gentle()) as watcher:
        made = _Made(settings, watcher, exclusive=False)
        size = archives.stream(_key_of(settings), made.fill)
    return *made.result, size, watcher.sentences


def _key_of(settings: Settings) -> Any:
    from strongroom.cli import archives

    return archives.Key(settings.backup_passphrase, settings.backup_recipient)


class _Made:
    """Fills an archive, and keeps what is said of it."""

    def __init__(self, settings: Settings, watcher: _Gentle, *, exclusive: bool) -> None:
        self._settings = settings
        self._watcher = watcher
        self._exclusive = exclusive
        self.result: tuple[Manifest, str]

    def fill(self, sink: Any) -> str:
        """Write the archive; its checksum."""
        from strongroom.server.admin import operations

        with suppress(AttributeError, OSError):  # no such call, or the system refuses it: it is made all the same
            os.nice(_NICENESS)
        self.result = operations.backup(self._settings, sink, self._watcher, exclusive=self._exclusive)
        return self.result[1]


def _archive_named(options: argparse.Namespace, settings: Settings) -> str:
    """The name of the archive to read: the one that was given, or the newest backup in BACKUP_DIR, which is told."""
    if options.latest and options.file is not None:
        raise terminal.Stop("Name a FILE, or say --latest, and not both.")
    if options.latest:
        path = _latest(settings)
        terminal.say(f"the latest backup is {path}")
        return str(path)
    if options.file is None:
        raise terminal.Stop("Name the FILE with the archive, or say --latest for the newest backup in BACKUP_DIR.")
    _refuse_an_empty_name(options.file)
    name: str = options.file
    return name


def _refuse_an_empty_name(name: str) -> None:
    if not name:
        raise terminal.Stop("No FILE was named: the name is empty.")


def _latest(settings: Settings) -> Path:
    """The newest backup in BACKUP_DIR, but for those that are dated later than now."""
    from strongroom.server import backup_schedule

    if not settings.backup_dir:
        raise terminal.Stop("BACKUP_DIR is not set, so that no backup is the latest; set it, or name a FILE.")
    folder = Path(settings.backup_dir).absolute()
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise terminal.Stop(f"Cannot read BACKUP_DIR {folder}: {error.strerror}.") from None
    newest = backup_schedule.newest(folder, _clock())
    if newest is None:
        ahead = len(backup_schedule.list_backups(folder))
        but = f", but for {ahead:,} dated later than now, which 'strongroom doctor' names" if ahead else ""
        raise terminal.Stop(f"There is no backup in BACKUP_DIR {folder}{but}.")
    return newest.path


def _verified_by_name(name: str, settings: Settings, identity: str | None) -> tuple[Manifest, str]:
    """Read an archive to its end, once; from a pipe, as it comes."""
    from strongroom.cli import archives

    fetch = _fetcher(name, settings)
    opened = archives.opened_stream(name) if fetch is None else archives.opened_file(name, Path(gettempdir()), fetch)
    with opened as file:
        return _verified(file, name, settings, identity)


def _fetcher(name: str, settings: Settings) -> Callable[[IO[bytes]], None] | None:
    """What fetches an archive from where backups are sent to, if the name is an address."""
    if "://" not in name:
        return None
    import asyncio

    from strongroom.server import destinations

    where, _, file_name = name.rpartition("/")

    async def run(file: IO[bytes]) -> None:
        async with destinations.destination(where, settings, os.environ) as place:
            await place.get(file_name, file)

    def fetch(file: IO[bytes]) -> None:
        try:
            asyncio.run(run(file))
        except destinations.CannotSend as error:
            raise terminal.Stop(str(error)) from None

    return fetch


def _verified(
    file: IO[bytes], name: str, settings: Settings, identity: str | None, watcher: _Progress | None = None
) -> tuple[Manifest, str]:
    """Read an archive to its end; what it says of itself, and its checksum."""
    from strongroom.cli import archives
    from strongroom.store.maintenance.backup import verify

    with (
        _in_sentences(watcher or _Progress()) as watching,
        archives.opened(file, name, settings.backup_passphrase, identity) as source,
    ):
        reader = verify(source, watching)
    return reader.manifest, reader.checksum


def _scheduled(settings: Settings) -> int:
    """Make one in the folder, unless somebody else does or it is not time; then let go of those that are too old."""
    from strongroom.server import backup_schedule
    from strongroom.store.file_owners import make_folder
    from strongroom.store.locks import FileLock

    folder = Path(settings.backup_dir)
    now = _clock()
    try:
        make_folder(folder)
        lock = FileLock(folder / ".lock")
    except OSError as error:
        raise terminal.Stop(f"Cannot write to BACKUP_DIR {folder}: {error.strerror}.") from None
    if not lock.exclusive():
        return 0
    code = 0
    if backup_schedule.is_due(folder, settings.backup_every, now):
        left_out = _make_scheduled(folder, settings, now)
        if left_out is None:
            return 0
        code = _told_of(left_out)
    newest = backup_schedule.newest(folder, _clock())
    if settings.backup_to and newest is not None:
        _send(newest.path, settings)
    return code


def _make_scheduled(folder: Path, settings: Settings, now: int) -> list[str] | None:
    """Make one, and let go of those that are too old; what it lacks, or None if another node is making one."""
    from strongroom.server import backup_schedule
    from strongroom.store.maintenance.backup import Busy

    path = folder / backup_schedule.unused_name(folder, now)
    try:
        manifest, _, size, left_out = _make(path, settings, exclusive=True)
    except Busy:
        return None
    seconds = (_clock() - now) / 1000
    terminal.say(f"backup {path.name}: {manifest.rows:,} rows, {size:,} bytes, verified, in {seconds:.1f} s")
    try:
        for old in backup_schedule.expired(backup_schedule.list_backups(folder), settings.backup_keep, _clock(), path):
            old.path.unlink(missing_ok=True)
    except OSError as error:
        raise terminal.Stop(f"Cannot delete old backups in BACKUP_DIR {folder}: {error.strerror}.") from None
    return left_out


def _send(path: Path, settings: Settings) -> None:
    """Send a backup to where they go besides, unless it is there."""
    import asyncio

    from strongroom.server import destinations

    began = _clock()
    try:
        to = destinations.destination(settings.backup_to, settings, os.environ)
        sent = asyncio.run(destinations.send(to, path, settings.backup_keep, began))
    except destinations.CannotSend as error:
        raise terminal.Stop(f"{path.name} is made, and cannot be sent: {error}") from None
    if sent:
        terminal.say(f"backup {path.name}: sent to {to.label}, checked there, in {(_clock() - began) / 1000:.1f} s")


def _clock() -> int:
    return time.time_ns() // 1_000_000


def restore(options: argparse.Namespace) -> int:
    """Restore a service."""
    from strongroom.archive import Reader
    from strongroom.cli import archives
    from strongroom.server.admin import operations

    settings = configuration.settings_of(options)
    name = _archive_named(options, settings)
    with _in_sentences(_Progress()):
        near = operations.check_restore_target(settings, new=options.new)
    with archives.opened_file(name, near, _fetcher(name, settings)) as file:
        asks = not settings.backup_passphrase and archives.asks_for_a_passphrase(file)
        passphrase = archives.ask_passphrase(name) if asks else settings.backup_passphrase
        _verified(file, name, _with(settings, passphrase), options.identity)
        file.seek(0)
        with (
            _in_sentences(_Progress()) as watcher,
            archives.opened(file, name, passphrase, options.identity) as source,
        ):
            archive = Reader(source)
            restored = operations.restore(settings, archive, watcher, new=options.new)
    origin = "standard input" if name == archives.STREAM else name
    terminal.say(
        f"restored {restored.rows:,} rows, made {_made_at(archive.manifest)}, from {origin} into {restored.into}, "
        "verified; the epoch is a new one."
    )
    if restored.kept is not None:
        terminal.say(f"what was there is kept: {restored.kept}")
    if restored.warning is not None:
        terminal.say(f"warning: {restored.warning}")
    terminal.say(_AFTER_NEW if options.new else _AFTER)
    return 0


def _with(settings: Settings, passphrase: str) -> Settings:
    from msgspec.structs import replace

    return replace(settings, backup_passphrase=passphrase)


def _show(manifest: Manifest, checksum: str) -> None:
    rows = [("table", "rows"), *((table.name, f"{table.rows:,}") for table in manifest.tables)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, count in rows:
        terminal.say(f"{name:{widths[0]}}  {count:>{widths[1]}}")
    terminal.say(
        f"made {_made_at(manifest)} from {manifest.engine} by strongroom {manifest.program}, schema {manifest.schema}, "
        f"epoch {manifest.epoch or 'none'}"
    )
    terminal.say(f"checksum {checksum}")


def _made_at(manifest: Manifest) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.created_at / 1000))


class _Progress:
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


class _Gentle(_Progress):
    """Works a quarter of the time: whoever is slow because others work too rests the longer."""

    def __init__(self) -> None:
        super().__init__()
        self._since = time.monotonic()

    def said(self, sentence: str) -> None:
        """Keep it for the end."""
        self.sentences.append(sentence)

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
    from strongroom.store.maintenance.endpoint_protocol import CannotCopy

    try:
        yield watcher
    except (CannotCopy, CannotOpen) as error:
        watcher.bar.clear()
        raise terminal.Stop(str(error)) from None
    except BadArchive as error:
        watcher.bar.clear()
        raise terminal.Stop(str(error), _DAMAGED) from None
    except KeyboardInterrupt:
        watcher.bar.clear()
        raise terminal.Stop("Interrupted; nothing is lost. Run the same command again.") from None
    finally:
        watcher.bar.clear()
