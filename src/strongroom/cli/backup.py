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
_NICENESS = 10  # lower than the server; the lowest would starve on a busy machine
_REST = 3  # times the duration of the work before it
_LONGEST_REST = 1.0  # seconds
W = TypeVar("W", bound="terminal.Progress")
_BACKUP = """
Write a consistent snapshot of the whole service into FILE, while the server runs. The file is readable by you only, and
is verified before it gets its name; an existing file is never overwritten. With - as FILE the archive goes to standard
output and all messages to standard error; verify it where it arrives, with 'strongroom backup --verify -'. Settings are
read as for 'strongroom serve'. BACKUP_PASSPHRASE or BACKUP_RECIPIENT, if set, encrypts it. With --verify, FILE is
verified and its rows are counted instead, or with --latest those of the newest backup in BACKUP_DIR.
"""
_RESTORE = """
Replace the data of the service with the backup in FILE, or with --latest with the newest backup in BACKUP_DIR. Stop the
server first, on all nodes. FILE is verified completely before anything is changed; - is standard input. The previous
database is kept, and the command says where. With --new a database is created where there is none. Clients notice the
restore by a new epoch. A backup of SQLite can be restored into PostgreSQL, and the other way round. After an
interruption, run the same command again.
"""
_AFTER = (
    "Sessions, API keys and passwords are those of the backup, including those that were ended, revoked or changed "
    "since: a new JWT_SECRET ends every session, and 'strongroom keys' revokes API keys."
)
_AFTER_NEW = (
    "Sessions, API keys and passwords are those of the backup: with the JWT_SECRET that the service had, users stay "
    "logged in; with another one, they log in again."
)
ROWS_MISSING = 1  # exit code of a backup without rows that could not be read
_DAMAGED = 1
_EXIT_CODES = terminal.exit_codes(
    "done", "1 the archive is damaged, or the backup lacks rows that could not be read, which are named"
)
_OPENS = "The passphrase of FILE; else it is prompted for. The option names a file that holds it"


