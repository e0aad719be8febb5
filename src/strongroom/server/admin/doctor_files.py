"""What is wrong with the files of a server: room, owners, modes, backups, how many may be open. Nothing is changed."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.server import backup_schedule
from strongroom.store import locks
from strongroom.store.findings import fault, ok, plural, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from strongroom.server.settings import Settings
    from strongroom.store.findings import Finding

_MIB: Final = 1024 * 1024
_FLOOR: Final = 64 * _MIB  # less than this on the disk is as good as nothing
_OWN_FILES: Final = 100  # that a server opens besides its connections
_BESIDE: Final = ("-wal", "-shm", "-lock")
_UNIT: Final = "under a unit of systemd it also needs ReadWritePaths=, see docs/operating.md"


def room(settings: Settings) -> Iterator[Finding]:
    """Space where something grows: the database if it is a file, and the backups."""
    for name, place in (("database", settings.db_path), ("backups", settings.backup_dir)):
        if not place or (name == "database" and settings.database_url):
            continue
        path = Path(place).expanduser()
        there = _nearest(path)
        try:
            free = shutil.disk_usage(there).free
            size = path.stat().st_size if path.is_file() else 0
        except OSError as error:
            yield fault("disk", f"The disk of the {name} cannot be looked at: {error.strerror}.", f"see {there}")
            continue
        says = f"{free // _MIB:,} MiB are free where the {name} lie" + ("s." if name == "database" else ".")
        if free < _FLOOR:
            yield fault("disk", says, "make room now: writes are refused when it is full")
        elif free < max(size, 16 * _FLOOR):
            yield warning("disk", says, "make room: a restore needs as much again as the database has")
        else:
            yield ok("disk", says)


def backups(settings: Settings, now: int) -> Iterator[Finding]:
    """Whether the server can make them, how old the newest is, and whether one disk takes all with it."""
    if not settings.backup_dir:
        yield warning(
            "backup", "The server makes no backups.", "set BACKUP_DIR, or run 'strongroom backup FILE' regularly"
        )
        return
    folder = Path(settings.backup_dir)
    yield _obstacle(settings, folder) or _age(settings, folder, now)
    for one in backup_schedule.backups_in(folder):
        if backup_schedule.is_misdated(one, now):
            yield warning(
                "backup",
                f"{one.path} is named later than now: this clock was wrong when it was made, or is wrong now. "
                "It counts as no backup, and is never deleted.",
                "set the clock (timedatectl) if it is wrong; else rename the file to when it was made, or delete it",
            )
    for half in _halves(settings):
        yield warning("backup", f"{half} is a backup that was not finished: whoever wrote it is gone.", f"rm {half}")
    places = [folder, *([Path(settings.backup_to).expanduser()] if settings.backup_to else [])]
    if not settings.database_url and "://" not in settings.backup_to:
        yield _one_disk(Path(settings.db_path).expanduser(), places)


def _obstacle(settings: Settings, folder: Path) -> Finding | None:
    """Why no backup can be written there, as far as that can be seen from outside."""
    there = _nearest(folder)
    if not there.is_dir():
        return fault("backup", f"BACKUP_DIR {folder} cannot be a folder: {there} is a file.", "name another folder")
    user = _service_user(settings)
    if _may_write(there, user):
        return None
    if there == folder:
        return fault(
            "backup",
            f"BACKUP_DIR {folder} cannot be written to by {_name_of(user)}, so every backup fails.",
            f"chown {_name_of(user)} {_shell(folder)}, and chmod u+rwx; {_UNIT}",
        )
    says = f"BACKUP_DIR {folder} is not there, and cannot be made by {_name_of(user)}"
    make = f"as root: {_make_folder(folder, user)}"
    if not settings.database_url and not Path(settings.db_path).expanduser().parent.exists():
        return warning("backup", f"{says}.", f"systemd makes it at the first start; without systemd, {make}")
    return fault("backup", f"{says}, so every backup fails.", f"{make}; {_UNIT}")


def _age(settings: Settings, folder: Path, now: int) -> Finding:
    good = [one for one in backup_schedule.backups_in(folder) if not backup_schedule.is_misdated(one, now)]
    if not good:
        return warning("backup", f"{folder} holds no backup yet.", f"start the server, and look again; {_UNIT}")
    age = max(0, now - good[-1].made_at)
    says = f"The {'only backup' if len(good) == 1 else f'newest of {len(good):,} backups'} is {elapsed(age)} old."
    if age > 2 * settings.backup_every:
        return fault("backup", says, f"see the server's log for 'backup failed', and that it runs; {_UNIT}")
    return ok("backup", says)


def elapsed(milliseconds: int) -> str:
    """How long that is, in the unit in which it is a small number."""
    seconds = milliseconds // 1000
    if seconds < 60:
        return plural(seconds, "second")
    if seconds < 7_200:
        return plural(seconds // 60, "minute")
    if seconds < 172_800:
        return plural(seconds // 3_600, "hour")
    return plural(seconds // 86_400, "day")


def _halves(settings: Settings) -> list[Path]:
    folders = {Path(settings.backup_dir).absolute()}
    if not settings.database_url:
        folders.add(Path(settings.db_path).expanduser().absolute().parent)
    return [half for folder in sorted(folders) for half in locks.abandoned(folder)]


def _one_disk(database: Path, places: Sequence[Path]) -> Finding:
    """Whether all places with backups lie on the disk of the database."""
    try:
        disk = _nearest(database).stat().st_dev
        same = all(_nearest(place).stat().st_dev == disk for place in places)
    except OSError:
        same = False
    if same:
        return warning(
            "backup disk",
            "The backups lie on the disk of the database: one failure takes both.",
            "put BACKUP_DIR or BACKUP_TO on another disk, or send the backups to another machine with BACKUP_TO",
        )
    return ok("backup disk", "The backups lie on another disk than the database.")


class _Wanted(NamedTuple):
    """A file or folder, who may own it, and which rights nobody else may have."""

    path: Path
    mask: int
    what: str
    mend: str
    root: bool = False  # whether it may be root's, for the service only reads it
    named: bool = True  # by the operator, so that its owner and mode may be changed


def permissions(
    settings: Settings, settings_file: Path | None, personal: Sequence[Path], shared: Sequence[Path]
) -> Iterator[Finding]:
    """What holds secrets or password hashes belongs to the service's user, and others cannot read or change it."""
    user = _service_user(settings)
    wanted = [*_wanted(settings, personal, shared)]
    if settings_file is not None:
        wanted.append(_Wanted(settings_file, 0o022, "can be written to by others", "chmod go-w", root=True))
    found = [finding for one in wanted for finding in _checked(one, user)]
    yield from (finding for place, finding in enumerate(found) if finding not in found[:place])
    if not found:
        yield ok("permissions", "Files with secrets or data belong to the service, and only it can read them.")


