"""Files of environment variables: NAME=value, one a line. Nothing is expanded and nothing is run.

It is a grammar of our own, and strict: one doubtful line refuses the file, because a program would run with a wrong
environment. The importer `items.formats.dotenv` reads files of other programs instead: values of several lines, names
that no shell takes, and of a file with a bad line all others.
"""

from __future__ import annotations

import re
from typing import Final

from strongroom.programs.templates import NotFilled

_NAME: Final = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_SINGLE: Final = re.compile(r"'([^']*)'")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str, source: str) -> dict[str, str]:
    """The variables of a file. A value may be quoted: '…' is taken as it is, in "…" a backslash escapes.

    `source` names the file in errors, which show no value. A later line replaces an earlier one of the same name.
    """
    found: dict[str, str] = {}
    problems = []
    for number, raw in enumerate(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").split("\n"), 1):
        line = raw.strip()
        if not line.replace("\t", " ").isprintable():
            problems.append(f"{source}, line {number}: it has a control character, or a hidden line end.")
            continue
        if not line or line.startswith("#"):
            continue
        match = _NAME.fullmatch(line)
        value = None if match is None else _value(match[2])
        if match is None:
            problems.append(f"{source}, line {number}: this is no line of the form NAME=value.")
        elif value is None:
            problems.append(f"{source}, line {number}: the quotes are not closed, or something follows them.")
        else:
            found[match[1]] = value
    if problems:
        raise NotFilled(problems)
    return found


def _value(text: str) -> str | None:
    """A value without its quotes and without a comment behind it; None where the quotes are wrong."""
    if not text.startswith(("'", '"')):
        return re.split(r"[ \t]+#", text, maxsplit=1)[0].rstrip() if not text.startswith("#") else ""
    match = (_SINGLE if text[0] == "'" else _DOUBLE).match(text)
    if match is None or not re.fullmatch(r"[ \t]*(#.*)?", text[match.end() :]):
        return None
    if text[0] == "'":
        return match[1]
    return re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[1]), match[1])
