"""Diagnostics of a server's files: disk space, permissions, backups, the limit on open files. Read-only."""

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
_FLOOR: Final = 64 * _MIB  # less free space than this is a fault
_OWN_FILES: Final = 100  # of a server besides its connections
_SUFFIXES: Final = ("-wal", "-shm", "-lock")
_UNIT: Final = "under a unit of systemd it also needs ReadWritePaths=, see docs/operating.md"


def disk_space(settings: Settings) -> Iterator[Finding]:
    """Free disk space for the database, if it is a file, and for the backups."""
    for name, place in (("database", settings.db_path), ("backups", settings.backup_dir)):
        if not place or (name == "database" and settings.database_url):
            continue
        path = Path(place).expanduser()
        there = _nearest(path)
        try:
            free = shutil.disk_usage(there).free
            size = path.stat().st_size if path.is_file() else 0
        except OSError as error:
            yield fault("disk", f"The disk of the {name} cannot be examined: {error.strerror}.", f"check {there}")
            continue
        says = f"{free // _MIB:,} MiB are free on the disk of the {name}."
        if free < _FLOOR:
            yield fault("disk", says, "free disk space now: writes are refused when it is full")
        elif free < max(size, 16 * _FLOOR):
            yield warning("disk", says, "free disk space: a restore needs as much again as the database has")
        else:
            yield ok("disk", says)


def backups(settings: Settings, now: int) -> Iterator[Finding]:
    """Whether backups can be made, the age of the newest, and whether all are on the disk of the database."""
    if not settings.backup_dir:
        yield warning(
            "backup", "The server makes no backups.", "set BACKUP_DIR, or run 'strongroom backup FILE' regularly"
        )
        return
    folder = Path(settings.backup_dir)
    yield _obstacle(settings, folder) or _age(settings, folder, now)
    for one in backup_schedule.list_backups(folder):
        if backup_schedule.is_from_the_future(one, now):
            yield warning(
                "backup",
                f"{one.path} is dated in the future: the clock was wrong when it was made, or is wrong now. "
                "It is not counted as a backup, and never deleted.",
                "set the clock (timedatectl) if it is wrong; else correct the date in the file's name, or delete it",
            )
    for half in _unfinished(settings):
        yield warning(
            "backup", f"{half} is an unfinished backup, and the process that wrote it has ended.", f"rm {half}"
        )
    places = [folder, *([Path(settings.backup_to).expanduser()] if settings.backup_to else [])]
    if not settings.database_url and "://" not in settings.backup_to:
        yield _one_disk(Path(settings.db_path).expanduser(), places)


def _obstacle(settings: Settings, folder: Path) -> Finding | None:
    """Why no backup can be written to a folder; None if nothing is found."""
    there = _nearest(folder)
    if not there.is_dir():
        return fault("backup", f"BACKUP_DIR {folder} cannot be a folder: {there} is a file.", "name another folder")
    user = _service_user(settings)
    if _may_write(there, user):
        return None
    if there == folder:
        return fault(
            "backup",
            f"BACKUP_DIR {folder} cannot be written by {_user_name(user)}, so every backup fails.",
            f"chown {_user_name(user)} {_quote(folder)}, and chmod u+rwx; {_UNIT}",
        )
    says = f"BACKUP_DIR {folder} does not exist, and cannot be created by {_user_name(user)}"
    make = f"as root: {_make_folder(folder, user)}"
    if not settings.database_url and not Path(settings.db_path).expanduser().parent.exists():
        return warning("backup", f"{says}.", f"systemd creates it at the first start; without systemd, {make}")
    return fault("backup", f"{says}, so every backup fails.", f"{make}; {_UNIT}")


def _age(settings: Settings, folder: Path, now: int) -> Finding:
    good = [one for one in backup_schedule.list_backups(folder) if not backup_schedule.is_from_the_future(one, now)]
    if not good:
        return warning(
            "backup", f"{folder} holds no backup yet.", f"start the server, then run the doctor again; {_UNIT}"
        )
    age = max(0, now - good[-1].made_at)
    says = f"The {'only backup' if len(good) == 1 else f'newest of {len(good):,} backups'} is {elapsed(age)} old."
    if age > 2 * settings.backup_every:
        return fault("backup", says, f"check that the server runs, and its log for 'backup failed'; {_UNIT}")
    return ok("backup", says)


