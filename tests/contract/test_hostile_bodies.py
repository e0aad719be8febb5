"""Hostile request bodies: each gets a 4xx, never a 500."""

import json
import uuid

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row
from tests.kit.servers.process import Server, fresh_address

from .checks import BLOB, clean

HEADERS = {"Content-Type": "application/json"}
DEEP = 100_000

MALFORMED = {
    "nothing": b"",
    "spaces": b"   \n",
    "half an object": b'{"name": "x"',
    "half a string": b'{"name": "x',
    "half a literal": b'{"name": tru',
    "prose": b"name=x&data=y",
    "single quotes": b"{'name': 'x'}",
    "trailing comma": b'{"name": "x",}',
    "comment": b'{"name": "x" /* no */}',
    "two objects": b'{"name": "x"}{"name": "y"}',
    "object and more": b'{"name": "x"} extra',
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": Infinity}',
    "minus Infinity": b'{"version": -Infinity}',
    "leading zero": b'{"version": 01}',
    "hexadecimal": b'{"version": 0x1}',
    "raw control character": b'{"name": "a\x01b"}',
    "raw newline": b'{"name": "a\nb"}',
    "raw NUL": b'{"name": "a\0b"}',
    "bad escape": b'{"name": "\\x41"}',
    "half an escape": b'{"name": "\\u00"}',
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "overlong UTF-8": b'{"name": "\xc0\xaf"}',
    "surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "cut UTF-8": b'{"name": "\xf0\x9f\x97"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "UTF-16 big endian": '{"name": "x"}'.encode("utf-16-be"),
    "UTF-32": '{"name": "x"}'.encode("utf-32"),
    "deep lists": b"[" * DEEP,
    "deep closed lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP,
    "deep in a field": b'{"name": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "list": b'[{"name": "x"}]',
    "empty list": b"[]",
    "string": b'"name"',
    "number": b"7",
    "huge number": b"1e999",
    "long number": b"9" * 6000,
    "true": b"true",
    "null": b"null",
}

ODD = {
    "NUL": b'{"extra": "\\u0000"}',
    "lone surrogate": b'{"extra": "\\ud800"}',
    "lone surrogate as key": b'{"\\udfff": 1}',
    "swapped surrogates": b'{"extra": "\\udc00\\ud800"}',
    "2^63": b'{"extra": 9223372036854775808}',
    "2^64": b'{"extra": 18446744073709551616}',
    "minus 2^64": b'{"extra": -18446744073709551616}',
    "1e999": b'{"extra": 1e999}',
    "minus 1e999": b'{"extra": -1e999}',
    "tiny": b'{"extra": 1e-999}',
    "long number": b'{"extra": ' + b"9" * 6000 + b"}",
    "long fraction": b'{"extra": 0.' + b"1" * 6000 + b"}",
    "deep": b'{"extra": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"extra": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "many keys": json.dumps({f"k{n}": n for n in range(20_000)}).encode(),
    "long key": b'{"' + b"k" * 100_000 + b'": 1}',
    "prototype": b'{"__proto__": {"a": 1}, "constructor": 1, "__class__": 2}',
    "BOM": b"\xef\xbb\xbf{}",
}

NASTY: list[object] = [
    0,
    -1,
    2**63,
    2**64,
    1e308,
    -0.0,
    1.5,
    True,
    None,
    "",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    {"a": 1},
    "x" * 70_000,
]


@pytest.fixture(scope="module")
def target(both: Server) -> ApiUser:
    """Somebody whose account is under fire."""
    return ApiUser.register(both)


