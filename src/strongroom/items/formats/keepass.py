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
    MOST_BESIDES,
    MOST_BYTES,
    FileRefused,
    Found,
    Password,
    Problem,
    checked,
    folder,
    inner_folder,
    keep_besides,
    named,
    parse_csv,
    read_all,
    seconds,
    size_besides,
    source_id,
    sourced,
)
from strongroom.items.types import CONCEALED, Field, FileContent, Item, Login, Note

NAME: Final = "keepass-xml"
CSV_NAME: Final = "keepass-csv"
_DEEPEST: Final = 100
_MOST_TAGS: Final = 4_000_000
_STANDARD: Final = {"Title": "title", "UserName": "username", "Password": "password", "Notes": "notes"}
# Of a group and of the database: kept with the first entry. The rest is for the windows of the program alone: icons,
# colours, limits of histories, which groups are open.
_OF_GROUP: Final = frozenset(
    {"Notes", "Tags", "CustomData", "DefaultAutoTypeSequence", "EnableAutoType", "EnableSearching", "CustomIconUUID"}
)
_OF_DATABASE: Final = frozenset({"DatabaseName", "DatabaseDescription", "DefaultUserName", "CustomData"})
_LONGEST_NAME: Final = 60
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
    return checked(_Reader(tree.first("Meta") or _Node("Meta", {})).read(root))


def _all(node: _Node | None, name: str) -> list[_Node]:
    return [] if node is None else [one for one in node.inner if one.name == name]


class _About:
    """What groups say of themselves: kept with the first entry below them that comes, and told where none does."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._sizes: list[int] = []

    def begin(self, told: str, name: str, said: list[Any]) -> Iterator[Problem]:
        """A group begins."""
        about = {"group": name, "inner": said}
        size = size_besides(about) if said else 0
        if size is None or sum(self._sizes) + size > MOST_BESIDES:
            yield Problem(f"{told} has notes that are too large, or that no document can hold; they were left out.")
        elif said:
            self._waiting.append(about)
            self._sizes.append(size)

    def keep_with(self, item: Item) -> None:
        """Keep with an entry what waits."""
        if self._waiting and keep_besides(item, {"groups": [*self._waiting]}):
            self._drop(0)

    def end(self, told: str, depth: int) -> Iterator[Problem]:
        """A group ends, at the depth at which it began."""
        if self.depth > depth:
            self._drop(depth)
            yield Problem(f"{told} has notes or settings, and no entry that was taken over; they were left out.")

    def _drop(self, depth: int) -> None:
        del self._waiting[depth:], self._sizes[depth:]

    @property
    def depth(self) -> int:
        """How many wait."""
        return len(self._waiting)


class _Reader:
    """Reads the groups of a file, from the outermost one on."""

    def __init__(self, meta: _Node) -> None:
        self._bin = meta.value("RecycleBinUUID")
        self._meta = meta
        self._binaries = _Binaries(_all(meta.first("Binaries"), "Binary"))
        self._about = _About()
        self._seen = 0  # entries, those of the recycle bin aside

    def read(self, root: _Node) -> Iterator[Found]:
        """The entries of all groups. The outermost one is the database itself, whose name is in no path."""
        said = [one.as_json() for one in self._meta.inner if one.name in _OF_DATABASE and _is_said(one)]
        yield from self._about.begin("The database", "", said)
        for group in _all(root, "Group"):
            yield from self._group(group, None)
        if count := len(_all(root, "Entry")):
            yield Problem(f"The file has entries in no group: {count:,}. They were left out.")
        yield from self._about.end("The database", 0)
        if count := len(_all(self._meta.first("CustomIcons"), "Icon")):
            yield Problem(f"The file has icons of its own: {count:,}. They were left out.")
        if count := self._binaries.others:
            yield Problem(f"The file has files that no entry has now: {count:,}. They were left out.")

    def _group(self, group: _Node, within: str | None) -> Iterator[Found]:
        name = group.value("Name")
        if self._bin and group.value("UUID") == self._bin:
            if count := sum(1 for _ in _entries_below(group)):
                yield Problem(f"The recycle bin of KeePass was left out: it has {count:,} entries.")
            elif any(one.name in {"Group", "Notes"} and _is_said(one) for one in group.inner):
                yield Problem("The recycle bin of KeePass was left out: it has groups or notes.")
            return
        here = "" if within is None else inner_folder(within, name)
        told, depth = f"The group {name[:_LONGEST_NAME]!r}", self._about.depth
        said = [one.as_json() for one in group.inner if one.name in _OF_GROUP and _is_said(one)]
        if _means(group, "Times", "Expires") == "true":
            said += [one.as_json() for one in _all(group, "Times")]
        yield from self._about.begin(told, name, said)
        before = self._seen
        for entry in _all(group, "Entry"):
            self._seen += 1
            for found in _entry(entry, here, self._binaries):
                if isinstance(found, Item):
                    self._about.keep_with(found)
                yield found
        for inner in _all(group, "Group"):
            yield from self._group(inner, here)
        if self._about.depth > depth:
            yield from self._about.end(told, depth)
        elif self._seen == before and within is not None:
            yield Problem(f"{told} has no entries; it was left out.")


def _is_said(one: _Node) -> bool:
    """Whether an element says something: a text that is no `null`, or elements in it."""
    return bool(one.inner) or one.text.strip().lower() not in {"", "null"}


def _means(node: _Node, *path: str) -> str:
    return node.value(*path).strip().lower()


def _entries_below(group: _Node) -> Iterator[_Node]:
    yield from _all(group, "Entry")
    for inner in _all(group, "Group"):
        yield from _entries_below(inner)


def _entry(entry: _Node, within: str, binaries: _Binaries) -> Iterator[Found]:
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
    taken = {"CreationTime": item.creation_at, "LastModificationTime": item.modified_at}
    times = [one for one in (entry.first("Times") or _Node("", {})).inner if one.text.strip()]
    times = [one.as_json() for one in times if taken.get(one.name) is None]
    kept: dict[str, Any] = ({"entry": rest} if rest else {}) | ({"times": times} if times else {})
    identifier = entry.value("UUID") or source_id(within, item.title, item.username, *item.urls)
    yield from problems
    yield sourced(_as_note(item), NAME, identifier, kept)


class _Binaries:
    """The files of all entries. What is read and unpacked is counted: many entries may name one file."""

    def __init__(self, stored: list[_Node]) -> None:
        self._stored = {one.attributes.get("ID", ""): one for one in stored}
        self._named: set[str] = set()
        self._left = 2 * MOST_BYTES  # each byte of a file that is not compressed counts as text and as content

    @property
    def others(self) -> int:
        """How many no entry named."""
        return len(self._stored.keys() - self._named)

    def attachment(self, one: _Node) -> FileContent | None:
        """A file of an entry; None where it is missing, damaged, encrypted or too large."""
        held = one.first("Value")
        if held is None:
            return None
        number = held.attributes.get("Ref")
        if number is not None:
            self._named.add(number)
        stored = held if number is None else self._stored.get(number)
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
    for name, taken in (("created", item.creation_at), ("modified", item.modified_at)):
        if taken is None and values.get(name):
            rest[name] = values[name]
    identifier = source_id(values.get("group", ""), item.title, item.username, url)
    return sourced(_as_note(item), CSV_NAME, identifier, dict(rest))
