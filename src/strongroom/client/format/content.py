"""Serialisation of values: JSON or bytes."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec

from strongroom.client.format import padding, strict_json
from strongroom.client.format.encoding import is_unicode
from strongroom.client.format.padding import Content
from strongroom.client.format.strict_json import MOST_INTEGER, is_portable
from strongroom.errors import Invalid

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_exactly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_TOO_DEEP: Final = "is nested too deeply, or holds itself"
_UNREADABLE: Final = "What was sealed says that it is JSON, and is not."
_LONGEST_KEY: Final = 40
EMPTY = Content(padding.NOTHING, b"")


def to_content(value: Any) -> Content:
    """A value as what is sealed. Bytes stay bytes, everything else is JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Content(padding.BYTES, bytes(value))
    try:
        raw = _to_json(value)
        _require_portable(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        try:
            fault = _fault(value) or "must be bytes, or a value that JSON can hold"
        except RecursionError:
            fault = _TOO_DEEP
    else:
        return Content(padding.JSON, raw)
    raise Invalid({"value": fault})


def _to_json(value: Any) -> bytes:
    """JSON that gives the value back. The fast encoder writes some values as others: NaN as null, bytes as text."""
    quick = _encode(value)
    return quick if _decode(quick) == value else _exactly(value).encode()


def _require_portable(value: Any) -> None:
    """Refuse numbers that a reader in another language would change, keys that are not texts, and too great a depth."""
    open_ = [(value, 0)]
    while open_:
        one, depth = open_.pop()
        if isinstance(one, (int, float)):
            if not _is_kept(one):
                raise ValueError
        elif isinstance(one, (dict, list, tuple)):
            if depth == strict_json.CONTENT.deepest:
                raise RecursionError
            if isinstance(one, dict) and not all(isinstance(key, str) for key in one):
                raise TypeError
            open_ += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]


def _is_kept(value: float) -> bool:
    """Whether a number is the same for every reader. Python writes integers of any length, others do not read them."""
    return -MOST_INTEGER <= value <= MOST_INTEGER if isinstance(value, int) else is_portable(value)


def _fault(value: Any, place: str = "", depth: int = 0) -> str | None:
    """What JSON cannot hold of a value, and where. It names types and places, never contents."""
    at = f" at {place}" if place else ""
    if depth == strict_json.CONTENT.deepest and isinstance(value, (dict, list, tuple)):
        return _TOO_DEEP
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f"has a number that is not finite{at}"
    if isinstance(value, (int, float)):
        return None if _is_kept(value) else f"has an integer beyond 2^53 - 1{at}; store it as a text"
    if isinstance(value, str):
        return None if is_unicode(value) else f"has a text that is not valid Unicode{at}"
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                return f"has a key that is not a text but {type(key).__name__}{at}"
            shown = key if key.isidentifier() and len(key) <= _LONGEST_KEY else "…"
            if fault := _fault(one, f"{place}[{shown!r}]", depth + 1) or _fault(key, place):
                return fault
        return None
    if isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            if fault := _fault(one, f"{place}[{number}]", depth + 1):
                return fault
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"has bytes{at}, which JSON cannot hold; store them as a value of their own, or in base64"
    return f"has a {type(value).__name__}{at}, which JSON cannot hold"


def to_value(content: Content) -> Any:
    """The value that was sealed; None where there is none."""
    if content.kind == padding.BYTES:
        return content.data
    if content.kind == padding.NOTHING:
        return None
    return strict_json.read(content.data, strict_json.CONTENT, _UNREADABLE)
