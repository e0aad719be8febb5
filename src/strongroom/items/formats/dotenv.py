"""Files of variables, `.env`: each variable becomes a secret.

They are written for other programs, and one bad line costs no other. `programs.env_file`, which reads files of our own,
is stricter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from strongroom.items.formats.common import (
    Found,
    Password,
    Problem,
    checked,
    fits_besides,
    keep_besides,
    read_text,
    source_id,
    sourced,
)
from strongroom.items.types import Item, Secret

NAME: Final = "dotenv"
_NAME: Final = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`"}
_BLANK: Final = re.compile(r"[ \t]*(#[^\n]*)?")


def read(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """The variables of a file. Nothing is expanded: `$HOME` stays `$HOME`."""
    return checked(_variables(read_text(file).replace("\r\n", "\n")))


def _variables(text: str) -> Iterator[Found]:
    at, number = 0, 1
    comments: list[str] = []  # before the next variable
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        match = _NAME.match(text, at, end)
        if match is None:
            blank = _BLANK.fullmatch(text, at, end)
            if blank is None:
                yield Problem(f"Line {number} is no variable.")
            elif blank[1]:
                comments.append(blank[1][1:].strip())
            at, number = end + 1, number + 1
            continue
        value, after, beside = _value(text, match.end(), end)
        after_end = text.find("\n", after)
        after_end = len(text) if after_end < 0 else after_end
        if value is None:
            yield Problem(f"Line {number} has a quotation mark without an end.")
            at, number = end + 1, number + 1
            continue
        blank = _BLANK.fullmatch(text, after, after_end)
        if blank is None:
            yield Problem(f"Line {number} goes on after its value.")
        else:
            comments += [one for one in (beside, (blank[1] or "")[1:].strip()) if one]
            # a name says little: every project has its DATABASE_URL
            item = sourced(Secret(title=match[1], value=value), NAME, source_id(match[1], value))
            yield from _keep(item, comments, number)
            yield item
            comments = []
        number += text.count("\n", at, after_end) + 1
        at = after_end + 1
    if any(comments):
        yield Problem("The file ends with comments that belong to no variable; they were left out.")


def _keep(item: Item, comments: list[str], number: int) -> Iterator[Problem]:
    """Keep the comments before a variable and beside it."""
    said = [one for one in comments if one]
    if said and not (fits_besides(said) and keep_besides(item, {"comments": said})):
        yield Problem(
            f"The comments of the variable in line {number} were left out: they, or it, fit into no document."
        )


def _value(text: str, at: int, end: int) -> tuple[str | None, int, str]:
    """The value that begins here, where it ends, and a comment in between; None for a quotation that does not end."""
    quote = text[at : at + 1]
    if quote == "'":
        close = text.find("'", at + 1)
        return (None, end, "") if close < 0 else (text[at + 1 : close], close + 1, "")
    if quote == '"':
        match = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(text, at)
        if match is None:
            return None, end, ""
        unescaped = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), match[1], flags=re.DOTALL)
        return unescaped, match.end(), ""
    value, *comment = re.split(r"[ \t]#", text[at:end], maxsplit=1)
    return value.strip(), end, "".join(comment).strip()
