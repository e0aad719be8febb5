"""Mutants of SQL text: a condition that always holds, a bound moved by one, a limit that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator

IS_SQL = re.compile(r"\b(SELECT|INSERT INTO|DELETE FROM|WHERE|RETURNING)\b|\bUPDATE \w+\s+SET\b|\bAND \w+ (IS|=|<|>)")
_CONDITION = re.compile(r"\b(?:WHERE|AND)\s+")
_END = re.compile(
    r"\s*\b(AND|OR|ORDER BY|GROUP BY|LIMIT|OFFSET|RETURNING|UNION|ON|FOR|WHEN|THEN|ELSE|END|SET|WHERE|HAVING)\b"
)
_BETWEEN = re.compile(r"\bBETWEEN\s+\S+(\s+PRECEDING)?\s*$")
_BOUND = re.compile(r"(?<=\s)(<=|>=|<|>)(?=\s)")
_MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_LIMIT = re.compile(r"\s+LIMIT\s+(?::\w+|\d+)")

Change = tuple[str, int, int, str]  # kind, start, end, what stands there instead


def changes(literal: str) -> Iterator[Change]:
    """Each change of this literal, as it is spelled in the source, quotes and prefix included."""
    for match in _CONDITION.finditer(literal):
        if _BETWEEN.search(literal, 0, match.start()):
            continue
        end = _end_of_condition(literal, match.end())
        if condition := literal[match.end() : end].rstrip():  # its parameters stay
            yield "sql condition dropped", match.end(), match.end() + len(condition), f"({condition} OR TRUE)"
    for match in _BOUND.finditer(literal):
        yield "sql bound moved", match.start(), match.end(), _MOVED[match[0]]
    for match in _LIMIT.finditer(literal):
        yield "sql limit dropped", match.start(), match.end(), ""


def _end_of_condition(literal: str, start: int) -> int:
    """Where the condition ends that starts here: before the next keyword, bracket or quote that is not its own."""
    quote = literal.lstrip("rbfRBF")[0]
    nested = literal.count("{", 0, start) > literal.count("}", 0, start)  # in an expression of an f-string
    depth, at = 0, start
    while at < len(literal):
        sign = literal[at]
        if sign == "(":
            depth += 1
        elif sign == ")":
            if not depth:
                break
            depth -= 1
        elif sign == quote or (nested and sign in "'\""):
            break
        elif sign == "'":  # a text of SQL
            at = literal.find("'", at + 1)
        elif sign == "{":
            if at > start and not literal[at - 1].isspace() and literal[at - 1] not in "(=":
                break  # more text is added here
            at = literal.find("}", at)
        elif not depth and (word := _END.match(literal, at)):
            between = word[1] == "AND" and _BETWEEN.search(literal, start, at)
            if not between:
                break
            at = word.end() - 1
        if at < 0:
            return len(literal)
        at += 1
    return at
