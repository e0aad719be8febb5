"""Salvage: copies every row of a damaged SQLite file whose own pages are whole into a new file.

The file is read page by page without SQLite (btree.py), with the frames of its log that are as they were written
(write_ahead_log.py). Rows that the trees lead to come first, then those of pages that nothing leads to any more, known
by their shape; of one key the highest version counts. Deleted rows do not come back that way: SQLite is set to
overwrite what it frees. Accounts and vaults whose own row is lost are rebuilt from the indexes and from what refers to
them, so that one page does not take all documents with it. What refers to nothing after that is refused. Usage is
counted anew, and the new file has a new epoch. The source is never written to.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import apsw
from msgspec import Struct

from strongroom.store import file_owners, locks
from strongroom.store.exceptions import CannotOpen
from strongroom.store.maintenance.copy import LEFT_OUT, LINEAGE, tables
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, quoted
from strongroom.store.sqlite import btree, database_file, write_ahead_log
from strongroom.store.sqlite.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strongroom.store.maintenance.endpoint_protocol import Table
    from strongroom.store.sqlite.btree import Cell, Pages, Record

_OWN: Final = (LINEAGE, *LEFT_OUT)  # what a new file begins anew
_WITHOUT_SHAPE: Final = ("secrets",)  # a page of another table may look the same
_DEFAULTS: Final = 'SELECT name, "notnull", dflt_value FROM pragma_table_info(?)'


class Outcome(Struct):
    """Counts of the rows of one table, by outcome."""

    read: int = 0
    lost: int = 0  # at least: known from an index or a count, and not found
    refused: int = 0  # found, and of the wrong kind, not text, or referring to a row that is gone
    rebuilt: int = 0  # made anew from what refers to them


class _Shape:
    """Whether a record can be a row of a table, and the row that it is then."""

    def __init__(self, table: Table, scratch: apsw.Connection) -> None:
        self.table = table
        columns: list[Any] = scratch.execute(_DEFAULTS, (table.name,)).fetchall()
        self._texts = [name in table.texts for name, _, _ in columns]
        self._required = [bool(required) for _, required, _ in columns]
        self._defaults = [None if default is None else int(default) for _, _, default in columns]
        self._least = next(
            (n for n in range(len(columns)) if all(not columns[m][1] or columns[m][2] for m in range(n, len(columns)))),
            len(columns),
        )

    def row(self, record: Record) -> list[Any] | None:
        """The row with its text decoded; a column that was added later and is missing has its default."""
        if not self._least <= len(record) <= len(self._texts):
            return None
        row = []
        for position, is_text in enumerate(self._texts):
            value: Any = record[position] if position < len(record) else self._defaults[position]
            if value is None:
                if self._required[position]:
                    return None
            elif is_text:
                try:
                    value = bytes.decode(value)
                except (UnicodeDecodeError, TypeError):
                    return None
            elif not isinstance(value, int):
                return None
            row.append(value)
        return row


def salvage(source: Path, target: Path, log: Path | None, epoch: str, now: int) -> dict[str, Outcome]:
    """Bring what can be read into a new file; what became of each table's rows."""
    source = Path(os.path.realpath(source))
    try:
        locks.refuse_interrupted(source)
        is_served = locks.is_served(source)
    except CannotOpen as error:
        raise CannotCopy(str(error)) from None
    if not source.is_file():
        raise CannotCopy(f"There is no file {source}.")
    if target.exists():
        raise CannotCopy(f"{target} exists already, and nothing is written over; name another TARGET.")
    if is_served:
        raise CannotCopy(f"A server is using {source}; stop it, and try again.")
    half = target.with_name(f"{target.name}.part")
    try:
        _remove(half)
        with os.fdopen(os.open(half, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "rb") as made:
            outcomes = _fill(half, source, log, epoch, now)
            if not any(one.read or one.rebuilt for one in outcomes.values()):
                raise CannotCopy(f"No page of a strongroom database was found in {source}; nothing was made.")
            if not file_owners.is_same(made.fileno(), half):
                raise CannotCopy(f"Another file took the place of {half} while it was filled; nothing was made.")
            os.fsync(made.fileno())
        os.link(half, target)  # unlike a rename, never over another file
        database_file.sync_folder(target.parent)
    except OSError as error:
        raise CannotCopy(f"Cannot salvage {source} into {target}: {error.strerror}.") from None
    except apsw.Error as error:
        raise CannotCopy(f"Cannot write {target}: {error}.") from None
    finally:
        with suppress(OSError):
            _remove(half)
    return outcomes


def _remove(half: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        half.with_name(half.name + suffix).unlink(missing_ok=True)


def _fill(half: Path, source: Path, log: Path | None, epoch: str, now: int) -> dict[str, Outcome]:
    connection = database_file.connect(half)
    try:
        migrate(connection, now)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        with ExitStack() as files:
            own = source.with_name(f"{source.name}-wal")
            work = _Salvage(connection)
            connection.execute("BEGIN")
            work.take(_pages(files, source, own if own.exists() else None))
            if log is not None:
                work.take(_pages(files, source, log), again=True)
        work.finish(epoch, now)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        if not sound or connection.execute("PRAGMA foreign_key_check").fetchall():
            raise CannotCopy("What was brought out is not sound; the disk may be failing. Try another disk.")
    finally:
        connection.close()
    return work.outcomes


def _pages(files: ExitStack, source: Path, log: Path | None) -> Pages:
    """The pages of a file, each as the last frame of the log has it that ends with a commit and can be trusted."""
    size = write_ahead_log.page_size(source)
    newest: dict[int, int] = {}
    file = files.enter_context(source.open("rb"))
    logged: BinaryIO | None = None
    if log is not None:
        logged = files.enter_context(log.open("rb"))
        copied = (write_ahead_log.inspect(source).copied or 0) if log.name == f"{source.name}-wal" else 0
        waiting: dict[int, int] = {}
        for frame, _ in write_ahead_log.verified_frames(log, source):
            if frame.number > copied:
                waiting[frame.page] = frame.offset
            if frame.commit:
                newest |= waiting
                waiting.clear()
    count = max([os.fstat(file.fileno()).st_size // size, *newest])

    def read(number: int) -> bytes | None:
        offset = newest.get(number)
        if offset is not None and logged is not None:
            page = os.pread(logged.fileno(), size, offset)
        else:
            page = os.pread(file.fileno(), size, (number - 1) * size)
        return page if len(page) == size else None

    return btree.Pages(read, count, size)


class _Salvage:
    """Rows on their way into a new file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._shapes = {table.name: _Shape(table, connection) for table in tables() if table.name not in _OWN}
        self.outcomes = {name: Outcome() for name in self._shapes}
        self._seen: dict[str, set[int]] = {name: set() for name in self._shapes}
        self._missing: dict[str, set[int]] = {name: set() for name in self._shapes}  # rowids that an index has
        self._known: dict[str, dict[int, list[Record]]] = {}  # what the indexes of users and vaults say, by rowid

    def take(self, pages: Pages, *, again: bool = False) -> None:
        """Take all rows of these pages."""
        roots = _roots(pages)
        visited: set[int] = set()
        for name, shape in self._shapes.items():
            leaves = [n for n in _below(pages, roots.get(name), visited) if pages.kind(n) == btree.LEAF_TABLE]
            for number in leaves:
                self._take_page(pages, number, shape, again=again)
        for name in (*_OWN, "schema_migrations", "sqlite_schema"):
            list(_below(pages, 1 if name == "sqlite_schema" else roots.get(name), visited))
        for number in range(2, pages.count + 1):
            if number not in visited and pages.kind(number) == btree.LEAF_TABLE:
                orphan = self._by_shape(pages, number)
                if orphan is not None:
                    self._take_page(pages, number, orphan, again=True)
        if not again:
            self._read_indexes(pages, roots)

    def _take_page(self, pages: Pages, number: int, shape: _Shape, *, again: bool) -> None:
        name = shape.table.name
        outcome, seen = self.outcomes[name], self._seen[name]
        for cell in _cells(pages, number):
            if cell is None:
                continue
            seen.add(cell.rowid)
            row = shape.row(cell.record)
            if row is None:
                outcome.refused += 1
                continue
            outcome.read += self._insert(shape.table, row, again=again)

    def _insert(self, table: Table, row: list[Any], *, again: bool) -> int:
        """Insert a row; of one that is there already, the higher version counts. How many rows there are more."""
        columns = quoted(*table.columns)
        places = ", ".join("?" * len(row))
        then = "DO NOTHING"
        if again and "version" in table.columns and "version" not in table.key:
            others = [column for column in table.columns if column not in table.key]
            sets = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in others)
            then = f"({quoted(*table.key)}) DO UPDATE SET {sets} WHERE excluded.version > {quoted(table.name)}.version"
        same = " AND ".join(f"{quoted(column)} = ?" for column in table.key)
        keys = [row[table.columns.index(column)] for column in table.key]
        known = again and self._connection.execute(f"SELECT 1 FROM {quoted(table.name)} WHERE {same}", keys).fetchall()
        try:
            self._connection.execute(
                f"INSERT INTO {quoted(table.name)} ({columns}) VALUES ({places}) ON CONFLICT {then}", row
            )
        except apsw.ConstraintError:
            self.outcomes[table.name].refused += 1
            return 0
        return 0 if known else self._connection.changes()

    def _by_shape(self, pages: Pages, number: int) -> _Shape | None:
        """The one table whose rows all records of a page can be."""
        records = [cell.record for cell in _cells(pages, number) if cell is not None]
        fitting = [
            shape
            for name, shape in self._shapes.items()
            if name not in _WITHOUT_SHAPE and records and any(shape.row(record) for record in records)
        ]
        return max(fitting, key=lambda shape: sum(shape.row(one) is not None for one in records), default=None)

    def _read_indexes(self, pages: Pages, roots: dict[str, int]) -> None:
        """Read the indexes for rows that were not found."""
        for name, outcome in self.outcomes.items():
            self._known[name] = {}
            if name in _WITHOUT_SHAPE and name not in roots:
                outcome.lost = 1  # at least: the server makes them anew
                continue
            for index in _indexes(pages, name):
                entries = [
                    cell.record
                    for page in _below(pages, roots.get(index), set())
                    for cell in _cells(pages, page)
                    if cell is not None
                ]
                lost = [record for record in entries if record and record[-1] not in self._seen[name]]
                self._missing[name] |= {record[-1] for record in lost}
                if index in {f"sqlite_autoindex_{table}_{n}" for table in ("users", "vaults") for n in (1, 2)}:
                    for record in lost:
                        self._known[name].setdefault(record[-1], []).append(record)

    def finish(self, epoch: str, now: int) -> None:
        """Make anew what others refer to, refuse what refers to nothing, count again, begin a new lineage.

        What waited for its deletion is deleted: nobody can reach it, and nothing is to be made anew for it.
        """
        for statement in _DELETE_WAITING:
            self._connection.execute(statement)
        self._rebuild("users", _REBUILD_USERS, self._named("users", 1))
        self._rebuild("vaults", _REBUILD_VAULTS, self._named("vaults", 2))
        self._refuse_loose()
        self._count_lost()
        for statement in _COUNT_ANEW:
            self._connection.execute(statement)
        self._connection.execute(f"INSERT INTO {LINEAGE} (id, epoch, began_at) VALUES (1, ?, ?)", (epoch, now))

    def _count_lost(self) -> None:
        """Count rows that an index has and that were not found; of documents, also what accounts and vaults counted."""
        for name, outcome in self.outcomes.items():
            outcome.lost = max(outcome.lost, len(self._missing[name] - self._seen[name]))
        documents = self.outcomes["documents"]
        [(counted,)] = self._connection.execute(_COUNTED_AND_MISSING).fetchall()
        documents.lost = max(documents.lost, int(str(counted)) - documents.refused)

    def _named(self, name: str, width: int) -> list[tuple[str, ...]]:
        """Rows that the two unique indexes know: the columns of the key, and the other name."""
        found = []
        for records in self._known.get(name, {}).values():
            texts = [[_text(value) for value in record[:-1]] for record in records]
            if len(texts) == 2 and all(len(one) == width and None not in one for one in texts):
                found.append((*[str(value) for value in texts[0]], str(texts[1][-1])))
        return found

    def _rebuild(self, name: str, statement: str, known: list[tuple[str, ...]]) -> None:
        width = len(known[0]) if known else 2 if name == "users" else 3
        self._connection.execute(f"CREATE TEMP TABLE known_{name} ({', '.join('abc'[:width])})")
        marks = ", ".join("?" * width)
        self._connection.executemany(f"INSERT INTO known_{name} VALUES ({marks})", known)
        self._connection.execute(statement)
        self.outcomes[name].rebuilt = self._connection.changes()

    def _refuse_loose(self) -> None:
        """Delete what refers to a row that is gone, until nothing does."""
        while loose := self._connection.execute("PRAGMA foreign_key_check").fetchall():
            for table, rowid in {(str(row[0]), row[1]) for row in loose}:
                self._connection.execute(f"DELETE FROM {quoted(table)} WHERE rowid = ?", (rowid,))
                self.outcomes[table].read -= 1
                self.outcomes[table].refused += 1


def _roots(pages: Pages) -> dict[str, int]:
    """The root page of each table and index, as far as the schema can be read."""
    roots: dict[str, int] = {}
    for number in _below(pages, 1, set()):
        for cell in _cells(pages, number):
            if cell is not None and len(cell.record) == 5 and isinstance(cell.record[3], int):
                name = _text(cell.record[1])
                if name is not None:
                    roots[name] = cell.record[3]
    return roots


def _indexes(pages: Pages, table: str) -> list[str]:
    """The names of a table's indexes, those of its keys first, as far as the schema can be read."""
    found = {f"sqlite_autoindex_{table}_{number}" for number in (1, 2)}
    for number in _below(pages, 1, set()):
        for cell in _cells(pages, number):
            if cell is not None and len(cell.record) == 5 and _text(cell.record[2]) == table:
                name = _text(cell.record[1])
                found |= {name} if name is not None and cell.record[0] == b"index" else set()
    return sorted(found, key=lambda name: (not name.startswith("sqlite_autoindex"), name))


def _below(pages: Pages, root: int | None, visited: set[int]) -> Iterator[int]:
    """The pages of a tree that can be reached, each once."""
    waiting = [root] if root else []
    while waiting:
        number = waiting.pop()
        if number in visited or pages.kind(number) is None:
            continue
        visited.add(number)
        try:
            waiting += reversed(pages.children(number))
        except btree.Broken:
            continue
        yield number


def _cells(pages: Pages, number: int) -> list[Cell | None]:
    try:
        return list(pages.cells(number))
    except btree.Broken:
        return []


def _text(value: Any) -> str | None:
    try:
        return bytes.decode(value)
    except (UnicodeDecodeError, TypeError):
        return None


_OF_DELETED_VAULT: Final = """
    DELETE FROM {0} WHERE EXISTS (
        SELECT 1 FROM deletions AS x
         WHERE x.user_id = {0}.user_id AND x.vault_uid = {0}.{1} AND x.until >= {0}.updated_at)
"""
_OF_DELETED_ACCOUNT: Final = "DELETE FROM {} WHERE {} IN (SELECT user_id FROM deletions WHERE vault_uid = '')"
_DELETE_WAITING: Final = (
    *(
        _OF_DELETED_VAULT.format(table, column)
        for table, column in (("documents", "vault_uid"), ("versions", "vault_uid"), ("blob_versions", "uid"))
    ),
    *(
        _OF_DELETED_ACCOUNT.format(table.name, "id" if table.name == "users" else "user_id")
        for table in tables()
        if table.name == "users" or ("user_id" in table.columns and table.name != "deletions")
    ),
    "DELETE FROM deletions",
)
# An account whose row is lost keeps its id, and its address if an index has it; its password is gone.
_REBUILD_USERS: Final = """
    INSERT INTO users (id, email, password_hash, created_at, updated_at)
    SELECT o.id, coalesce((SELECT max(b) FROM temp.known_users WHERE a = o.id), o.id || '@salvaged.invalid'), NULL, 0, 0
      FROM (SELECT user_id AS id FROM vaults UNION SELECT user_id FROM documents UNION SELECT user_id FROM keyrings
             UNION SELECT user_id FROM keyring_versions UNION SELECT a FROM temp.known_users) AS o
     WHERE o.id NOT IN (SELECT id FROM users)
    ON CONFLICT DO NOTHING
"""
# A vault whose row is lost keeps its uid, and its name if an index or the history of vaults has it; its blob is gone.
_REBUILD_VAULTS: Final = """
    INSERT INTO vaults (user_id, uid, name, version, created_at, updated_at)
    SELECT o.user_id, o.uid,
           coalesce((SELECT max(c) FROM temp.known_vaults WHERE a = o.user_id AND b = o.uid),
                    (SELECT v.name FROM vault_changes AS v WHERE v.user_id = o.user_id AND v.vault_uid = o.uid
                      ORDER BY changed_at DESC LIMIT 1),
                    'salvaged ' || o.uid),
           coalesce((SELECT max(v.version) FROM vault_changes AS v
                      WHERE v.user_id = o.user_id AND v.vault_uid = o.uid), 1),
           coalesce((SELECT min(d.created_at) FROM documents AS d
                      WHERE d.user_id = o.user_id AND d.vault_uid = o.uid), 0),
           0
      FROM (SELECT user_id, vault_uid AS uid FROM documents UNION SELECT a, b FROM temp.known_vaults) AS o
     WHERE NOT EXISTS (SELECT 1 FROM vaults AS v WHERE v.user_id = o.user_id AND v.uid = o.uid)
       AND o.user_id IN (SELECT id FROM users)
    ON CONFLICT DO NOTHING
"""
# Live documents that accounts and their vaults count, and that were not found; before they are counted anew.
_COUNTED_AND_MISSING: Final = """
    SELECT coalesce(sum(max(0, max(coalesce(l.documents, 0), coalesce(v.documents, 0)) - coalesce(d.found, 0))), 0)
      FROM users AS u
      LEFT JOIN ledgers AS l ON l.user_id = u.id
      LEFT JOIN (SELECT user_id, sum(documents) AS documents FROM vaults GROUP BY user_id) AS v ON v.user_id = u.id
      LEFT JOIN (SELECT user_id, count(*) AS found FROM documents WHERE deleted_at IS NULL GROUP BY user_id) AS d
           ON d.user_id = u.id
"""
_LIVE: Final = "d.user_id = vaults.user_id AND d.vault_uid = vaults.uid AND d.deleted_at IS NULL"
_COUNT_ANEW: Final = (
    f"""
    UPDATE vaults SET
        updated_at = max(updated_at, (SELECT coalesce(max(updated_at), 0) FROM documents AS d
                                       WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid)),
        documents = (SELECT count(*) FROM documents AS d WHERE {_LIVE}),
        bytes = coalesce(octet_length(data), 0) + coalesce(octet_length(salt), 0)
              + (SELECT coalesce(sum(octet_length(d.data) + coalesce(octet_length(d.hmac), 0)), 0)
                   FROM documents AS d WHERE {_LIVE}),
        kept = (SELECT coalesce(sum(octet_length(d.data) + coalesce(octet_length(d.hmac), 0) + 256), 0)
                  FROM documents AS d WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid
                   AND d.deleted_at IS NOT NULL AND d.purged_at IS NULL)
             + (SELECT coalesce(sum(octet_length(v.data) + coalesce(octet_length(v.hmac), 0) + 256), 0)
                  FROM versions AS v WHERE v.user_id = vaults.user_id AND v.vault_uid = vaults.uid)
             + (SELECT coalesce(sum(octet_length(b.data) + coalesce(octet_length(b.salt), 0) + 256), 0)
                  FROM blob_versions AS b WHERE b.user_id = vaults.user_id AND b.uid = vaults.uid),
        row_bytes = (SELECT coalesce(sum(octet_length(d.collection) + 256), 0)
                       FROM documents AS d WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid)
    """,
    """
    INSERT INTO ledgers (user_id, clock, documents, bytes, row_bytes)
    SELECT user_id, max(updated_at), sum(documents), sum(bytes), sum(row_bytes)
      FROM vaults WHERE true GROUP BY user_id
    ON CONFLICT (user_id) DO UPDATE SET
        clock = max(ledgers.clock, excluded.clock), documents = excluded.documents, bytes = excluded.bytes,
        row_bytes = excluded.row_bytes
    """,
    """
    UPDATE ledgers SET clock = max(clock, coalesce(
        (SELECT max(changed_at) FROM vault_changes AS v WHERE v.user_id = ledgers.user_id), 0))
    """,
)
