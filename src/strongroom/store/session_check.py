"""A deferred session check, combined with another query: both in one statement cost one round trip.

The caller's session must be valid before anything else is returned. Both are read in one statement, and the row of the
second is used only after the first has passed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Callable


_NUMBERED = re.compile(r"([$?])(\d+)")


class SessionCheck:
    """A deferred authentication check: a query and its validator, which refuses the request or returns a value."""

    __slots__ = ("done", "found", "parameters", "passed", "sql", "validate")

    def __init__(self, sql: Sql, validate: Callable[[Any], Any], **parameters: Any) -> None:
        self.sql = sql
        self.parameters = parameters
        self.validate = validate
        self.done = False
        self.passed = False
        self.found: Any = None

    def resolve(self, found: Any) -> None:
        """Validate what the query found, or refuse."""
        self.done, self.passed = True, False
        self.found = self.validate(found)
        self.passed = True


class CombinedStatement(NamedTuple):
    """One statement for two, in both dialects. It takes the parameters of the first, then those of the second.

    It gives one row: the first's value, whether the second has a row, and that row.
    """

    postgres: str
    sqlite: str


@lru_cache(maxsize=256)
def combine(first: Sql, second: Sql) -> CombinedStatement:
    """Combine two statements into one."""
    return CombinedStatement(_joined(first.postgres, second.postgres), _joined(first.numbered, second.numbered))


def _joined(first: str, second: str) -> str:
    taken = max((int(match[2]) for match in _NUMBERED.finditer(first)), default=0)
    shifted = _NUMBERED.sub(lambda match: f"{match[1]}{int(match[2]) + taken}", second)
    there = f"SELECT TRUE AS there, c.* FROM ({shifted}) AS c"
    return f"SELECT ({first}), b.* FROM (SELECT 1) AS a LEFT JOIN ({there}) AS b ON TRUE"
