"""Serialisation of values: JSON or bytes."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec

from strongroom.client.errors import Tampered
from strongroom.client.format import padding
from strongroom.client.format.encoding import MOST_VERSION, is_unicode
from strongroom.client.format.padding import Content
from strongroom.errors import Invalid

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_exactly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_TOO_DEEP: Final = "is nested too deeply, or holds itself"
_DEEPEST: Final = 1_000  # characters of the place of a fault
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
    """Refuse integers that a reader in another language would change, and keys that are not texts."""
    if isinstance(value, int):
        if not -MOST_VERSION <= value <= MOST_VERSION:
            raise ValueError
    elif isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise TypeError
            _require_portable(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _require_portable(one)


def _fault(value: Any, place: str = "") -> str | None:
    """What JSON cannot hold of a value, and where. It names types and places, never contents."""
    at = f" at {place}" if place else ""
    if len(place) > _DEEPEST:
        return _TOO_DEEP
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        fits = -MOST_VERSION <= value <= MOST_VERSION
        return None if fits else f"has an integer beyond 2^53 - 1{at}; store it as a text"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"has a number that is not finite{at}"
    if isinstance(value, str):
        return None if is_unicode(value) else f"has a text that is not valid Unicode{at}"
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                return f"has a key that is not a text but {type(key).__name__}{at}"
            shown = key if key.isidentifier() and len(key) <= _LONGEST_KEY else "…"
            if fault := _fault(one, f"{place}[{shown!r}]") or _fault(key, place):
                return fault
        return None
    if isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            if fault := _fault(one, f"{place}[{number}]"):
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
    try:
        return _decode(content.data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        raise Tampered("What was sealed says that it is JSON, and is not.") from None
