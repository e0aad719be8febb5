"""Files of every format that grow with a number, each in one of its parts: the work for them must grow no faster."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from tests.items import corpora


class File(NamedTuple):
    """A file in a format."""

    format: str
    data: bytes


Growing: TypeAlias = Callable[[int], File]


def _cxf(items: list[dict[str, Any]], collections: list[dict[str, Any]] | None = None) -> File:
    listed = [{"id": "WA", "title": "A", "credentials": []} | one for one in items]
    return File("cxf", json.dumps({"accounts": [{"items": listed, "collections": collections or []}]}).encode())


def _notes(count: int) -> list[dict[str, Any]]:
    """Credentials of one type, before one that makes the order of all another than ours."""
    made = [{"type": "note", "content": {"fieldType": "string", "value": str(number)}} for number in range(count)]
    return [*made, {"type": "basic-auth", "username": {"fieldType": "string", "value": "ada"}}]


def _fields(count: int) -> dict[str, Any]:
    fields = [{"fieldType": "string", "value": "x", "label": str(number)} for number in range(count)]
    return {"type": "custom-fields", "fields": fields}


def _sections(count: int) -> list[dict[str, Any]]:
    return [{"type": "custom-fields", "label": str(number % 2), **_fields(1)} for number in range(count)]


def _collections(count: int) -> list[dict[str, Any]]:
    return [{"id": "Yw", "title": f"folder {number}", "items": [{"item": "WA"}]} for number in range(10 * count)]


def _one_collection(count: int) -> list[dict[str, Any]]:
    return [{"id": "Yw", "title": "folder", "items": [{"item": "WA"}] * 20 * count}]


def _bitwarden(items: list[dict[str, Any]], **more: Any) -> File:
    listed = [{"id": str(number), "type": 2, "name": "A"} | one for number, one in enumerate(items)]
    return File("bitwarden", json.dumps({"encrypted": False, "items": listed, **more}).encode())


def _login(**members: Any) -> dict[str, Any]:
    return {"type": 1, "login": members}


def _passkeys(count: int) -> list[dict[str, Any]]:
    return [{"credentialId": f"b64.AAA{number}", "keyValue": "AAAA", "rpId": "x.example"} for number in range(count)]


def _onepassword(items: list[dict[str, Any]], name: str = "V", about: str = "", content: bytes = b"") -> File:
    vault = {"attrs": {"name": name, "desc": about}, "items": items}
    data = json.dumps({"accounts": [{"vaults": [vault]}]}).encode()
    return File("1pux", corpora.zipped({"export.data": data, "files/d__f": content}))


def _onepassword_item(number: int = 0, **details: Any) -> dict[str, Any]:
    overview = {"title": "T", "urls": details.pop("urls", []), "tags": details.pop("tags", [])}
    return {"uuid": f"u{number}", "categoryUuid": "001", "overview": overview, "details": details}


def _onepassword_fields(count: int) -> list[dict[str, Any]]:
    return [{"title": f"t{number}", "id": "x", "value": {"concealed": "v"}} for number in range(count)]


_DOCUMENT: Final = {"documentAttributes": {"fileName": "f", "documentId": "d"}}


def _keepass(inner: str, meta: str = "") -> File:
    return File("keepass-xml", f"<KeePassFile>{meta}<Root><Group>{inner}</Group></Root></KeePassFile>".encode())


def _entry(inner: str = "") -> str:
    return f"<Entry><String><Key>Title</Key><Value>T</Value></String>{inner}</Entry>"


def _strings(count: int) -> str:
    return "".join(f"<String><Key>k{number}</Key><Value>v</Value></String>" for number in range(count))


def _groups(count: int) -> str:
    return f"<Group><Name>n</Name><Notes>of it</Notes>{_entry()}</Group>" * count


def _attributes(count: int) -> str:
    attributes = " ".join(f"a{number}='1'" for number in range(20 * count))
    return _entry(f"<Novel {attributes}>x</Novel>")


_BINARY: Final = '<Meta><Binaries><Binary ID="0">QUFB</Binary></Binaries></Meta>'
_HEADS: Final = {
    "chrome": ("name,url,username,password", "A,https://a.example,ada,p"),
    "firefox": ("url,username,password,guid", "https://a.example,ada,p,g"),
    "safari": ("Title,URL,Username,Password", "A,https://a.example,ada,p"),
    "keepass-csv": ("group,title,username,password", "R/a,A,ada,p"),
}


def _csv(name: str, rows: int, *, columns: int = 0, row: str | None = None) -> File:
    head, plain = _HEADS[name]
    more = "".join(f",c{number}" for number in range(columns))
    return File(name, "\n".join([head + more, *[plain if row is None else row] * rows]).encode())


def _of_csv(name: str) -> dict[str, Growing]:
    return {
        f"rows of {name}": lambda count: _csv(name, count),
        f"rows and columns of {name}": lambda count: _csv(name, count, columns=count),
        f"quotation marks in {name}": lambda count: _csv(name, 1, row='"' + 'a""' * 20 * count + '",u,ada,p'),
        f"backslashes in {name}": lambda count: _csv(name, 1, row="\\" * 20 * count + ",u,ada,p"),
        f"spaces in {name}": lambda count: _csv(name, 1, row="a" + " " * 100 * count + "b,u,ada,p"),
        f"spaces in the head of {name}": lambda count: File(
            name, f"{_HEADS[name][0]},x{' ' * 100 * count}x\n{_HEADS[name][1]},1\n".encode()
        ),
    }


GROWING: Final[dict[str, Growing]] = {
    "items of CXF with one id": lambda count: _cxf([{}] * count),
    "credentials of CXF": lambda count: _cxf([{"credentials": _notes(count)}]),
    "fields of CXF": lambda count: _cxf([{"credentials": [_fields(count)]}]),
    "sections of CXF": lambda count: _cxf([{"credentials": _sections(count)}]),
    "addresses of CXF": lambda count: _cxf([{"scope": {"urls": ["https://a.example"] * 20 * count}}]),
    "links of a collection of CXF": lambda count: _cxf([{}], _one_collection(count)),
    "collections of CXF": lambda count: _cxf([{}], _collections(count)),
    "items and collections of CXF": lambda count: _cxf([{}] * count, _collections(count)),
    "items of Bitwarden with one id": lambda count: _bitwarden([{"id": "x"}] * count),
    "addresses of Bitwarden": lambda count: _bitwarden(
        [_login(uris=[{"uri": "https://a.example", "match": 1}] * count)]
    ),
    "passkeys of Bitwarden": lambda count: _bitwarden([_login(fido2Credentials=_passkeys(count))]),
    "fields of Bitwarden": lambda count: _bitwarden([{"fields": [{"name": "n", "value": "v", "type": 1}] * count}]),
    "parts of a folder of Bitwarden": lambda count: _bitwarden(
        [{"folderId": "f"}], folders=[{"id": "f", "name": "a/" * 20 * count}]
    ),
    "items in a long folder of Bitwarden": lambda count: _bitwarden(
        [{"folderId": "f"}] * count, folders=[{"id": "f", "name": "a" * 200 * count}]
    ),
    "collections of Bitwarden": lambda count: _bitwarden(
        [{"collectionIds": ["c"] * count}], collections=[{"id": "c", "name": "name"}]
    ),
    "spaces in a code of Bitwarden": lambda count: _bitwarden([_login(totp="A" + " " * 100 * count + "B")]),
    "items of 1PUX": lambda count: _onepassword([_onepassword_item(number) for number in range(count)]),
    "fields of 1PUX": lambda count: _onepassword(
        [_onepassword_item(sections=[{"title": "s", "fields": _onepassword_fields(count)}])]
    ),
    "addresses of 1PUX": lambda count: _onepassword(
        [_onepassword_item(urls=[{"url": f"https://a.example/{number}"} for number in range(count)])]
    ),
    "items and description of 1PUX": lambda count: _onepassword(
        [_onepassword_item(number) for number in range(count)], about="a" * 10 * count
    ),
    "items and name of 1PUX": lambda count: _onepassword(
        [_onepassword_item(number) for number in range(count)], "a" * 200 * count
    ),
    "items with one file of 1PUX": lambda count: _onepassword(
        [_onepassword_item(number, **_DOCUMENT) for number in range(count)], content=b"x" * 50 * count
    ),
    "entries of KeePass": lambda count: _keepass("<Name>n</Name>" + _entry() * count),
    "strings of KeePass": lambda count: _keepass(_entry(_strings(count))),
    "groups of KeePass": lambda count: _keepass(_groups(count)),
    "groups of KeePass without entries": lambda count: _keepass("<Group><Notes>n</Notes></Group>" * count),
    "entries in a long group of KeePass": lambda count: _keepass(
        f"<Group><Name>{'n' * 200 * count}</Name>{_entry('<UUID>u</UUID>') * count}</Group>"
    ),
    "attributes of KeePass": lambda count: _keepass(_attributes(count)),
    "references of KeePass": lambda count: _keepass(_entry(f"<Novel>{'&amp;' * 20 * count}</Novel>")),
    "spaces of KeePass": lambda count: _keepass(_entry(f"<Novel>a{' ' * 100 * count}b</Novel>")),
    "tags of KeePass": lambda count: _keepass(_entry(f"<Tags>{'a;' * 20 * count}</Tags>")),
    "files of KeePass": lambda count: _keepass(
        _entry('<Binary><Key>x</Key><Value Ref="0"/></Binary>' * count), _BINARY
    ),
    **_of_csv("chrome"),
    **_of_csv("firefox"),
    **_of_csv("safari"),
    **_of_csv("keepass-csv"),
    "variables": lambda count: File("dotenv", b"A=1\n" * count),
    "lines that are no variables": lambda count: File("dotenv", b"no\n" * count),
    "variables with a quotation mark": lambda count: File("dotenv", b"A='\nB=\"\n" * 5 * count),
    "spaces of a variable": lambda count: File("dotenv", b"A= a" + b" " * 100 * count + b"b\n"),
    "lines of a variable": lambda count: File("dotenv", b'A="' + b"x\n" * count + b'"\n'),
}
