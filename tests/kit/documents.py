"""The documents of the project: their sections and blocks, and whether an answer is the one that they show."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.kit.project import ROOT

URL = "http://127.0.0.1:3000"  # where the documents say that a server listens
A_TIME = 10**12  # a larger integer in an answer is a time
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    """A document of the project."""
    return (ROOT / name).read_text("utf-8")


def fences(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a text: their language and what they hold."""
    return [(match[1], match[2]) for match in _FENCE.finditer(text)]


def prose(text: str) -> str:
    """A text without its fenced blocks."""
    return _FENCE.sub("", text)


def sections(text: str, level: int) -> dict[str, str]:
    """The parts of a text under headings of this level, by heading. A part ends at the next heading as high."""
    higher = re.compile(rf"^(#{{1,{level}}}) +(.+)$", re.MULTILINE)
    blank = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)  # a comment in a script is no heading
    found = list(higher.finditer(blank))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match[2]: text[match.end() : end] for match, end in zip(found, ends, strict=True) if len(match[1]) == level}


def values(text: str) -> list[Any]:
    """The JSON values in a text, one after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def differences(shown: Any, real: Any, where: str = "answer") -> list[str]:
    """How an answer differs from what the document shows. There, … is any text, and a time is any time."""
    if isinstance(shown, dict) and isinstance(real, dict) and shown.keys() == real.keys():
        return [line for key in shown for line in differences(shown[key], real[key], f"{where}.{key}")]
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [
            line
            for at, pair in enumerate(zip(shown, real, strict=True))
            for line in differences(*pair, f"{where}[{at}]")
        ]
    if isinstance(shown, str) and isinstance(real, str):
        alike = re.fullmatch(".+".join(map(re.escape, shown.split("…"))), real, re.DOTALL) is not None
    elif type(shown) is type(real) is int and shown > A_TIME:
        alike = real > A_TIME
    else:
        alike = type(shown) is type(real) and shown == real
    return [] if alike else [f"{where} is {real!r}, the document shows {shown!r}"]
