"""What a foreign format has no place for travels beside it, in a member of our own that other programs ignore.

The writer reads again what it has written, and keeps the members of the item that come back differently. The reader
puts them in the place of what it has read.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from strongroom.items.types import Item, Source

STRONGROOM: Final = "strongroom"  # the format of an item that was made here; its id is the uid of the document
_NUMBERED: Final = re.compile(r".*#\d+", re.DOTALL)


class SourceIds:
    """The ids that the items of an export have in its format: none occurs twice."""

    def __init__(self, format_name: str) -> None:
        self._format = format_name
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}  # the newest number of an id that occurs again

    def of(self, item: Item) -> str | None:
        """The id of an item, with a number where it is used already; None where it came from elsewhere."""
        if item.source is None or item.source.format != self._format:
            return None
        found = given = item.source.id
        while found in self._used:
            self._numbers[given] = self._numbers.get(given, 1) + 1
            found = f"{given}#{self._numbers[given]}"
        self._used.add(found)
        return found


def is_numbered(source_id: str) -> bool:
    """Whether an id has a number, which it got here: it is none of the other program, and travels in the overlay."""
    return _NUMBERED.fullmatch(source_id) is not None


def overlay(uid: str, item: Item, read_again: Item, format_name: str, kept_id: str | None = None) -> dict[str, Any]:
    """The members that would be lost or changed; null stands for one that the item does not have.

    `kept_id` is the id of its source, where what is written does not have it.
    """
    mine, theirs = item.to_stored(), read_again.to_stored()
    mine.pop("source", None)
    theirs.pop("source", None)
    source = source_of(item)
    found = {name: value for name, value in mine.items() if theirs.get(name) != value}
    found |= {name: None for name in theirs if name not in mine}
    if source is None:
        found["source"] = {"format": STRONGROOM, "id": uid}
    elif item.source is None or source.format != format_name:
        found["source"] = source.to_json()
    elif kept_id is not None:
        found["source"] = source.to_json() | {"id": kept_id}
    return found


def with_overlay(item: Item, found: Any) -> Item:
    """The item that was written, by what was read and what travelled beside it."""
    if not isinstance(found, dict):
        return item
    whole = item.to_stored() | found
    return Item.from_stored({name: value for name, value in whole.items() if value is not None})


def source_of(item: Item) -> Source | None:
    """The source of an item; a document that does not fit its type has it among its members as they came."""
    if item.source is not None:
        return item.source
    try:
        return Source.from_json(item.extra.get("source"))
    except msgspec.ValidationError:
        return None
