"""What the formats share: results, limits, and readers for JSON, CSV and zip that hostile input cannot hurt."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec
from msgspec import Struct

from strongroom.errors import Refusal
from strongroom.items.types import Item, Source

MOST_BYTES: Final = 64 << 20  # of a text file, or of all that is read of a zip file
MOST_FILE_BYTES: Final = 1 << 30  # of a zip file itself
MOST_ITEM_BYTES: Final = 4_000_000  # of an item as JSON: encrypted, it must fit into a request
MOST_ATTACHMENT: Final = 2_900_000
MOST_ENTRIES: Final = 50_000  # of a zip file
MOST_FOLDERS: Final = 100  # of an item
LONGEST_FOLDERS: Final = 16_384  # characters in all paths of an item's folders
_MOST_COLUMNS: Final = 100
_MOST_NAMES: Final = 10  # in a sentence
_MOST_OBJECTS: Final = 2_000_000  # of JSON: what is small in a file takes much memory
_MOST_QUOTES: Final = 12_000_000
_LARGEST_INTEGER: Final = 2**53 - 1
_DEEPEST: Final = 100
_LONGEST_TITLE: Final = 60


class FileRefused(Refusal):
    """A whole file that cannot be read; the message says why."""

    code = "file_refused"
    sentence = "The file cannot be read."


class PasswordNeeded(FileRefused):
    """The file is encrypted with a password that was not given, or with another one."""

    code = "password_needed"
    sentence = "The file is encrypted: give its password."


class Problem(Struct, frozen=True):
    """Something in a file that was not taken over, in one sentence without values."""

    sentence: str


Found: TypeAlias = Item | Problem
Password: TypeAlias = Callable[[], str]


def read_all(file: BinaryIO, most: int = MOST_BYTES) -> bytes:
    """The whole of a file; refused where it is larger than an export can be."""
    data = file.read(most + 1)
    if len(data) > most:
        raise FileRefused(f"The file is larger than {most >> 20} MiB; no export of items is.")
    return data


def read_text(file: BinaryIO) -> str:
    """A text in UTF-8. Bytes that are not UTF-8 become lone surrogates, which `checked` refuses with their item."""
    data = read_all(file)
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            raise FileRefused("The file says that it is UTF-16, and is not.") from None
    return data.decode("utf-8-sig", "surrogateescape")


def parse_json(data: bytes) -> Any:
    """JSON of any depth and encoding, or a sentence."""
    if data.count(b"{") + data.count(b"[") > _MOST_OBJECTS or data.count(b'"') > _MOST_QUOTES:
        raise FileRefused("The file has too many parts.")
    try:
        try:
            return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError):  # one bad text must not hide the other items
            return json.loads(data.decode("utf-8-sig", "surrogateescape"), parse_constant=_no_constant)
    except RecursionError:
        raise FileRefused("The file is nested too deeply.") from None
    except (ValueError, msgspec.MsgspecError):
        raise FileRefused("The file is not whole JSON.") from None


def _no_constant(_name: str) -> Any:
    raise ValueError


def parse_csv(file: BinaryIO, escaping: frozenset[str] | None = None) -> Iterator[tuple[int, dict[str, str] | Problem]]:
    """The rows of a CSV file with a head, each with the number of its line.

    Where the head has all the names in `escaping`, in small letters, a backslash stands before quotation marks and
    backslashes; else quotation marks are doubled.
    """
    text = read_text(file)
    if "\0" in text:
        raise FileRefused("The file is not CSV: it has null characters.")
    csv.field_size_limit(MOST_ITEM_BYTES)
    lines = io.StringIO(text, newline="")
    rows, before = csv.reader(lines, strict=True), 0
    try:
        head = next(rows, None)
        if head is None:
            raise FileRefused("The file is empty.")
        if len(head) > _MOST_COLUMNS:
            raise FileRefused(f"The file has more than {_MOST_COLUMNS:,} columns.")
        names = _distinct([name.strip() for name in head])
        if escaping is not None and escaping <= {name.lower() for name in names}:
            before, rows = rows.line_num, csv.reader(lines, strict=True, doublequote=False, escapechar="\\")
        for row in rows:
            number = before + rows.line_num
            if not row:
                continue
            if len(row) > len(names):
                yield number, Problem(f"Line {number} has more columns than the head.")
                continue
            yield number, dict(zip(names, row + [""] * (len(names) - len(row)), strict=True))
    except csv.Error:
        number = before + rows.line_num
        yield number, Problem(f"Line {number} is not CSV; what follows was not read.")


def _distinct(names: list[str]) -> list[str]:
    """The names of columns, with a number after one that occurs again: none hides another."""
    found: dict[str, None] = {}
    for name in names:
        number, distinct = 1, name
        while distinct in found:
            number += 1
            distinct = f"{name} #{number}"
        found[distinct] = None
    return [*found]


class Archive:
    """A zip file that is not believed: sizes are counted while it is read, and names never become paths."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
            raise FileRefused("The file is not a whole zip file.") from None
        if len(entries) > MOST_ENTRIES:
            raise FileRefused(f"The zip file has more than {MOST_ENTRIES:,} entries.")
        # only these are unpacked in parts of bounded size
        if any(entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} for entry in entries):
            raise FileRefused("The zip file has an entry that is compressed in a way that no export has.")
        self._left = MOST_BYTES
        self._entries = {entry.filename: entry for entry in entries}
        self._asked: set[str] = set()

    def read(self, name: str, most: int = MOST_BYTES) -> bytes | None:
        """An entry; None where there is none, it is damaged, or larger than `most`."""
        self._asked.add(name)
        entry = self._entries.get(name)
        if entry is None or entry.flag_bits & 1:
            return None
        most = min(most, self._left)
        try:
            with self._zip.open(entry) as opened:
                data = opened.read(most + 1)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error, EOFError):
            return None
        self._left -= min(len(data), most)
        return None if len(data) > most else data

    def count_others(self, folder_name: str) -> int:
        """How many entries of a folder in it nobody asked for."""
        others = self._entries.keys() - self._asked
        return sum(1 for name in others if name.startswith(folder_name) and not name.endswith("/"))