def _wanted(settings: Settings, personal: Sequence[Path], shared: Sequence[Path]) -> Iterator[_Wanted]:
    folders = [Path(settings.backup_dir)] if settings.backup_dir else []
    files = []
    if not settings.database_url:
        database = Path(settings.db_path).expanduser()
        files += [database, *(database.with_name(database.name + suffix) for suffix in _BESIDE)]
        with suppress(OSError):
            files += sorted(database.parent.glob(f"{_literal(database.name)}.*"))  # kept by restores and upgrades
        folders.append(database.parent)
    files += [one.path for folder in folders for one in backup_schedule.backups_in(folder)]
    for path in files:
        yield _Wanted(path, 0o077, "can be read by others", "chmod 600")
    for path in personal:
        yield _Wanted(path, 0o077, "can be read by others", "chmod 600", root=True)
    key = settings.tls_key_file or settings.tls_cert_file
    for path in [*shared, *([Path(key)] if key else [])]:  # a group of its own is how systems share them
        yield _Wanted(path, 0o007, "can be read by everybody", "chmod o=", root=True)
        yield _Wanted(path, 0o022, "can be written to by others", "chmod go-w", root=True)
    for path in folders:
        named = path == Path(settings.backup_dir or os.devnull)
        yield _Wanted(path, 0o022, "can be written to by others", "chmod go-w", named=named)


