"""Serialisation of values: JSON or bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from strongroom.client.errors import Tampered
from strongroom.client.format import padding
from strongroom.client.format.encoding import MOST_VERSION
from strongroom.client.format.padding import Content
from strongroom.errors import Invalid

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_exactly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

EMPTY = Content(padding.NOTHING, b"")


def to_content(value: Any) -> Content:
    """A value as what is sealed. Bytes stay bytes, everything else is JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Content(padding.BYTES, bytes(value))
    try:
        raw = _to_json(value)
        _require_portable(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        raise Invalid({"content": "must be bytes, or a value that JSON can hold"}) from None
    return Content(padding.JSON, raw)


def _to_json(value: Any) -> bytes:
    """JSON that gives the value back. The fast encoder writes some values as others: NaN as null, bytes as text."""
    quick = _encode(value)
    return quick if _decode(quick) == value else _exactly(value).encode()


def _require_portable(value: Any) -> None:
    """Refuse integers that a reader in another language would change."""
    if isinstance(value, int):
        if not -MOST_VERSION <= value <= MOST_VERSION:
            raise Invalid({"content": "has an integer beyond 2^53 - 1; store it as a text"})
    elif isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise Invalid({"content": "has a key that is not a text"})
            _require_portable(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _require_portable(one)


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
