"""A look that rides along with another: on PostgreSQL, asking two things at once saves a round trip.

The one who asks for a document must first be found to be who he is. Both are looked up in one statement, and nothing
of the second is believed before the first is found.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from strongroom.store.db import Sql

if TYPE_CHECKING:
    from collections.abc import Callable


_NUMBERED = re.compile(r"\$(\d+)")


class Proof:
    """A value that must stand before a judge, who refuses the request or says what it means."""

    __slots__ = ("found", "judge", "made", "parameters", "sql")

    def __init__(self, sql: Sql, judge: Callable[[Any], Any], **parameters: Any) -> None:
        self.sql = sql
        self.parameters = parameters
        self.judge = judge
        self.made = False
        self.found: Any = None

    def make(self, found: Any) -> None:
        """Take note of what was found, or refuse."""
        self.found = self.judge(found)
        self.made = True


@lru_cache(maxsize=256)
def together(first: Sql, second: Sql) -> tuple[str, list[str], list[str]]:
    """One statement for both: a row with the first's value, whether the second has a row, and that row.

    With the names of the parameters of each, in their order.
    """
    shifted = _NUMBERED.sub(lambda match: f"${int(match[1]) + len(first.names)}", second.postgres)
    there = f"SELECT TRUE AS there, c.* FROM ({shifted}) AS c"
    text = f"SELECT ({first.postgres}), b.* FROM (SELECT 1) AS a LEFT JOIN ({there}) AS b ON TRUE"
    return text, first.names, second.names