def add_backup(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom backup`."""
    parser.description = _BACKUP
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the archive to write or to verify; - is standard output or input"
    )
    parser.add_argument("--verify", action="store_true", help="only verify FILE, and count its rows")
    parser.add_argument("--latest", action="store_true", help="with --verify: the newest backup in BACKUP_DIR")
    parser.add_argument(
        "--scheduled",
        action="store_true",
        help="run by the server: write a backup to BACKUP_DIR if one is due, and delete expired ones",
    )
    _add_options(parser, *_WHERE, "BACKUP_RECIPIENT")
    parser.set_defaults(run=backup)


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom restore`."""
    parser.description = _RESTORE
    parser.add_argument("file", metavar="FILE", nargs="?", help="the archive to restore; - is standard input")
    parser.add_argument("--latest", action="store_true", help="restore the newest backup in BACKUP_DIR")
    parser.add_argument("--new", action="store_true", help="create a database where there is none")
    _add_options(parser, *_WHERE, BACKUP_PASSPHRASE=_OPENS)
    parser.set_defaults(run=restore)


def _add_options(parser: argparse.ArgumentParser, *variables: str, **meanings: str) -> None:
    configuration.add_option(parser)
    for option in TABLE:
        if option.variable in variables:
            metavar = "FILE" if option.is_secret else "VALUE"
            meaning = meanings.get(option.variable, option.meaning)
            parser.add_argument(option.option, dest=option.variable, metavar=metavar, help=meaning)
    parser.add_argument("--identity", metavar="FILE", help="the file of your age identity, to decrypt an archive")
    parser.epilog = _EXIT_CODES


def backup(options: argparse.Namespace) -> int:
    """Write a backup, or verify one."""
    from strongroom.cli import archives

    settings = configuration.settings_of(options)
    if options.scheduled:
        return _run_scheduled(settings)
    if options.verify:
        _show_manifest(*_verify_by_name(_archive_name(options, settings), settings, options.identity))
        return 0
    if options.latest:
        raise terminal.CommandFailed("--latest needs --verify. To write a backup, name its FILE.")
    if options.file is None:
        raise terminal.CommandFailed("Name the FILE to write the backup to, or with --verify the FILE to verify.")
    _refuse_an_empty_name(options.file)
    if options.file == archives.STREAM:
        manifest, checksum, size, left_out = _stream_backup(settings)
        _show_manifest(manifest, checksum)
        terminal.print_line(
            f"wrote {size:,} bytes to standard output; 'strongroom backup --verify -' verifies what arrived."
        )
        return _report_missing_rows(left_out)
    path = Path(options.file)
    manifest, checksum, size, left_out = _write_backup(path, settings)
    _show_manifest(manifest, checksum)
    terminal.print_line(f"wrote {path}: {size:,} bytes, verified.")
    return _report_missing_rows(left_out)


def _report_missing_rows(left_out: list[str]) -> int:
    """Print which rows a backup lacks; the exit code."""
    if not left_out:
        return 0
    from strongroom.store.findings import plural

    terminal.print_error(f"the backup was written without {plural(len(left_out), 'row')}: {'; '.join(left_out)}")
    return ROWS_MISSING


def _write_backup(path: Path, settings: Settings, *, exclusive: bool = False) -> tuple[Manifest, str, int, list[str]]:
    """Write a backup file; its manifest, checksum and size, and the rows that it lacks."""
    from strongroom.cli import archives

    def check(half: Path) -> str:
        with half.open("rb") as file:
            return _verify(file, str(half), settings, None, watcher)[1]

    with _command_errors(_ThrottledProgress()) as watcher:
        made = _ArchiveFiller(settings, watcher, exclusive=exclusive)
        ours = bool(settings.backup_dir) and path.parent.resolve() == Path(settings.backup_dir).resolve()
        size = archives.write(path, _key_of(settings), made.fill, check, watcher.rest, for_service=ours)
    return *made.result, size, watcher.sentences


def _stream_backup(settings: Settings) -> tuple[Manifest, str, int, list[str]]:
    """Write a backup to standard output; the same."""
    from strongroom.cli import archives

    with _command_errors(_ThrottledProgress()) as watcher:
        made = _ArchiveFiller(settings, watcher, exclusive=False)
        size = archives.stream(_key_of(settings), made.fill)
    return *made.result, size, watcher.sentences


def _key_of(settings: Settings) -> Any:
    from strongroom.cli import archives

    return archives.Key(settings.backup_passphrase, settings.backup_recipient)


class _ArchiveFiller:
    """Writes an archive into a sink, and keeps its manifest and checksum."""

    def __init__(self, settings: Settings, watcher: _ThrottledProgress, *, exclusive: bool) -> None:
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


def _archive_name(options: argparse.Namespace, settings: Settings) -> str:
    """The name of the archive to read: the one that was given, or the newest backup in BACKUP_DIR, which is printed."""
    if options.latest and options.file is not None:
        raise terminal.CommandFailed("Name a FILE, or say --latest, and not both.")
    if options.latest:
        path = _latest(settings)
        terminal.print_line(f"the latest backup is {path}")
        return str(path)
    if options.file is None:
        raise terminal.CommandFailed(
            "Name the FILE with the archive, or say --latest for the newest backup in BACKUP_DIR."
        )
    _refuse_an_empty_name(options.file)
    name: str = options.file
    return name


def _refuse_an_empty_name(name: str) -> None:
    if not name:
        raise terminal.CommandFailed("No FILE was named: the name is empty.")


def _latest(settings: Settings) -> Path:
    """The newest backup in BACKUP_DIR, but for those that are dated later than now."""
    from strongroom.server import backup_schedule

    if not settings.backup_dir:
        raise terminal.CommandFailed("BACKUP_DIR is not set, so there is no latest backup; set it, or name a FILE.")
    folder = Path(settings.backup_dir).absolute()
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot read BACKUP_DIR {folder}: {error.strerror}.") from None
    newest = backup_schedule.newest(folder, _clock())
    if newest is None:
        ahead = len(backup_schedule.list_backups(folder))
        but = f", except {ahead:,} dated in the future, which 'strongroom doctor' names" if ahead else ""
        raise terminal.CommandFailed(f"There is no backup in BACKUP_DIR {folder}{but}.")
    return newest.path


def _verify_by_name(name: str, settings: Settings, identity: str | None) -> tuple[Manifest, str]:
    """Verify an archive by its name, in one pass; a pipe is read as a stream."""
    from strongroom.cli import archives

    fetch = _fetcher(name, settings)
    opened = archives.opened_stream(name) if fetch is None else archives.opened_file(name, Path(gettempdir()), fetch)
    with opened as file:
        return _verify(file, name, settings, identity)


def _fetcher(name: str, settings: Settings) -> Callable[[IO[bytes]], None] | None:
    """The function that downloads an archive, if its name is the URL of a destination."""
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
            raise terminal.CommandFailed(str(error)) from None

    return fetch


def _verify(
    file: IO[bytes], name: str, settings: Settings, identity: str | None, watcher: terminal.Progress | None = None
) -> tuple[Manifest, str]:
    """Verify an archive; its manifest and checksum."""
    from strongroom.cli import archives
    from strongroom.store.maintenance.backup import verify

    with (
        _command_errors(watcher or terminal.Progress()) as watching,
        archives.opened(file, name, settings.backup_passphrase, identity) as source,
    ):
        reader = verify(source, watching)
    return reader.manifest, reader.checksum


def _run_scheduled(settings: Settings) -> int:
    """Write a scheduled backup if one is due and no other process writes it, delete expired ones, send the newest."""
    from strongroom.server import backup_schedule
    from strongroom.store.file_owners import make_folder
    from strongroom.store.locks import FileLock

    folder = Path(settings.backup_dir)
    now = _clock()
    try:
        make_folder(folder)
        lock = FileLock(folder / ".lock")
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot write to BACKUP_DIR {folder}: {error.strerror}.") from None
    if not lock.exclusive():
        return 0
    code = 0
    if backup_schedule.is_due(folder, settings.backup_every, now):
        left_out = _write_scheduled(folder, settings, now)
        if left_out is None:
            return 0
        code = _report_missing_rows(left_out)
    newest = backup_schedule.newest(folder, _clock())
    if settings.backup_to and newest is not None:
        _send(newest.path, settings)
    return code


def _write_scheduled(folder: Path, settings: Settings, now: int) -> list[str] | None:
    """Write a scheduled backup and delete expired ones; the rows that it lacks, or None if another node writes one."""
    from strongroom.server import backup_schedule
    from strongroom.store.maintenance.backup import Busy

    path = folder / backup_schedule.unused_name(folder, now)
    try:
        manifest, _, size, left_out = _write_backup(path, settings, exclusive=True)
    except Busy:
        return None
    seconds = (_clock() - now) / 1000
    terminal.print_line(f"backup {path.name}: {manifest.rows:,} rows, {size:,} bytes, verified, in {seconds:.1f} s")
    try:
        for old in backup_schedule.expired(backup_schedule.list_backups(folder), settings.backup_keep, _clock(), path):
            old.path.unlink(missing_ok=True)
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot delete old backups in BACKUP_DIR {folder}: {error.strerror}.") from None
    return left_out


def _send(path: Path, settings: Settings) -> None:
    """Send a backup to BACKUP_TO, unless it is there."""
    import asyncio

    from strongroom.server import destinations

    began = _clock()
    try:
        to = destinations.destination(settings.backup_to, settings, os.environ)
        sent = asyncio.run(destinations.send(to, path, settings.backup_keep, began))
    except destinations.CannotSend as error:
        raise terminal.CommandFailed(f"{path.name} was written, but cannot be sent: {error}") from None
    if sent:
        terminal.print_line(
            f"backup {path.name}: sent to {to.label}, verified there, in {(_clock() - began) / 1000:.1f} s"
        )


def _clock() -> int:
    return time.time_ns() // 1_000_000


def restore(options: argparse.Namespace) -> int:
    """Restore a service."""
    from strongroom.archive import Reader
    from strongroom.cli import archives
    from strongroom.server.admin import operations

    settings = configuration.settings_of(options)
    name = _archive_name(options, settings)
    with _command_errors(terminal.Progress()):
        near = operations.check_restore_target(settings, new=options.new)
    with archives.opened_file(name, near, _fetcher(name, settings)) as file:
        asks = not settings.backup_passphrase and archives.needs_passphrase(file)
        passphrase = archives.ask_passphrase(name) if asks else settings.backup_passphrase
        _verify(file, name, _with(settings, passphrase), options.identity)
        file.seek(0)
        with (
            _command_errors(terminal.Progress()) as watcher,
            archives.opened(file, name, passphrase, options.identity) as source,
        ):
            archive = Reader(source)
            restored = operations.restore(settings, archive, watcher, new=options.new)
    origin = "standard input" if name == archives.STREAM else name
    terminal.print_line(
        f"restored {restored.rows:,} rows from {origin}, created {_created_at(archive.manifest)}, into "
        f"{restored.into}, verified; the database has a new epoch."
    )
    if restored.kept is not None:
        terminal.print_line(f"the previous database is kept: {restored.kept}")
    if restored.warning is not None:
        terminal.print_line(f"warning: {restored.warning}")
    terminal.print_line(_AFTER_NEW if options.new else _AFTER)
    return 0


def _with(settings: Settings, passphrase: str) -> Settings:
    from msgspec.structs import replace

    return replace(settings, backup_passphrase=passphrase)


def _show_manifest(manifest: Manifest, checksum: str) -> None:
    terminal.table(("table", "rows"), ((table.name, f"{table.rows:,}") for table in manifest.tables), right={1})
    terminal.print_line(
        f"created {_created_at(manifest)} from {manifest.engine} by strongroom {manifest.program}, "
        f"schema {manifest.schema}, epoch {manifest.epoch or 'none'}"
    )
    terminal.print_line(f"checksum {checksum}")


def _created_at(manifest: Manifest) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.created_at / 1000))


class _ThrottledProgress(terminal.Progress):
    """Shows progress, and pauses for three times the duration of each step, to leave resources to the server."""

    def __init__(self) -> None:
        super().__init__()
        self._since = time.monotonic()

    def said(self, sentence: str) -> None:
        """Keep it for the end."""
        self.sentences.append(sentence)

    def moved(self, doing: str, done: int, total: int) -> None:
        """Move the bar, and pause."""
        super().moved(doing, done, total)
        self.rest()

    def rest(self) -> None:
        """Pause in proportion to the work since the last pause."""
        time.sleep(min(_REST * (time.monotonic() - self._since), _LONGEST_REST))
        self._since = time.monotonic()


@contextmanager
def _command_errors(watcher: W) -> Iterator[W]:
    """Turn expected errors into a failure of the command with one sentence."""
    from strongroom.archive import BadArchive
    from strongroom.store import CannotOpen
    from strongroom.store.maintenance.endpoint_protocol import CannotCopy

    try:
        yield watcher
    except (CannotCopy, CannotOpen) as error:
        watcher.bar.clear()
        raise terminal.CommandFailed(str(error)) from None
    except BadArchive as error:
        watcher.bar.clear()
        raise terminal.CommandFailed(str(error), _DAMAGED) from None
    except KeyboardInterrupt:
        watcher.bar.clear()
        raise terminal.CommandFailed("Interrupted; nothing is lost. Run the same command again.") from None
    finally:
        watcher.bar.clear()