def source_id(*parts: str) -> str:
    """An id for what has none in its file, from what identifies it."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:32]


def content_id(raw: Any) -> str:
    """An id for an object without one, from all that it has."""
    return source_id(json.dumps(raw, sort_keys=True))


def sourced(item: Item, format_name: str, identifier: str, rest: dict[str, Any] | None = None) -> Item:
    """An item with its source."""
    item.source = Source(format=format_name, id=identifier, rest=rest or {})
    return item


def numbered(found: Iterable[Found]) -> Iterator[Found]:
    """The same with a number after an id that is used already: the second is another item."""
    used: set[tuple[str, str]] = set()
    numbers: dict[tuple[str, str], int] = {}  # the newest number of an id that occurs again
    for one in found:
        if isinstance(one, Item) and one.source is not None:
            given = (one.source.format, one.source.id)
            key = given
            while key in used:
                numbers[given] = numbers.get(given, 1) + 1
                key = (given[0], f"{given[1]}#{numbers[given]}")
            used.add(key)
            one.source.id = key[1]
        yield one


def checked(found: Iterable[Found]) -> Iterator[Found]:
    """The same, with a problem in the place of an item that no document can hold."""
    for one in numbered(found):
        if isinstance(one, Item) and (fault := fault_of(one)):
            yield Problem(f"{named(one.title)} {fault}, and was left out.")
        else:
            yield one


def fault_of(item: Item) -> str:
    """Why no document can hold an item; empty where one can."""
    # before anything else, for many items may share a folder: what is long must not be looked at for each of them
    if len(item.folders) > MOST_FOLDERS or sum(map(len, item.folders)) > LONGEST_FOLDERS:
        return "is in too many folders, or in ones with too long names"
    try:
        raw = item.to_stored()
        return _fault(raw) or ("is too large" if len(msgspec.json.encode(raw)) > MOST_ITEM_BYTES else "")
    except (msgspec.ValidationError, RecursionError):
        return "has a member of a wrong type"


def keep_besides(item: Item, more: dict[str, Any]) -> bool:
    """Keep with an item what a file says besides; False where the item, alone or with that, fits into no document."""
    if item.source is None or fault_of(item):
        return False
    before, item.source.rest = item.source.rest, item.source.rest | more
    if fault_of(item):
        item.source.rest = before
        return False
    return True


MOST_BESIDES: Final = MOST_ITEM_BYTES // 2  # it leaves half of the room to the item


def size_besides(kept: Any) -> int | None:
    """How many bytes of JSON something takes that is to be kept besides; None where no document can hold it."""
    try:
        return None if _fault(kept) else len(msgspec.json.encode(kept))
    except RecursionError:
        return None


def fits_besides(kept: Any) -> bool:
    """Whether something can be kept besides."""
    size = size_besides(kept)
    return size is not None and size <= MOST_BESIDES


def unplaced(holder: str, raw: dict[str, Any], known: Container[str]) -> Iterator[Problem]:
    """A sentence for members of a file that no item has a place for."""
    names = [name for name, value in raw.items() if name not in known and value not in ({}, [], "", None, False)]
    if names:
        told = ", ".join(repr(name[:_LONGEST_TITLE]) for name in names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        yield Problem(f"{holder} has what no item has a place for; it was left out: {told}{more}.")


def _fault(value: Any, depth: int = 0) -> str:
    if depth > _DEEPEST:
        return "is nested too deeply"
    if isinstance(value, str):
        return "" if is_unicode(value) else "has text that is not valid Unicode"
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= _LARGEST_INTEGER else "has a number that is too large"
    if isinstance(value, float):
        return "" if abs(value) < float("inf") else "has a number that is not finite"
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = (*value, *value.values())
    elif isinstance(value, list):
        inner = value
    return next((fault for one in inner if (fault := _fault(one, depth + 1))), "")


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def named(title: Any, number: int | None = None) -> str:
    """An item in a sentence: by its title, or by its place in the file."""
    if isinstance(title, str) and title.strip():
        return f"The item {title.strip()[:_LONGEST_TITLE]!r}"
    return "An item without a title" if number is None else f"The item number {number}"


def text_of(value: Any) -> str:
    """A text of another program: null is an empty one, and a number is spelled."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise msgspec.ValidationError("Expected `str`")


def items_of(value: Any) -> list[Any]:
    """A list of another program: null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise msgspec.ValidationError("Expected `array`")
    return value


def members(value: Any) -> dict[str, Any]:
    """An object of another program: null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise msgspec.ValidationError("Expected `object`")
    return value


def folder(*names: str) -> str:
    """The path of a folder, by the names of it and of those around it."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


def inner_folder(path: str, name: str) -> str:
    """The path of a folder in another. One that is too long is cut, and stays too long."""
    return (f"{path}/{folder(name)}" if path else folder(name))[: LONGEST_FOLDERS + 1]


def folder_names(path: str) -> list[str]:
    """The names in the path of a folder."""
    return [name.replace("%2F", "/").replace("%25", "%") for name in path.split("/")]


_WHEN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def seconds(value: Any) -> int | None:
    """A time in ISO 8601, or in seconds, as seconds since 1970; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= _LARGEST_INTEGER else None
    if not isinstance(value, str) or not _WHEN.fullmatch(value):
        return None
    try:
        return int(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError):
        return None


def iso_time(value: int) -> str:
    """Seconds since 1970 as Bitwarden writes a time."""
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00.000Z"