def _checked(wanted: _Wanted, user: int) -> Iterator[Finding]:
    try:
        status = wanted.path.stat()
    except OSError:
        return
    if stat.S_ISCHR(status.st_mode):  # /dev/null in the place of a settings file
        return
    of_root = wanted.root and status.st_uid == 0
    # A file of root's is read by the service through a group, which may read it and nothing else.
    mask = wanted.mask & 0o037 if of_root and user != 0 else wanted.mask
    path, owned = _shell(wanted.path), status.st_uid == user
    own_folder = "move the database into a folder of its own, which only the service can write to; see DB_PATH"
    if stat.S_IMODE(status.st_mode) & mask:
        mend = f"{wanted.mend} {path}" if wanted.named or owned else own_folder
        yield fault("permissions", f"{wanted.path} {wanted.what}.", mend)
    if not owned and not of_root:
        mend = f"chown {_name_of(user)} {path}" if wanted.named else own_folder
        yield fault(
            "permissions",
            f"{wanted.path} belongs to {_name_of(status.st_uid)}, and the service runs as {_name_of(user)}.",
            f"{mend}, or run the doctor as the user of the service",
        )


def open_files(settings: Settings) -> Iterator[Finding]:
    """How many files this user may open; a server has the limit of whoever started it."""
    try:
        import resource
    except ImportError:  # where there is no such limit
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = settings.max_connections + _OWN_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield warning(
            "open files",
            f"A process started here may open {hard:,} files, and MAX_CONNECTIONS={settings.max_connections} needs "
            f"{needed:,}.",
            "raise the limit where the server is started (ulimit -n, or LimitNOFILE= of systemd), or lower "
            "MAX_CONNECTIONS",
        )
    else:
        yield ok("open files", f"A process started here may open the {needed:,} files that it needs.")


def _service_user(settings: Settings) -> int:
    """Who runs the service: whoever runs this, or, where that is root, who owns the folder of the data."""
    mine = os.geteuid() if hasattr(os, "geteuid") else 0
    if mine:
        return mine
    place = settings.backup_dir if settings.database_url else settings.db_path
    folder = Path(place).expanduser() if settings.database_url else Path(place).expanduser().parent
    try:
        return folder.stat().st_uid if place else mine
    except OSError:
        return mine


def _may_write(folder: Path, user: int) -> bool:
    """Whether a user may make files in a folder; asked of the system for oneself, and of the mode for another."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return False
    if not hasattr(os, "geteuid") or user == os.geteuid():
        return True
    status = folder.stat()
    if status.st_uid == user:
        return status.st_mode & 0o700 == 0o700
    return (status.st_mode & 0o070 == 0o070 and status.st_gid in _groups_of(user)) or status.st_mode & 0o007 == 0o007


def _groups_of(user: int) -> list[int]:
    import pwd

    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return []
    return os.getgrouplist(entry.pw_name, entry.pw_gid)


def _make_folder(folder: Path, user: int) -> str:
    """The command by which root makes a folder for a user, and changes no other."""
    return f"install -d -m 0700 -o {_name_of(user)} {_shell(folder)}"


def _shell(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))


def _name_of(user: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return str(user)


def _nearest(path: Path) -> Path:
    """The path, or the first of the folders above it that is there."""
    for there in (path, *path.absolute().parents):
        with suppress(OSError):
            if there.exists():
                return there
    return Path()


def _literal(name: str) -> str:
    """A name as a pattern that fits it alone."""
    import glob

    return glob.escape(name)