def elapsed(milliseconds: int) -> str:
    """A duration for people, in its largest fitting unit."""
    seconds = milliseconds // 1000
    if seconds < 60:
        return plural(seconds, "second")
    if seconds < 7_200:
        return plural(seconds // 60, "minute")
    if seconds < 172_800:
        return plural(seconds // 3_600, "hour")
    return plural(seconds // 86_400, "day")


def _unfinished(settings: Settings) -> list[Path]:
    folders = {Path(settings.backup_dir).absolute()}
    if not settings.database_url:
        folders.add(Path(settings.db_path).expanduser().absolute().parent)
    return [half for folder in sorted(folders) for half in locks.abandoned(folder)]


def _one_disk(database: Path, places: Sequence[Path]) -> Finding:
    """Whether all backups are on the disk of the database."""
    try:
        disk = _nearest(database).stat().st_dev
        same = all(_nearest(place).stat().st_dev == disk for place in places)
    except OSError:
        same = False
    if same:
        return warning(
            "backup disk",
            "The backups are on the disk of the database: one failure destroys both.",
            "put BACKUP_DIR or BACKUP_TO on another disk, or send the backups to another machine with BACKUP_TO",
        )
    return ok("backup disk", "The backups are on another disk than the database.")


class _PermissionRule(NamedTuple):
    """A file or folder, and the permission bits that it must not have."""

    path: Path
    mask: int
    what: str
    mend: str
    root: bool = False  # may belong to root: the service only reads it
    named: bool = True  # by a setting, so that the advice may be to change its owner and mode


def permissions(
    settings: Settings, settings_file: Path | None, personal: Sequence[Path], shared: Sequence[Path]
) -> Iterator[Finding]:
    """Files with secrets or password hashes must belong to the service's user, and be private to it."""
    user = _service_user(settings)
    wanted = [*_permission_rules(settings, personal, shared)]
    if settings_file is not None:
        wanted.append(_PermissionRule(settings_file, 0o022, "can be written to by others", "chmod go-w", root=True))
    found = [finding for one in wanted for finding in _check_permissions(one, user)]
    yield from (finding for place, finding in enumerate(found) if finding not in found[:place])
    if not found:
        yield ok("permissions", "Files with secrets or data belong to the service, and only it can read them.")


def _permission_rules(
    settings: Settings, personal: Sequence[Path], shared: Sequence[Path]
) -> Iterator[_PermissionRule]:
    folders = [Path(settings.backup_dir)] if settings.backup_dir else []
    files = []
    if not settings.database_url:
        database = Path(settings.db_path).expanduser()
        files += [database, *(database.with_name(database.name + suffix) for suffix in _SUFFIXES)]
        with suppress(OSError):
            files += sorted(
                database.parent.glob(f"{_glob_escape(database.name)}.*")
            )  # copies kept by restores and upgrades
        folders.append(database.parent)
    files += [one.path for folder in folders for one in backup_schedule.list_backups(folder)]
    for path in files:
        yield _PermissionRule(path, 0o077, "can be read by others", "chmod 600")
    for path in personal:
        yield _PermissionRule(path, 0o077, "can be read by others", "chmod 600", root=True)
    key = settings.tls_key_file or settings.tls_cert_file
    for path in [*shared, *([Path(key)] if key else [])]:  # a group may read them
        yield _PermissionRule(path, 0o007, "can be read by everybody", "chmod o=", root=True)
        yield _PermissionRule(path, 0o022, "can be written to by others", "chmod go-w", root=True)
    for path in folders:
        named = path == Path(settings.backup_dir or os.devnull)
        yield _PermissionRule(path, 0o022, "can be written to by others", "chmod go-w", named=named)


def _check_permissions(wanted: _PermissionRule, user: int) -> Iterator[Finding]:
    try:
        status = wanted.path.stat()
    except OSError:
        return
    if stat.S_ISCHR(status.st_mode):  # /dev/null as settings file
        return
    of_root = wanted.root and status.st_uid == 0
    # The service reads a file of root through a group, which may only read it.
    mask = wanted.mask & 0o037 if of_root and user != 0 else wanted.mask
    path, owned = _quote(wanted.path), status.st_uid == user
    own_folder = "move the database into a folder of its own, which only the service can write to, and set DB_PATH"
    if stat.S_IMODE(status.st_mode) & mask:
        mend = f"{wanted.mend} {path}" if wanted.named or owned else own_folder
        yield fault("permissions", f"{wanted.path} {wanted.what}.", mend)
    if not owned and not of_root:
        mend = f"chown {_user_name(user)} {path}" if wanted.named else own_folder
        yield fault(
            "permissions",
            f"{wanted.path} belongs to {_user_name(status.st_uid)}, and the service runs as {_user_name(user)}.",
            f"{mend}, or run the doctor as the user of the service",
        )


def open_files(settings: Settings) -> Iterator[Finding]:
    """The limit on open files of this user, which a server inherits."""
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
    """The user of the service: this user, or for root the owner of the data folder."""
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
    """Whether a user may create files in a folder: by the system for this user, by the mode for another."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return False
    if not hasattr(os, "geteuid") or user == os.geteuid():
        return True
    status = folder.stat()
    if status.st_uid == user:
        return status.st_mode & 0o700 == 0o700
    return (status.st_mode & 0o070 == 0o070 and status.st_gid in _groups(user)) or status.st_mode & 0o007 == 0o007


def _groups(user: int) -> list[int]:
    import pwd

    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return []
    return os.getgrouplist(entry.pw_name, entry.pw_gid)


def _make_folder(folder: Path, user: int) -> str:
    """The command with which root creates a folder for a user."""
    return f"install -d -m 0700 -o {_user_name(user)} {_quote(folder)}"


def _quote(path: Path) -> str:
    """A path, quoted for a shell."""
    return shlex.quote(str(path))


def _user_name(user: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return str(user)


def _nearest(path: Path) -> Path:
    """The path, or its nearest parent that exists."""
    for there in (path, *path.absolute().parents):
        with suppress(OSError):
            if there.exists():
                return there
    return Path()


def _glob_escape(name: str) -> str:
    """A name as a glob pattern that matches only itself."""
    import glob

    return glob.escape(name)
