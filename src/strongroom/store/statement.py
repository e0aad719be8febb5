"""SQL statements with named parameters, in a dialect that both engines share."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

ALL: Final = 2**63 - 1  # a limit that does not limit

LARGE: Final = "?"  # in place of data that is too large; data that is just that is read again, and nothing is lost

_NAMED = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")


class Sql:
    """A statement with `:name` parameters, in the dialect that both engines share.

    A statement that truly needs a dialect says so: `Sql(sqlite=..., postgres=...)`. In SQLite's it may be two, with a
    semicolon between them, where one and then the other costs less than RETURNING does.
    """

    __slots__ = ("names", "numbered", "postgres", "sqlite", "values")

    def __init__(self, common: str = "", *, sqlite: str = "", postgres: str = "") -> None:
        self.sqlite = " ".join((sqlite or common).split())
        self.postgres, self.names = _numbered(" ".join((postgres or common).split()), "$")
        parts = [_numbered(part, "?") for part in self.sqlite.split("; ")]  # numbers are bound quicker than names
        self.numbered = "; ".join(text for text, _ in parts)
        self.values = _values_of([name for _, names in parts for name in names])

    def __repr__(self) -> str:
        return f"Sql({self.sqlite!r})"


def _numbered(text: str, sign: str) -> tuple[str, list[str]]:
    """The statement with numbers for its names, and the names in the order of their numbers."""
    names = list(dict.fromkeys(_NAMED.findall(text)))
    return _NAMED.sub(lambda match: f"{sign}{names.index(match[1]) + 1}", text), names


def _values_of(names: list[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """A function that takes these values out of a mapping, in this order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


def data_up_to(most: int) -> str:
    """The column `data`, with a mark in place of what has more bytes."""
    return f"CASE WHEN octet_length(data) > {most} THEN '{LARGE}' ELSE data END"


def delete_earliest(table: str, time: str, condition: str = "TRUE") -> Sql:
    """Delete the earliest rows with a time from `:reached` to `:before`, at most `:limit`; it returns their times.

    PostgreSQL may meet a row that was renewed since it was found: its time is compared again, and it stays. The sum
    keeps the planner from going through the index for that, and through every entry of rows that are deleted already.
    """
    found = f"FROM {table} WHERE {condition} AND {time} BETWEEN :reached AND :before ORDER BY {time} LIMIT :limit"
    return Sql(
        sqlite=f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {found}) RETURNING {time}",
        postgres=f"""
            DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid {found})) AND {time} + 0 <= :before
            RETURNING {time}
        """,
    )


def columns(kind: type[Struct]) -> str:
    """A struct's fields as a list of columns: rows come back in the order in which the struct takes them."""
    return ", ".join(kind.__struct_fields__)
