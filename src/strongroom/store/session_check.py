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


class Proof:
    """A value that must stand before a judge, who refuses the request or says what it means."""

    __slots__ = ("found", "judge", "judged", "made", "parameters", "sql")

    def __init__(self, sql: Sql, judge: Callable[[Any], Any], **parameters: Any) -> None:
        self.sql = sql
        self.parameters = parameters
        self.judge = judge
        self.judged = False
        self.made = False
        self.found: Any = None

    def make(self, found: Any) -> None:
        """Take note of what was found, or refuse."""
        self.judged, self.made = True, False
        self.found = self.judge(found)
        self.made = True


class Both(NamedTuple):
    """One statement for two, in both dialects. It takes the parameters of the first, then those of the second.

    It gives one row: the first's value, whether the second has a row, and that row.
    """

    postgres: str
    sqlite: str


@lru_cache(maxsize=256)
def together(first: Sql, second: Sql) -> Both:
    """One statement for both."""
    return Both(_joined(first.postgres, second.postgres), _joined(first.numbered, second.numbered))


def _joined(first: str, second: str) -> str:
    taken = max((int(match[2]) for match in _NUMBERED.finditer(first)), default=0)
    shifted = _NUMBERED.sub(lambda match: f"{match[1]}{int(match[2]) + taken}", second)
    there = f"SELECT TRUE AS there, c.* FROM ({shifted}) AS c"
    return f"SELECT ({first}), b.* FROM (SELECT 1) AS a LEFT JOIN ({there}) AS b ON TRUE"
