"""Locates damage in a SQLite file: which tables and indexes, how many pages, how many rows. It changes nothing."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import apsw

from strongroom.store.findings import plural
from strongroom.store.sqlite.database_file import connect_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A value of the wrong kind in a page that is sound, as PRAGMA integrity_check words it.
BAD_VALUE: Final = re.compile(r"(non-[A-Z]+|NULL|[A-Z]+) value in ")
_PAGE: Final = re.compile(r"^Tree (\d+) page (\d+)", re.MULTILINE)
_INDEX: Final = re.compile(r"(?:row -?\d+ missing from index|(?:wrong # of|non-unique) entr(?:ies|y) in index) (\S+)")
_SHOWN: Final = 5  # lines of SQLite's own that are shown
_UNREADABLE: Final = (apsw.CorruptError, apsw.IOError)


def damaged_parts(path: Path) -> list[str]:
    """Each damaged part of the file, once; none if it is sound. Raises what SQLite raises where it is no database."""
    with closing(connect_read_only(path)) as connection:
        connection.execute("BEGIN")
        said = _integrity(connection)
        if not said:
            return []
        try:
            tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        except apsw.CorruptError:
            return [_cut_off(path) or "the schema, so that no table can be looked at"]
        return [part for table in tables for part in _of_table(connection, table)] or said[:_SHOWN]


def _of_table(connection: apsw.Connection, table: str) -> Iterator[str]:
    """The damage of a table and of its indexes. An index that lacks the rows of a damaged page is no second damage."""
    said = "\n".join(_integrity(connection, f'("{table}")'))
    pages: dict[int, set[int]] = {}
    for root, page in _PAGE.findall(said):
        pages.setdefault(int(root), set()).add(int(page))
    listed: list[Any] = connection.execute(
        "SELECT name, rootpage FROM sqlite_schema WHERE tbl_name = ?", (table,)
    ).fetchall()
    roots: dict[str, int] = dict(listed)
    indexes = {name for name in roots if name != table}
    damaged = {name for name in indexes if roots[name] in pages}
    of_table = pages.get(roots[table], set())
    if of_table:
        yield f"{plural(len(of_table), 'page')} of table {table}{_rows(connection, table, indexes - damaged)}"
    else:
        damaged |= indexes & set(_INDEX.findall(said))
    for name in sorted(damaged):
        yield f"{plural(len(pages[roots[name]]), 'page')} of index {name}" if roots[name] in pages else f"index {name}"
    if said and not of_table and not damaged:
        yield f"table {table} ({said.partition(chr(10))[0]})"


def _integrity(connection: apsw.Connection, of: str = "") -> list[str]:
    """Run integrity_check on the file, or on a table and its indexes; its lines up to where SQLite gives up."""
    said: list[str] = []
    try:
        for (line,) in connection.execute(f"PRAGMA integrity_check{of}"):
            said += str(line).splitlines()
    except apsw.CorruptError as error:
        said = said or [str(error)]
    return [line for line in said if line != "ok" and not line.startswith("***") and not BAD_VALUE.match(line)]


def _rows(connection: apsw.Connection, table: str, indexes: set[str]) -> str:
    """How many of the rows that a sound index knows cannot be read."""
    for index in sorted(indexes):
        try:
            known = connection.execute(f'SELECT rowid FROM "{table}" INDEXED BY "{index}"').fetchall()
        except apsw.Error:  # it holds only some of the rows, or is damaged itself
            continue
        lost = sum(not _is_readable(connection, table, int(str(rowid))) for (rowid,) in known)
        return f", where {lost:,} of {plural(len(known), 'row')} cannot be read"
    return ", where rows cannot be counted"


def _is_readable(connection: apsw.Connection, table: str, rowid: int) -> bool:
    try:
        return bool(connection.execute(f'SELECT * FROM "{table}" WHERE rowid = ?', (rowid,)).fetchall())
    except _UNREADABLE:
        return False
    except UnicodeDecodeError:  # the page is sound; the row is named elsewhere
        return True


def _cut_off(path: Path) -> str:
    """Whether the file is shorter than its own first page says."""
    with path.open("rb") as file:
        head = file.read(100)
    size = int.from_bytes(head[16:18]) or 1
    size = 65_536 if size == 1 else size
    pages, there = int.from_bytes(head[28:32]), path.stat().st_size // size
    return f"the file has {there:,} of its {pages:,} pages; it was cut off" if there < pages else ""
