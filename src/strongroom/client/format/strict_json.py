"""JSON as every reader of the format takes it: bounded depth, numbers that are the same everywhere, no member lost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from strongroom.client.errors import Tampered

MOST_INTEGER: Final = 2**53 - 1  # the largest integer that every reader of JSON keeps
_FIRST_EXPONENT: Final = 1e21  # from here on, every program writes a number with an exponent
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_UNUSUAL_NUMBER: Final = re.compile(rb"[0-9]{16}|[0-9][eE]")
_decode: Final = msgspec.json.Decoder().decode


class JsonRules(NamedTuple):
    """How deep objects and lists may be nested, which numbers are taken, and whether all members are kept."""

    deepest: int
    takes: Callable[[float], bool]
    kept: bool = False  # members are written again as they were read: then none may stand twice, and 1.0 is 1


def is_exact(value: float) -> bool:
    """Whether a number is below 2^53 in magnitude."""
    return -MOST_INTEGER <= value <= MOST_INTEGER


def is_portable(value: float) -> bool:
    """Whether no program writes a number as an integer that another reads as a different one."""
    return is_exact(value) or (math.isfinite(value) and abs(value) >= _FIRST_EXPONENT)


CONTENT: Final = JsonRules(500, is_portable)
KEYRING: Final = JsonRules(32, is_exact, kept=True)
DESCRIPTOR: Final = JsonRules(32, math.isfinite, kept=True)


def read(raw: bytes, rules: JsonRules, message: str) -> Any:
    """A value from JSON in UTF-8; Tampered where it is none, or breaks one of the rules."""
    try:
        value = _decode(raw)
        if rules is CONTENT and _is_usual(raw):
            return value
        return _checked(value, rules, raw)
    except (ValueError, OverflowError, msgspec.MsgspecError):
        raise Tampered(message) from None
    except RecursionError:
        if _depth(raw) > rules.deepest:
            raise Tampered(message) from None
        raise  # it is the caller's own stack that has no room


def _is_usual(raw: bytes) -> bool:
    """Whether neither depth nor numbers need a look: the walk through a long value takes longer than its decoding."""
    return raw.count(b"[") + raw.count(b"{") <= CONTENT.deepest and not _UNUSUAL_NUMBER.search(raw)


def _checked(value: Any, rules: JsonRules, raw: bytes) -> Any:
    """The value, with numbers as every reader has them; ValueError where it breaks a rule."""
    root, members = [value], 0
    open_: list[tuple[Any, int]] = [(root, 0)]
    while open_:
        container, depth = open_.pop()
        if depth > rules.deepest:
            raise ValueError
        members += len(container) if isinstance(container, dict) else 0
        for place, one in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(one, (dict, list)):
                open_.append((one, depth + 1))
            elif isinstance(one, (int, float)) and not isinstance(one, bool):
                container[place] = _number(one, rules)
    if rules.kept and members != _TEXT.sub(b"", raw).count(b":"):
        raise ValueError  # of a member that stands twice, the decoder keeps one
    return root[0]


def _number(given: float, rules: JsonRules) -> float:
    value = float(given)
    if not rules.takes(value):
        raise ValueError
    if rules.kept and value.is_integer():
        return int(value)
    return given if is_exact(value) else value


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for sign in _TEXT.sub(b"", raw):
        depth += (sign in b"[{") - (sign in b"]}")
        deepest = max(deepest, depth)
    return deepest
