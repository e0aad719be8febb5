"""References to fields: `sr://vault/item/field`, and how an item is found by its title or uid.

    sr://Personal/GitHub                  the main field of the item: of a login, the password
    sr://Personal/GitHub/username         a field
    sr://Personal/GitHub/Recovery/PIN     a field of a section
    sr://Work/AC%2FDC%20tickets/password  `/`, `?`, `#` and `%` in a name are percent-encoded, in UTF-8

The vault is named by its name, the item by its title or its uid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from strongroom.items.errors import AmbiguousName, InvalidReference, ItemNotFound
from strongroom.items.types import Item

SCHEME: Final = "sr://"
LONGEST: Final = 4_096  # characters of a reference
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE: Final = "!$&'()*+,;=:@"  # besides letters, digits and -._~
_MOST_CANDIDATES: Final = 10


class Reference(Struct, frozen=True):
    """A vault, an item in it, and a field of that. An empty field is the item's main one."""

    vault: str
    item: str
    field: str = ""
    section: str = ""

    def __str__(self) -> str:
        parts = (self.vault, self.item, self.section, self.field)
        return SCHEME + "/".join(quote(part, safe=_SAFE) for part in parts if part)


def is_reference(text: str) -> bool:
    """Whether a text is meant as a reference; `parse_reference` says whether it is a right one."""
    return text[: len(SCHEME)].lower() == SCHEME


def parse_reference(text: str) -> Reference:
    """The reference that a text is. Spaces and letters of any language may stand in it as they are."""
    if not is_reference(text):
        raise InvalidReference
    if len(text) > LONGEST:
        raise InvalidReference(f"A reference has at most {LONGEST:,} characters.")
    if any(not char.isprintable() for char in text):
        raise InvalidReference("A reference has no line breaks and no control characters; percent-encode them.")
    rest = text[len(SCHEME) :]
    if "?" in rest or "#" in rest:
        raise InvalidReference("In a reference, ? is written as %3F and # as %23.")
    if _BAD_PERCENT.search(rest):
        raise InvalidReference("In a reference, a % stands before two hexadecimal digits; % itself is written as %25.")
    try:
        parts = [unquote_to_bytes(part).decode() for part in rest.split("/")]
    except UnicodeDecodeError:
        raise InvalidReference("What is percent-encoded in the reference is not UTF-8.") from None
    if not 2 <= len(parts) <= 4 or not all(parts):
        raise InvalidReference(
            "A reference has the form sr://vault/item/field or sr://vault/item/section/field; "
            "a / in a name is written as %2F."
        )
    vault, item, *path = parts
    return Reference(vault, item, path[-1] if path else "", path[0] if len(path) == 2 else "")


class Stored(Protocol):
    """A document that holds an item."""

    @property
    def uid(self) -> str:
        """The uid of the document."""

    @property
    def value(self) -> Item:
        """The item."""


S = TypeVar("S", bound=Stored)


def find_item(name: str, documents: Iterable[S]) -> S:
    """The item that a name means: by its uid; else by its title; else by its title without regard to capitals."""
    titled: list[S] = []
    alike: list[S] = []
    for one in documents:
        if one.uid == name:
            return one
        title = one.value.title
        if title == name:
            titled.append(one)
        elif title.strip().casefold() == name.strip().casefold():
            alike.append(one)
    fitting = titled or alike
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise ItemNotFound(f"There is no item {name!r}.")
    uids = [one.uid for one in fitting]
    told = ", ".join(f"{one.value.title!r} ({one.uid})" for one in fitting[:_MOST_CANDIDATES])
    more = f" and {len(fitting) - _MOST_CANDIDATES} more" if len(fitting) > _MOST_CANDIDATES else ""
    raise AmbiguousName(f"{len(fitting)} items are named {name!r}; say the uid of one: {told}{more}.", uids)
