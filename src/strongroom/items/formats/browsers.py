"""Passwords of browsers, in CSV: Chrome and its relatives, Firefox, Safari."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from strongroom.items import totp
from strongroom.items.errors import InvalidTotp
from strongroom.items.formats.common import (
    FileRefused,
    Found,
    Password,
    Problem,
    checked,
    parse_csv,
    source_id,
    sourced,
)
from strongroom.items.types import CONCEALED, Field, Login

CHROME, FIREFOX, SAFARI = "chrome", "firefox", "safari"
_NEEDED: Final = {
    CHROME: {"name", "url", "username", "password"},
    FIREFOX: {"url", "username", "password", "guid"},
    SAFARI: {"title", "url", "username", "password"},
}
_TITLE: Final = ("name", "title")
_NOTES: Final = ("note", "notes")
_TAKEN: Final = {
    *_TITLE,
    *_NOTES,
    "url",
    "username",
    "password",
    "otpauth",
    "guid",
    "timecreated",
    "timepasswordchanged",
}


def read_chrome(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """Passwords of Chrome, Edge, Brave, Opera and Vivaldi."""
    return checked(_rows(file, CHROME))


def read_firefox(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """Passwords of Firefox."""
    return checked(_rows(file, FIREFOX))


def read_safari(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """Passwords of Safari, and of Apple's app Passwords."""
    return checked(_rows(file, SAFARI))


def _rows(file: BinaryIO, browser: str) -> Iterator[Found]:
    for _, row in parse_csv(file):
        if isinstance(row, Problem):
            yield row
            continue
        values: dict[str, str] = {}
        rest: dict[str, str] = {}
        for name, value in row.items():
            if name.lower() in _TAKEN and name.lower() not in values:
                values[name.lower()] = value
            elif value:
                rest[name] = value
        if not _NEEDED[browser] <= values.keys():
            missing = sorted(_NEEDED[browser] - values.keys())
            raise FileRefused(f"The file is not CSV of {browser.capitalize()}: it has no column {missing[0]!r}.")
        yield _item(values, rest, browser)


def _item(values: dict[str, str], rest: dict[str, str], browser: str) -> Found:
    url = values["url"]
    given, notes = _first(values, _TITLE, rest), _first(values, _NOTES, rest)
    item = Login(title=given or _host(url), username=values["username"], password=values["password"], notes=notes)
    item.urls = [url] if url else []
    if code := values.get("otpauth", ""):
        try:
            item.totp = totp.parse(code)
        except InvalidTotp:
            item.fields.append(Field(label="otpauth", value=code, type=CONCEALED))
    item.creation_at = _when(values, "timecreated", rest)
    item.modified_at = _when(values, "timepasswordchanged", rest)
    identifier = values.get("guid") or source_id(given, url, item.username)
    return sourced(item, browser, identifier, dict(rest))


def _first(values: dict[str, str], names: tuple[str, ...], rest: dict[str, str]) -> str:
    """The first of these that is not empty; the others are kept."""
    first, *others = [name for name in names if values.get(name)] or [""]
    rest.update({name: values[name] for name in others})
    return values.get(first, "")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def _when(values: dict[str, str], name: str, rest: dict[str, str]) -> int | None:
    """A time of Firefox, in milliseconds, as seconds; what is none is kept."""
    text = values.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 16:
        return int(text) // 1000
    if text:
        rest[name] = text
    return None
