"""Bodies made to cost as much as they can for each byte, for every kind of request body."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from strongroom import wire
from strongroom.wire import export_lines

Made = Callable[[], bytes]  # makes a body: most are large, and few are needed at a time
_KINDS = (kind for module in (wire.requests, export_lines) for kind in vars(module).values() if isinstance(kind, type))
BODIES: list[type[wire.requests.Body]] = [
    kind
    for kind in dict.fromkeys(_KINDS)
    if issubclass(kind, wire.requests.Body) and kind is not wire.requests.Body and kind.__name__[0] != "_"
]

# A value of about this many bytes: what a reader might build, count, compare or convert for a long time.
_PIECES: dict[str, tuple[bytes, bytes, bytes]] = {
    "list of objects": (b"[", b"{},", b"{}]"),
    "list of creates": (b"[", b'{"op":"create"},', b"{}]"),
    "list of deletes": (b"[", b'{"op":"delete","uid":"0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"},', b"{}]"),
    "list of numbers": (b"[", b"1,", b"1]"),
    "list of names": (b"[", b'"a",', b'"a"]'),
    "list of permissions": (b"[", b'"read",', b'"read"]'),
    "list of uids": (b"[", b'"0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6",', b'"0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"]'),
    "deep lists": (b"[", b"[" * 500 + b"]" * 500 + b",", b"1]"),
    "deep objects": (b"[", b'{"a":' * 400 + b"1" + b"}" * 400 + b",", b"1]"),
    "one object": (b"{", b'"a":1,', b'"a":1}'),
    "object of long integers": (b"{", b'"a":' + b"9" * 4_000 + b",", b'"a":1}'),
    "digits": (b"", b"9", b""),
    "fraction": (b"0.", b"9", b""),
    "zeros": (b"1.", b"0", b""),
    "exponent": (b"1e", b"9", b""),
    "text": (b'"', b"a", b'"'),
    "text with commas": (b'"', b",{[:", b'"'),
    "escapes": (b'"', b"\\n", b'"'),
    "escaped quotes": (b'"', b'\\",', b'"'),
    "escaped letters": (b'"', b"\\u0041", b'"'),
    "escaped pairs": (b'"', b"\\ud83d\\ude00", b'"'),
    "accents": (b'"', "é".encode(), b'"'),
    "mixed widths": (b'"', "😀a".encode(), b'"'),
    "capitals that grow": (b'"', "İ".encode(), b'"'),
    "blanks": (b'"', b" ", b'x"'),
    "spaces": (b"", b" ", b"1"),
}


def value(piece: str, size: int) -> bytes:
    """A hostile JSON value of about this size."""
    head, middle, tail = _PIECES[piece]
    return head + middle * max(1, (size - len(head) - len(tail)) // len(middle)) + tail


def bodies(kind: type[wire.requests.Body], size: int) -> Iterator[tuple[str, Made]]:
    """Hostile bodies of about this size: in each known field, in an unknown one, repeated, and all around."""
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    for piece in _PIECES:
        for name in (*names, "unknown"):
            yield f"{name}: {piece}", partial(_field, name, piece, size)
        yield piece, partial(value, piece, size)
    for name in (*names, "unknown"):
        for what in ("1", '""', "null", "[]", "{}"):
            yield f"{name} again and again: {what}", partial(_again, name, what, size)
    yield "many unknown fields", partial(_many_fields, size)
    yield "a long name", lambda: b'{"' + b"a" * size + b'":1}'
    yield "an escaped name", lambda: b'{"' + b"\\n" * (size // 2) + b'":1}'
    yield "cut off", lambda: b'{"operations":[' + b"{}," * (size // 3)
    yield "no UTF-8 at its end", lambda: b'{"unknown":"' + "é".encode() * (size // 2) + b'\xff"}'


def _field(name: str, piece: str, size: int) -> bytes:
    return b'{"%s":%s}' % (name.encode(), value(piece, size))


def _again(name: str, what: str, size: int) -> bytes:
    again = b'"%s":%s,' % (name.encode(), what.encode())
    return b"{" + again * (size // len(again)) + again[:-1] + b"}"


@functools.cache
def _many_fields(size: int) -> bytes:
    return b"{" + b",".join(b'"%x":0' % number for number in range(size // 9)) + b"}"


def batches(size: int) -> Iterator[tuple[str, Made]]:
    """Batches of no more operations than there may be, with a hostile value in each."""
    for piece in _PIECES:
        for field in ("unknown", "op", "data", "collection", "hmac", "uid"):
            yield f"1000 x {field}: {piece}", partial(_batch, field, piece, size // 1_000)


def _batch(field: str, piece: str, each: int) -> bytes:
    item = b'{"op":"create","collection":"c","data":"AAAA","%s":%s}' % (field.encode(), value(piece, each))
    return b'{"operations":[' + b",".join([item] * 1_000) + b"]}"
