"""Health checks of a database for `strongroom doctor`. They change nothing."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from strongroom.store import locks, migrations
from strongroom.store.exceptions import CannotOpen
from strongroom.store.findings import Verdict, fault, ok, plural, warning
from strongroom.store.maintenance.copy import STEPS, tables
from strongroom.store.maintenance.copy_endpoints import endpoint, opened, transaction
from strongroom.store.maintenance.endpoint_protocol import CannotCopy
from strongroom.store.sqlite import damage, database_file, log_recovery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.store.findings import Finding
    from strongroom.store.maintenance.endpoint_protocol import CopyEndpoint

_RESTORE: Final = "stop the server and run 'strongroom restore FILE'; the damaged database is kept beside"
_SALVAGE: Final = f"{_RESTORE}. Without a backup that is new enough, 'strongroom salvage' brings out what can be read"
_ATTEMPTS: Final = 3  # at a file that changes while it is read
_SHOWN: Final = 20  # rows that are named
_SLOW_DELETION: Final = 60  # minutes, after which a deletion that is not finished is reported
_AHEAD: Final = 60_000  # milliseconds that an account's clock may be ahead of the machine's


async def examine(where: str, now: int) -> list[Finding]:
    """All findings about the database at this path or URL."""
    try:
        database = endpoint("database", where)
        if database.engine == "sqlite" and not database.exists:
            if interrupted := _interrupted(database):
                return [interrupted]
            return [
                warning("database", f"{database.named} does not exist yet.", "start the server once, which makes it")
            ]
        if database.engine != "sqlite":
            return [*await _findings(database, now), await _postgres_server(database)]
        path = Path(database.identity)
        for _ in range(_ATTEMPTS):
            before = _modified(path)
            findings = [*_version(), _server(path), *_log(path), *await _findings(database, now)]
            if _modified(path) == before or locks.is_served(path):
                break  # else another process opened and changed the file meanwhile
    except (CannotCopy, CannotOpen) as error:
        return [fault("database", str(error), _SALVAGE if "not a database" in str(error) else "see that it is there")]
    return findings


async def sealing_keys(where: str) -> dict[str, int]:
    """How many secrets of one-time codes are sealed under which key; none where that cannot be read."""
    with suppress(CannotCopy, CannotOpen, apsw.Error):
        database = endpoint("database", where)
        if database.engine == "sqlite" and not database.exists:
            return {}
        async with opened(database, even_damaged=True):
            if "one_time_codes" in await database.tables():
                return dict(await database.query("SELECT key_id, count(*) FROM one_time_codes GROUP BY key_id"))
    return {}


async def _findings(database: CopyEndpoint, now: int) -> list[Finding]:
    async with opened(database, even_damaged=True):
        return [finding async for finding in _run_checks(database, now)]


def _server(path: Path) -> Finding:
    """Whether a process has the file open. A command that writes has it open for a short time too."""
    return _server_finding(is_served=locks.is_served(path))


async def _postgres_server(database: CopyEndpoint) -> Finding:
    """Whether a server holds its lock, which is read and not taken."""
    async with opened(database):
        held = await database.query(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND (classid::bigint << 32 | objid::bigint) = $1",
            locks.SERVING,
        )
    return _server_finding(is_served=bool(held[0][0]))


def _server_finding(*, is_served: bool) -> Finding:
    if is_served:
        return ok("server", "A server runs on this database now, or another command works on it.")
    return ok("server", "No server runs on this database now.")


def _modified(path: Path) -> list[tuple[int, int, int] | None]:
    """When a file and its log were last changed."""
    found: list[tuple[int, int, int] | None] = []
    for name in (path.name, f"{path.name}-wal"):
        try:
            status = path.with_name(name).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            found.append(None)
    return found


def _log(path: Path) -> list[Finding]:
    """The state of the write-ahead log; while a process has the database open, the log is not checked."""
    if locks.restore_mark_of(path):
        return []  # a restore was interrupted, which says more
    findings = [
        warning("log", f"A damaged log is kept: {kept}.", "see whether 'strongroom salvage' brings out more; delete it")
        for kept in log_recovery.kept_logs(path)
    ]
    if locks.is_served(path):
        return findings
    try:
        log = log_recovery.inspect(path)
    except OSError as error:
        return [
            *findings,
            fault("log", f"The write-ahead log cannot be read: {error.strerror}.", "see its permissions"),
        ]
    if log.damaged:
        says = f"The write-ahead log is damaged: {log.readable} of {log.frames} frames can be read."
        return [*findings, fault("log", says, f"{_RESTORE}, or start it, which keeps the log aside and goes on")]
    if log.frames:
        unfinished = "" if log.frames == log.readable else f", {log.frames - log.readable} of an unfinished write"
        return [
            *findings,
            ok("log", f"The write-ahead log has {plural(log.readable, 'frame')} to recover{unfinished}."),
        ]
    return findings


def _version() -> list[Finding]:
    version = apsw.sqlite_lib_version()
    if database_file.has_wal_fault(version):
        return [fault("sqlite", f"SQLite {version} can corrupt databases.", "install a newer apsw")]
    return [ok("sqlite", f"SQLite {version} has no known fault that loses data.")]


async def _run_checks(database: CopyEndpoint, now: int) -> AsyncIterator[Finding]:
    """Run all checks; one that cannot be made is a fault, and the next is made all the same.

    Damage that the first of them has located is not reported again by later checks that meet it.
    """
    sqlite = database.engine == "sqlite"
    checks = {
        "integrity": _sqlite_pages if sqlite else _postgres_pages,
        "references": _sqlite_references if sqlite else _postgres_references,
        "schema": _schema,
    }
    damaged = False
    for name in ("integrity", "references", "schema", "rows"):
        check = checks.get(name)
        if check is None:
            continue
        try:
            async with transaction(database, database.begin_snapshot):
                finding = await check(database)
        except CannotCopy as error:
            if damaged:
                continue
            finding = fault(name, str(error), _SALVAGE if sqlite else _RESTORE)
        yield finding
        damaged = damaged or (name == "integrity" and finding.verdict is Verdict.FAULT)
        if name == "schema" and finding.verdict is Verdict.OK and sqlite:
            checks["rows"] = _rows
    for last in (_clock, _deletions):
        with suppress(CannotCopy):
            async with transaction(database, database.begin_snapshot):
                yield await last(database, now)


async def _sqlite_pages(database: CopyEndpoint) -> Finding:
    """Whether the pages and indexes are sound, and where not. Values of a wrong kind are reported with their rows."""
    with database.translate_errors():
        damaged = damage.damaged_parts(Path(database.identity))
    if damaged:
        return fault("integrity", f"The database is damaged: {'; '.join(damaged)}.", _SALVAGE)
    return _interrupted(database) or ok("integrity", "Every page and every index of the database is sound.")


def _interrupted(database: CopyEndpoint) -> Finding | None:
    """Whether a restore has begun here and not finished."""
    if locks.restore_mark_of(Path(database.identity)):
        return fault("integrity", "A restore was interrupted.", "run the same 'strongroom restore' again")
    return None


async def _sqlite_references(database: CopyEndpoint) -> Finding:
    broken = await database.query("PRAGMA foreign_key_check")
    if broken:
        tables = ", ".join(sorted({str(row[0]) for row in broken}))
        return fault("references", f"{plural(len(broken), 'row')} of {tables} refer to rows that are gone.", _RESTORE)
    return ok("references", "Every row that refers to another finds it.")


async def _rows(database: CopyEndpoint) -> Finding:
    """Whether each row is what its table may hold: text that is UTF-8, numbers where numbers belong."""
    bad = [row.name for rows in (await database.unreadable(tables())).values() for row in rows]
    if not bad:
        return ok("rows", "Every row can be read.")
    shown = "; ".join(bad[:_SHOWN]) + (f"; and {len(bad) - _SHOWN:,} more" if len(bad) > _SHOWN else "")
    return fault(
        "rows",
        f"{plural(len(bad), 'row')} cannot be read, or refer to one that cannot: {shown}.",
        "let the client that has it write it again; or stop the server and run 'strongroom salvage'",
    )


async def _postgres_pages(database: CopyEndpoint) -> Finding:
    failures, on = (
        await database.query(
            "SELECT coalesce(checksum_failures, 0), current_setting('data_checksums')"
            " FROM pg_stat_database WHERE datname = current_database()"
        )
    )[0]
    if failures:
        return fault("integrity", f"PostgreSQL has met {failures} pages with a wrong checksum.", _RESTORE)
    if on != "on":
        return warning(
            "integrity",
            "PostgreSQL does not keep checksums of its pages, so damage would go unnoticed.",
            "stop PostgreSQL and run: pg_checksums --enable",
        )
    return ok("integrity", "PostgreSQL keeps checksums of its pages, and none has been wrong.")


async def _postgres_references(database: CopyEndpoint) -> Finding:
    loose = await database.query(
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND NOT convalidated"
        " AND connamespace = current_schema::regnamespace"
    )
    if loose:
        names = ", ".join(sorted(str(row[0]) for row in loose))
        return warning("references", f"PostgreSQL does not vouch for {names}.", "run ALTER TABLE … VALIDATE CONSTRAINT")
    return ok("references", "PostgreSQL vouches for every reference.")


async def _schema(database: CopyEndpoint) -> Finding:
    if STEPS not in await database.tables():
        return fault("schema", f"{database.named} is not a database of strongroom.", "see DB_PATH and DATABASE_URL")
    known = migrations.load()
    applied: dict[int, str] = dict(await database.query(f"SELECT number, checksum FROM {STEPS}"))
    try:
        migrations.check(known, applied)
    except CannotOpen as error:
        return fault("schema", str(error), "run the release that wrote it, or restore a backup")
    if len(applied) < len(known):
        newest = max(applied, default=0)
        return warning(
            "schema",
            f"The database has schema {newest}, this program has {known[-1].number}.",
            "make a backup, then start the server, which brings it up to date",
        )
    return ok("schema", f"The schema is number {known[-1].number}, the one of this program.")


async def _deletions(database: CopyEndpoint, now: int) -> Finding:
    """Whether rows of deleted vaults and accounts wait for longer than a running server needs."""
    count, since = (await database.query("SELECT count(*), min(deleted_at) FROM deletions"))[0]
    if not count:
        return ok("deletions", "Nothing that was deleted waits for its rows to go.")
    says = f"{plural(count, 'deletion')} of a vault or an account {'waits' if count == 1 else 'wait'} for rows to go"
    minutes = max(0, now - since) // 60_000
    if minutes < _SLOW_DELETION:
        return ok("deletions", f"{says}, which nobody can reach; the server deletes them in the background.")
    return warning(
        "deletions",
        f"{says}, the first for {minutes:,} minutes.",
        "start the server; if it runs, see its log for 'deletion', and that exports end and the disk has space",
    )


async def _clock(database: CopyEndpoint, now: int) -> Finding:
    """Times are never earlier than what an account has seen, so a clock that was once ahead stays in the data."""
    newest = (await database.query("SELECT coalesce(max(clock), 0) FROM ledgers"))[0][0]
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now / 1000))
    if newest > now + _AHEAD:
        return fault(
            "clock",
            f"This machine says {shown}, and an account has times that are {(newest - now) // 1000:,} s later.",
            "set the clock (timedatectl); if it is right, it was wrong before, and these times pass by themselves",
        )
    return ok("clock", f"This machine says {shown}, which is later than anything that is stored.")
