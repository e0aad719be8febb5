"""KeePass: the XML of KeePass 2, and the CSV of KeePassXC and KeePass."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final
from xml.parsers import expat

from strongroom.items import totp
from strongroom.items.errors import InvalidTotp
from strongroom.items.formats.common import (
    MOST_ATTACHMENT,
    MOST_BYTES,
    FileRefused,
    Found,
    Password,
    Problem,
    checked,
    folder,
    named,
    parse_csv,
    read_all,
    seconds,
    source_id,
    sourced,
)
from strongroom.items.types import CONCEALED, Field, FileContent, Item, Login, Note

NAME: Final = "keepass-xml"
CSV_NAME: Final = "keepass-csv"
_DEEPEST: Final = 100
_MOST_TAGS: Final = 4_000_000
_STANDARD: Final = {"Title": "title", "UserName": "username", "Password": "password", "Notes": "notes"}
_ABOUT: Final = frozenset({"Notes", "Tags", "CustomData"})  # of a group: kept with its first entry
_ENCODINGS: Final = {"utf-8", "utf-16", "iso-8859-1", "us-ascii"}


class _Node:
    """An element: its attributes, its text, and the elements in it."""

    __slots__ = ("attributes", "inner", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.inner: list[_Node] = []
        self.text = ""

    def first(self, *path: str) -> _Node | None:
        """The first element at a path."""
        found: _Node | None = self
        for name in path:
            found = None if found is None else next((one for one in found.inner if one.name == name), None)
        return found

    def value(self, *path: str) -> str:
        """The text of the first element at a path."""
        found = self.first(*path)
        return "" if found is None else found.text

    def as_json(self) -> Any:
        """The element as it came, for what has no place."""
        found: dict[str, Any] = {"name": self.name}
        found |= {"attributes": self.attributes} if self.attributes else {}
        found |= {"text": self.text} if self.text.strip() else {}
        return found | ({"inner": [one.as_json() for one in self.inner]} if self.inner else {})


def _parse(data: bytes) -> _Node:
    """XML without a document type: entities, and with them their bombs and files, cannot be defined."""
    if data.count(b"<") > _MOST_TAGS:
        raise FileRefused("The file has too many elements.")
    root = _Node("", {})
    stack = [root]
    texts: list[list[str]] = [[]]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > _DEEPEST:
            raise FileRefused("The file is nested too deeply.")
        node = _Node(name, attributes)
        stack[-1].inner.append(node)
        stack.append(node)
        texts.append([])

    def end(_name: str) -> None:
        stack.pop().text = "".join(texts.pop())

    def text(part: str) -> None:
        texts[-1].append(part)

    def refuse(*_: Any) -> Any:
        raise FileRefused("The file has a document type or entities; no export of KeePass has.")

    def declared(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:  # expat would look for it among all of Python's
            raise FileRefused("The file has an encoding that no export of KeePass has.")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.XmlDeclHandler = declared
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003 - the last part
    except expat.ExpatError as error:
        raise FileRefused(f"The file is not whole XML: see line {error.lineno}.") from None
    return root


def read(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """The entries of a file in XML, those of the recycle bin left out."""
    tree = _parse(read_all(file)).first("KeePassFile")
    root = None if tree is None else tree.first("Root")
    if tree is None or root is None:
        raise FileRefused("The file is not XML of KeePass 2: it has no KeePassFile with a Root.")
    meta = tree.first("Meta")
    binaries = _Binaries(_all(tree.first("Meta", "Binaries"), "Binary"))
    bin_ = "" if meta is None else meta.value("RecycleBinUUID")
    return checked(_groups(root, [], bin_, binaries, []))


def _all(node: _Node | None, name: str) -> list[_Node]:
    return [] if node is None else [one for one in node.inner if one.name == name]


def _groups(
    node: _Node, path: list[str], bin_: str, binaries: _Binaries, about: list[dict[str, Any]]
) -> Iterator[Found]:
    """The entries of groups. What a group says of itself, `about`, is kept with the first entry below it."""
    for group in _all(node, "Group"):
        name = group.value("Name")
        if bin_ and group.value("UUID") == bin_:
            count = sum(1 for _ in _entries_below(group))
            if count:
                yield Problem(f"The recycle bin of KeePass was left out: it has {count:,} entries.")
            continue
        if said := [one.as_json() for one in group.inner if one.name in _ABOUT and (one.inner or one.text.strip())]:
            if next(_entries_below(group), None) is None:
                yield Problem(f"The group {name[:60]!r} has notes and no entries; it was left out.")
            else:
                about.append({"group": name, "inner": said})
        here = [*path, name]
        for entry in _all(group, "Entry"):
            # the outermost group is the database itself
            yield from _entry(entry, folder(*here[1:]), binaries, about)
        yield from _groups(group, here, bin_, binaries, about)


def _entries_below(group: _Node) -> Iterator[_Node]:
    yield from _all(group, "Entry")
    for inner in _all(group, "Group"):
        yield from _entries_below(inner)


def _entry(entry: _Node, within: str, binaries: _Binaries, about: list[dict[str, Any]]) -> Iterator[Found]:
    held_all = [(one.value("Key"), one.first("Value")) for one in _all(entry, "String")]
    if any(held is not None and _is_encrypted(held) for _, held in held_all):
        titles = [held.text for name, held in held_all if name == "Title" and held and not _is_encrypted(held)]
        told = named(titles[0] if titles else None)
        yield Problem(f"{told} has values that are still encrypted, and was left out: export from KeePass as XML 2.x.")
        return
    item = Login(folders=[within] if within else [])
    problems = []
    otp: list[Field] = []
    for one in _all(entry, "String"):
        name, held = one.value("Key"), one.first("Value")
        value = "" if held is None else held.text
        protected = held is not None and held.attributes.get("ProtectInMemory") == "True"
        if name in _STANDARD:
            setattr(item, _STANDARD[name], value)
        elif name == "URL":
            item.urls = [value] if value else []
        elif value:
            field = Field(label=name, value=value, type=CONCEALED if protected else "string")
            (otp if _is_otp(name) else item.fields).append(field)
    _take_otp(item, otp)
    item.tags = [tag.strip() for tag in entry.value("Tags").replace(",", ";").split(";") if tag.strip()]
    item.creation_at = seconds(entry.value("Times", "CreationTime"))
    item.modified_at = seconds(entry.value("Times", "LastModificationTime"))
    for one in _all(entry, "Binary"):
        found = binaries.attachment(one)
        if found is None:
            problems.append(
                Problem(f"{named(item.title)} has a file that is missing, damaged or too large; it was left out.")
            )
        else:
            item.files.append(found)
    known = {"UUID", "String", "Binary", "Tags", "Times"}
    rest = [one.as_json() for one in entry.inner if one.name not in known and (one.inner or one.text.strip())]
    times = [one.as_json() for one in (entry.first("Times") or _Node("", {})).inner if one.text.strip()]
    times = [one for one in times if one["name"] not in {"CreationTime", "LastModificationTime"}]
    kept: dict[str, Any] = ({"entry": rest} if rest else {}) | ({"times": times} if times else {})
    if about:
        kept["groups"] = [*about]
        about.clear()
    identifier = entry.value("UUID") or source_id(within, item.title, item.username, *item.urls)
    yield from problems
    yield sourced(_as_note(item), NAME, identifier, kept)


class _Binaries:
    """The files of all entries. What is read and unpacked is counted: many entries may name one file."""

    def __init__(self, stored: list[_Node]) -> None:
        self._stored = {one.attributes.get("ID", ""): one for one in stored}
        self._left = 2 * MOST_BYTES  # each byte of a file that is not compressed counts as text and as content

    def attachment(self, one: _Node) -> FileContent | None:
        """A file of an entry; None where it is missing, damaged, encrypted or too large."""
        held = one.first("Value")
        if held is None:
            return None
        stored = self._stored.get(held.attributes["Ref"]) if "Ref" in held.attributes else held
        if stored is None or _is_encrypted(stored) or len(stored.text) > min(2 * MOST_ATTACHMENT, self._left):
            return None
        self._left -= len(stored.text)
        most = min(MOST_ATTACHMENT, self._left)
        try:
            data = base64.b64decode("".join(stored.text.split()), validate=True)
            if stored.attributes.get("Compressed") == "True":
                data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
        except (binascii.Error, ValueError, OSError, EOFError, zlib.error):
            return None
        self._left -= min(len(data), most)
        return None if len(data) > most else FileContent(name=one.value("Key"), content=data)


def _is_encrypted(held: _Node) -> bool:
    return held.attributes.get("Protected") == "True"


def _is_otp(name: str) -> bool:
    return name == "otp" or name.startswith(("TOTP ", "TimeOtp-"))


def _take_otp(item: Login, fields: list[Field]) -> None:
    """One-time codes as KeePassXC (`otp`), KeeTrayTOTP (`TOTP Seed`) and KeePass (`TimeOtp-…`) store them."""
    given = {field.label: field.value for field in fields}
    try:
        if "otp" in given:
            item.totp = totp.parse(given.pop("otp"))
        elif "TOTP Seed" in given:
            settings = given.pop("TOTP Settings", "30;6").split(";")
            found = totp.parse(given.pop("TOTP Seed"))
            found.period, digits = int(settings[0]), settings[1]
            found.algorithm, found.digits = ("steam", 5) if digits == "S" else (found.algorithm, int(digits))
            totp.uri(found)
            item.totp = found
        elif "TimeOtp-Secret-Base32" in given:
            found = totp.parse(given.pop("TimeOtp-Secret-Base32"))
            found.digits = int(given.pop("TimeOtp-Length", "6"))
            found.period = int(given.pop("TimeOtp-Period", "30"))
            hashed = given.pop("TimeOtp-Algorithm", "HMAC-SHA-1")
            found.algorithm = hashed.removeprefix("HMAC-").replace("-", "").lower()
            totp.uri(found)
            item.totp = found
    except (InvalidTotp, ValueError, IndexError):
        item.totp = None
        given = {field.label: field.value for field in fields}
    left = [field for field in fields if field.label in given]
    item.fields += [Field(label=field.label, value=field.value, type=CONCEALED) for field in left]


def _as_note(item: Login) -> Item:
    """An entry with nothing but notes is a note."""
    if item.username or item.password or item.urls or item.totp is not None:
        return item
    shared = {name: getattr(item, name) for name in ("title", "notes", "tags", "folders", "fields", "files")}
    return Note(**shared, creation_at=item.creation_at, modified_at=item.modified_at)


# The columns of KeePassXC, and of KeePass 1 and 2.
_COLUMNS: Final = {
    "title": "title",
    "account": "title",
    "username": "username",
    "user name": "username",
    "login name": "username",
    "password": "password",
    "notes": "notes",
    "comments": "notes",
    "url": "url",
    "web site": "url",
    "group": "group",
    "totp": "totp",
    "last modified": "modified",
    "created": "created",
}
_ESCAPING: Final = frozenset({"account", "login name"})  # the head of KeePass, which writes backslashes


def read_csv(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """The rows of a CSV file."""
    return checked(_csv_rows(file))


def _csv_rows(file: BinaryIO) -> Iterator[Found]:
    for number, row in parse_csv(file, _ESCAPING):
        if isinstance(row, Problem):
            yield row
            continue
        values: dict[str, str] = {}
        rest: dict[str, str] = {}
        for name, value in row.items():
            known = _COLUMNS.get(name.strip().lower())
            if known is not None and known not in values:
                values[known] = value
            elif value:
                rest[name] = value
        if not {"title", "password"} <= values.keys():
            raise FileRefused("The file is not CSV of KeePass: it has no columns for titles and passwords.")
        yield _csv_item(values, rest, number)


def _csv_item(values: dict[str, str], rest: dict[str, str], _number: int) -> Item:
    item = Login(title=values["title"], username=values.get("username", ""), password=values["password"])
    item.notes, url = values.get("notes", ""), values.get("url", "")
    item.urls = [url] if url else []
    names = [name for name in values.get("group", "").split("/") if name]
    item.folders = [folder(*names[1:])] if len(names) > 1 else []  # the first is the database
    if code := values.get("totp", ""):
        _take_otp(item, [Field(label="otp", value=code)])
    item.creation_at, item.modified_at = seconds(values.get("created")), seconds(values.get("modified"))
    identifier = source_id(values.get("group", ""), item.title, item.username, url)
    return sourced(_as_note(item), CSV_NAME, identifier, dict(rest))
