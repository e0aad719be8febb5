"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, TypeAlias

from strongroom.items.formats import bitwarden, browsers, cxf, dotenv, keepass, onepassword
from strongroom.items.formats.common import Found, Password
from strongroom.items.types import Item

Reader: TypeAlias = Callable[[BinaryIO, Password | None], Iterator[Found]]
Writer: TypeAlias = Callable[[Iterable[tuple[str, Item]], int], bytes]

# `pass` is a directory, and is read by `pass_store.read`.
READERS: Final[dict[str, Reader]] = {
    bitwarden.NAME: bitwarden.read,
    cxf.NAME: cxf.read,
    onepassword.NAME: onepassword.read,
    keepass.NAME: keepass.read,
    keepass.CSV_NAME: keepass.read_csv,
    browsers.CHROME: browsers.read_chrome,
    browsers.FIREFOX: browsers.read_firefox,
    browsers.SAFARI: browsers.read_safari,
    dotenv.NAME: dotenv.read,
}
WRITERS: Final[dict[str, Writer]] = {bitwarden.NAME: bitwarden.write, cxf.NAME: cxf.write}


def guess(name: str, head: bytes) -> str | None:
    """The format of a file, by its name and its first bytes; None where it cannot be told."""
    name, text = name.lower(), head.decode("utf-8-sig", "replace").lstrip()
    if head.startswith(b"PK\x03\x04"):
        return onepassword.NAME
    if text.startswith("<") and "KeePassFile" in text:
        return keepass.NAME
    if text.startswith("{"):
        if '"accounts"' in text or '"exporterRpId"' in text:
            return cxf.NAME
        return bitwarden.NAME if '"encrypted"' in text else None
    columns = {column.strip(' "').lower() for column in text.partition("\n")[0].strip().split(",")}
    for found, needed in (
        (browsers.FIREFOX, {"url", "username", "password", "guid"}),
        (browsers.CHROME, {"name", "url", "username", "password"}),
        (keepass.CSV_NAME, {"group", "title", "username", "password"}),
        (keepass.CSV_NAME, {"account", "login name", "password"}),
        (browsers.SAFARI, {"title", "url", "username", "password"}),
    ):
        if needed <= columns:
            return found
    return dotenv.NAME if name.rpartition("/")[2].startswith(".env") or name.endswith(".env") else None