@pytest.fixture(scope="module")
def roads(target: ApiUser) -> dict[str, tuple[str, str, Json]]:
    """Every road that reads a body, with one that it would take."""
    vault = target.vault(**BLOB)
    document = target.document(vault)
    return {
        "register": ("POST", "/auth/email/register", {"email": "{new}@example.com", "password": "12345678"}),
        "login": ("POST", "/auth/email/login", {"email": "{new}@example.com", "password": "12345678"}),
        "refresh": ("POST", "/auth/refresh", {"refreshToken": "a.b.c"}),
        "vault": ("POST", "/vault", {"name": "{new}", "uid": str(uuid.uuid4()), **BLOB}),
        "rename": ("PUT", f"/vault/{vault['uid']}", {"name": "{new}", "version": 1}),
        "blob": ("PUT", f"/vault/{vault['uid']}", BLOB),
        "document": (
            "POST",
            docs(vault),
            {"collection": "a", "data": "QQ", "hmac": "x", "uid": str(uuid.uuid4())},
        ),
        "update": ("PUT", docs(vault, document), {"data": "QQ", "hmac": "x", "version": 1}),
        "key": (
            "POST",
            "/auth/api-keys",
            {
                "name": "x",
                "permissions": ["read"],
                "vaultUids": [vault["uid"]],
                "collections": ["a"],
                "expiresAt": None,
            },
        ),
    }


LIMITS = {"register": 524_288, "login": 65_536, "refresh": 65_536}  # bytes, where no token is needed
ROADS = ["register", "login", "refresh", "vault", "rename", "blob", "document", "update", "key"]


@each_row("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(target: ApiUser, roads: dict[str, tuple[str, str, Json]], body: bytes) -> None:
    """What is not a JSON object is a 400 on every road that reads a body."""
    http = target.server.connect(target.access, fresh_address())
    for road in ROADS:
        method, path, _ = roads[road]
        too_large = len(body) > LIMITS.get(road, 6_291_456)
        wanted = (413, "payload_too_large") if too_large else (400, "validation_error")
        refused(http.request(method, path, content=body, headers=HEADERS), *wanted)


@each_row("body", ODD.values(), ids=ODD.keys())
def test_odd(target: ApiUser, roads: dict[str, tuple[str, str, Json]], body: bytes) -> None:
    """What is a JSON object, though an odd one without any field that is wanted, is answered cleanly."""
    http = target.server.connect(target.access, fresh_address())
    for road in ROADS:
        method, path, _ = roads[road]
        too_large = len(body) > LIMITS.get(road, 6_291_456)
        wanted = (413, "payload_too_large") if too_large else (400, "validation_error")
        refused(http.request(method, path, content=body, headers=HEADERS), *wanted)


@each_row("road", ROADS)
def test_nasty_values(target: ApiUser, roads: dict[str, tuple[str, str, Json]], road: str) -> None:
    """Whatever value a single field has, the answer is clean."""
    method, path, wanted = roads[road]
    for field in wanted:
        http = target.server.connect(target.access, fresh_address())
        for value in NASTY:
            body = {k: v.format(new=uuid.uuid4()) if isinstance(v, str) else v for k, v in wanted.items()}
            content = json.dumps(body | {field: value}).encode()
            clean(http.request(method, path, content=content, headers=HEADERS))


@pytest.mark.parametrize("first", ['"first"', '""', "7", "null", "{}"])
def test_last_of_two_keys_counts(target: ApiUser, first: str) -> None:
    """Of a key given twice the last counts, even if the first makes no sense."""
    last = str(uuid.uuid4())
    body = f'{{"name": {first}, "name": "{last}"}}'
    assert made(target.http.post("/vault", content=body, headers=HEADERS))["name"] == last


def test_text_is_kept(target: ApiUser) -> None:
    """Escapes and raw characters are two spellings of one text."""
    vault = target.vault()
    escaped = r'"collection": "\u043a\ud83d\udddd", "data": "\u0051\/8", "hmac": "\u043a\t\"\\'
    text = f'{{{escaped} \U0001f5dd"}}'
    document = made(target.http.post(docs(vault), content=text.encode(), headers=HEADERS))
    assert document["collection"] == "к\U0001f5dd"
    assert document["data"] == "Q/8"
    assert document["hmac"] == 'к\t"\\ \U0001f5dd'
    assert target.read(vault, document) == document


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_body_where_none_is_wanted(target: ApiUser, method: str) -> None:
    """A body on a road that reads none is no fault."""
    clean(target.http.request(method, "/vault", content=b"{", headers=HEADERS))


def test_still_standing(target: ApiUser, stranger: httpx2.Client) -> None:
    """After all that the server is in good health, and the account as well."""
    assert good(stranger.get("/health"))["status"] == "ok"
    good(target.http.get("/vault"))
