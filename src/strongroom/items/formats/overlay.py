"""What a foreign format has no place for travels beside it, in a member of our own that other programs ignore.

The writer reads again what it has written, and keeps the members of the item that come back differently. The reader
puts them in the place of what it has read.
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.items.types import Item

STRONGROOM: Final = "strongroom"  # the format of an item that was made here; its id is the uid of the document


def overlay(uid: str, item: Item, read_again: Item, format_name: str) -> dict[str, Any]:
    """The members that would be lost or changed; null stands for one that the item does not have."""
    mine, theirs = item.to_stored(), read_again.to_stored()
    source = mine.pop("source", None)
    theirs.pop("source", None)
    found = {name: value for name, value in mine.items() if theirs.get(name) != value}
    found |= {name: None for name in theirs if name not in mine}
    if source is None:
        found["source"] = {"format": STRONGROOM, "id": uid}
    elif source.get("format") != format_name:
        found["source"] = source
    return found


def with_overlay(item: Item, found: Any) -> Item:
    """The item that was written, by what was read and what travelled beside it."""
    if not isinstance(found, dict):
        return item
    return Item.from_stored(item.to_stored() | found)
