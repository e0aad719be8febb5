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
_TITLE: Final = {"name", "title"}
_NOTES: Final = {"note", "notes"}
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
        values = {name.lower(): value for name, value in row.items()}
        if not _NEEDED[browser] <= values.keys():
            missing = sorted(_NEEDED[browser] - values.keys())
            raise FileRefused(f"The file is not CSV of {browser.capitalize()}: it has no column {missing[0]!r}.")
        yield _item(values, {name: value for name, value in row.items() if value}, browser)


def _item(values: dict[str, str], row: dict[str, str], browser: str) -> Found:
    url = values["url"]
    title = next((values[name] for name in ("name", "title") if values.get(name)), "") or _host(url)
    item = Login(title=title, username=values["username"], password=values["password"], urls=[url] if url else [])
    item.notes = next((values[name] for name in ("note", "notes") if values.get(name)), "")
    if code := values.get("otpauth", ""):
        try:
            item.totp = totp.parse(code)
        except InvalidTotp:
            item.fields.append(Field(label="otpauth", value=code, type=CONCEALED))
    item.creation_at, item.modified_at = _when(values, "timecreated"), _when(values, "timepasswordchanged")
    given = values.get("name") or values.get("title") or ""
    identifier = values.get("guid") or source_id(given, url, item.username)
    rest = {name: value for name, value in row.items() if name.lower() not in _TAKEN}
    return sourced(item, browser, identifier, dict(rest))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def _when(values: dict[str, str], name: str) -> int | None:
    """A time of Firefox, in milliseconds, as seconds."""
    text = values.get(name, "")
    return int(text) // 1000 if text.isascii() and text.isdecimal() and len(text) < 16 else None
