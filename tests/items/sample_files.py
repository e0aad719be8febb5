"""A file of each format, and its items as they are read and stored."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from strongroom.items import Item
from strongroom.items.formats import READERS, Found, Problem, pass_store
from strongroom.items.types import TYPES
from tests.items import corpora
from tests.items.full_items import fulls


class Stored(NamedTuple):
    uid: str
    value: Item


def read(name: str, data: bytes | str, password: str | None = None) -> list[Found]:
    data = data.encode() if isinstance(data, str) else data
    return list(READERS[name](io.BytesIO(data), None if password is None else lambda: password))


def items(found: Iterable[Found]) -> list[Item]:
    """The items; a test that expects no problem says so by this."""
    found = list(found)
    assert [one.sentence for one in found if isinstance(one, Problem)] == []
    return [one for one in found if isinstance(one, Item)]


def stored(found: list[Item]) -> list[tuple[str, Item]]:
    """The items with the uids that their documents might have, after a way through JSON as a document takes it."""
    return [
        (f"0198c0de-0000-7000-8000-{number:012x}", Item.from_stored(json.loads(json.dumps(item.to_stored()))))
        for number, item in enumerate(found)
    ]


def corpus(name: str) -> list[Item]:
    """The items of a file of each format."""
    made: dict[str, Any] = {
        "cxf": lambda: read("cxf", json.dumps(corpora.cxf(9, 80))),
        "bitwarden": lambda: read("bitwarden", json.dumps(corpora.bitwarden(9, 80))),
        "1pux": lambda: read("1pux", corpora.onepassword(9, 80)),
        "keepass-xml": lambda: [one for one in read("keepass-xml", corpora.keepass(9, 80)) if isinstance(one, Item)],
        "keepass-csv": lambda: read("keepass-csv", KEEPASS_CSV),
        "chrome": lambda: read("chrome", CHROME),
        "firefox": lambda: read("firefox", FIREFOX),
        "safari": lambda: read("safari", SAFARI),
        "pass": lambda: pass_store.read(PASS),
        "dotenv": lambda: read("dotenv", DOTENV),
        "made here": fulls,
    }
    return items(made[name]())


KEEPASS_CSV = (
    '"Group","Title","Username","Password","URL","Notes","TOTP","Icon","Last Modified","Created"\n'
    f'"Root/Web","A","ada","p1","https://a.example","line\nbreak","otpauth://totp/x?secret={corpora.SECRET}","0",'
    '"2024-01-02T03:04:05Z","2024-01-02T03:04:05Z"\n"Root","Only a note","","","","text","","","",""\n'
)
CHROME = (
    'name,url,username,password,note\na.example,https://a.example/,ada,"p,""1",hi\n,android://x@com.example/,bob,p2,\n'
)
FIREFOX = (
    '"url","username","password","httpRealm","formActionOrigin","guid","timeCreated","timeLastUsed","timePasswordChanged"\n'
    '"https://a.example","ada","p","realm","https://a.example","{c0ffee}","1700000000000","1700000000001","1700000000002"\n'
)
SAFARI = f"Title,URL,Username,Password,Notes,OTPAuth\nA,https://a.example/,ada,p,hi,otpauth://totp/x?secret={corpora.SECRET}\n"
CODE = f"otpauth://totp/x?secret={corpora.SECRET}"
PASS = [
    (
        "web/github.com",
        f"hunter2\nuser: ada\nurl: https://github.com\npin: 1\n{CODE}\nfree text".encode(),
    ),
    ("bare", b"only\n"),
    ("deep/er/file", b"\xff\xfe\0"),
]
DOTENV = '# comment\nA=1\nexport B=\'two words\'\nC="multi\nline \\"q\\" \\n end"\nD=x # comment\nE=\n'
NAMES = [
    "cxf",
    "bitwarden",
    "1pux",
    "keepass-xml",
    "keepass-csv",
    "chrome",
    "firefox",
    "safari",
    "pass",
    "dotenv",
    "made here",
]
UNFIT: list[dict[str, Any]] = [
    *({"type": kind, "title": "Unfit", "notes": 5, "password": "kept"} for kind in sorted(TYPES)),
    {"type": "login", "title": 5, "username": ["x"]},
    {"type": "login", "title": "Unfit", "totp": 5, "source": {"format": "bitwarden", "id": "b"}},
    {"type": "login", "title": "Unfit", "totp": 5, "source": {"format": "cxf", "id": "Yg"}},
    {"type": "later", "title": "Of a later version", "more": {"x": [1]}},
    {"title": "No type"},
]
