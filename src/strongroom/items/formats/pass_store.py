"""The password store of `pass`: one text for each entry, the password in its first line.

The texts come decrypted. Whoever reads the store decrypts them, by `gpg`: nothing here starts a program or reads files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from strongroom.items import totp
from strongroom.items.errors import InvalidTotp
from strongroom.items.formats.common import MOST_ITEM_BYTES, Found, Problem, checked, folder, named, sourced
from strongroom.items.types import CONCEALED, Field, FileContent, Login, Secret

NAME: Final = "pass"
_MEMBER: Final = re.compile(r"([A-Za-z][\w .-]{0,60}):[ \t]*(\S.*)")
_USERNAME: Final = {"user", "username", "login", "email"}
_URL: Final = {"url", "uri", "website", "site", "link"}


def read(entries: Iterable[tuple[str, bytes | None] | Problem]) -> Iterator[Found]:
    """The items of a store: the name of each entry, such as `web/github.com`, and its text, or None for a failure."""
    return checked(one if isinstance(one, Problem) else _read(*one) for one in entries)


def _read(name: str, data: bytes | None) -> Found:
    *around, title = name.strip("/").split("/")
    folders = [folder(*around)] if around else []
    if data is None:
        return Problem(f"{named(title)} cannot be decrypted, and was left out.")
    if len(data) > MOST_ITEM_BYTES:
        return Problem(f"{named(title)} is too large, and was left out.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        file = FileContent(name=title, content=data)
        return sourced(Secret(title=title, folders=folders, files=[file]), NAME, name)
    password, _, rest = text.partition("\n")
    item = Login(title=title, folders=folders, password=password.rstrip("\r"))
    notes = [line for line in rest.replace("\r\n", "\n").split("\n") if not _take(item, line)]
    item.notes = "\n".join(notes).strip("\n")
    if not (item.username or item.urls or item.totp or item.fields):
        secret = Secret(title=title, folders=folders, notes=item.notes, value=item.password)
        return sourced(secret, NAME, name)
    return sourced(item, NAME, name)


def _take(item: Login, line: str) -> bool:
    """Take over a line like `user: ada`; False where it is a line of notes."""
    if line.startswith("otpauth://") and item.totp is None:
        try:
            item.totp = totp.parse(line)
        except InvalidTotp:
            return False
        return True
    match = _MEMBER.fullmatch(line)
    if match is None or match[2].startswith("//"):
        return False
    name, value = match[1], match[2].rstrip()
    if name.lower() in _USERNAME and not item.username:
        item.username = value
    elif name.lower() in _URL:
        item.urls.append(value)
    else:
        item.fields.append(Field(label=name, value=value, type=CONCEALED))
    return True
