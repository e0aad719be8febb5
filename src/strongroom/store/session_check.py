"""A look that rides along with another: asked at once, two things cost PostgreSQL one round trip and SQLite one moment.

The one who asks for a document must first be found to be who he is. Both are looked up in one statement, and nothing
of the second is believed before the first is found.
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
    """A value that must stand before a judge, who refuses the request or says what it means."""

    __slots__ = ("done", "found", "parameters", "passed", "sql", "validate")

    def __init__(self, sql: Sql, validate: Callable[[Any], Any], **parameters: Any) -> None:
        self.sql = sql
        self.parameters = parameters
        self.validate = validate
        self.done = False
        self.passed = False
        self.found: Any = None

    def resolve(self, found: Any) -> None:
        """Take note of what was found, or refuse."""
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
    """One statement for both."""
    return CombinedStatement(_joined(first.postgres, second.postgres), _joined(first.numbered, second.numbered))


def _joined(first: str, second: str) -> str:
    taken = max((int(match[2]) for match in _NUMBERED.finditer(first)), default=0)
    shifted = _NUMBERED.sub(lambda match: f"{match[1]}{int(match[2]) + taken}", second)
    there = f"SELECT TRUE AS there, c.* FROM ({shifted}) AS c"
    return f"SELECT ({first}), b.* FROM (SELECT 1) AS a LEFT JOIN ({there}) AS b ON TRUE"
