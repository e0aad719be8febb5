"""What a foreign format has no place for travels beside it, in a member of our own that other programs ignore.

The writer reads again what it has written, and keeps the members of the item that come back differently. The reader
puts them in the place of what it has read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.items.types import Item, Source

STRONGROOM: Final = "strongroom"  # the format of an item that was made here; its id is the uid of the document


def overlay(uid: str, item: Item, read_again: Item, format_name: str) -> dict[str, Any]:
    """The members that would be lost or changed; null stands for one that the item does not have."""
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
