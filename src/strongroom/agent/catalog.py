"""Which items there are, without their values; and one field of one item where it is asked for.

Names of all items are held in memory, so that an item is found without opening all others. Values are not: each is
opened when it is asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from strongroom.agent.protocol import Failed
from strongroom.client import Document
from strongroom.errors import Refusal
from strongroom.items import Item, Login, Reference, field, fields_of, find_item, is_reference, parse_reference


class Items(Protocol):
    """The items of a vault, on this device or on a server."""

    def __iter__(self) -> Iterator[Document[Item]]: ...
    def get(self, uid: str, *, deleted: bool = False) -> Document[Item]:
        """One item."""
        ...


class Shelf(NamedTuple):
    """A vault and its items."""

    vault: str
    uid: str
    items: Items


class Entry(Struct, frozen=True, kw_only=True):
    """An item without its values. `fields` are the names of those that are not empty, `concealed` the secret ones."""

    id: str
    type: str
    title: str
    vault: str
    username: str
    urls: list[str]
    tags: list[str]
    favorite: bool
    fields: list[str]
    concealed: list[str]
    updated_at: int

    @property
    def reference(self) -> str:
        """How it is named."""
        return str(Reference(self.vault, self.title or self.id))

    def shown(self) -> dict[str, Any]:
        """The entry as JSON."""
        told = {name: getattr(self, name) for name in self.__struct_fields__ if name != "updated_at"}
        return told | {"reference": self.reference, "updatedAt": self.updated_at}


class Catalog:
    """The items of all vaults. `shelves` gives the vaults of now."""

    def __init__(self, shelves: Callable[[], Iterable[Shelf]]) -> None:
        self._shelves = shelves
        self._lock = threading.Lock()
        self._entries: list[Entry] | None = None
        self._changes = 0  # how often something was put or dropped: a list that was begun before that is stale

    def forget(self) -> None:
        """Look again, because something has changed."""
        with self._lock:
            self._changes += 1
            self._entries = None

    def refresh(self) -> None:
        """Look again now; who asks meanwhile gets what was there before."""
        while True:
            begun = self._changes
            found = self._look()
            with self._lock:
                if begun == self._changes:
                    self._entries = found
                    return

    def put(self, entry: Entry) -> None:
        """An item is new, or has changed."""
        self.drop(entry.id, entry)

    def drop(self, uid: str, entry: Entry | None = None) -> None:
        """An item is gone, or another entry stands for it."""
        with self._lock:
            self._changes += 1
            if self._entries is not None:
                kept = [one for one in self._entries if one.id != uid]
                self._entries = kept if entry is None else sorted([*kept, entry], key=_order)

    def _look(self) -> list[Entry]:
        found = [entry_of(one, shelf.vault) for shelf in self._shelves() for one in shelf.items]
        return sorted(found, key=_order)

    def entries(self, vault: str | None = None) -> list[Entry]:
        """All items, those of one vault if it is named."""
        while (found := self._entries) is None:
            self.refresh()
        if vault is None:
            return found
        name = self.shelf(vault).vault
        return [one for one in found if one.vault == name]

    def shelf(self, vault: str) -> Shelf:
        """The vault of this name; capitals do not matter where no name is the same."""
        shelves = list(self._shelves())
        same = [one for one in shelves if vault in {one.vault, one.uid}]
        alike = same or [one for one in shelves if one.vault.casefold() == vault.casefold()]
        if len(alike) == 1:
            return alike[0]
        if alike:
            raise Failed("ambiguous_name", f"Several vaults are named {vault!r} in other capitals; write it exactly.")
        raise Failed("vault_not_found", f"There is no vault {vault!r}; run: strongroom sync, if it is new.")

    def find(self, name: str) -> Entry:
        """The item that is meant: `sr://vault/item`, `vault/item`, a title in any vault, or a uid."""
        if is_reference(name):
            reference = parse_reference(name)
            return self._in(reference.vault, reference.item)
        vault, slash, item = name.partition("/")
        if slash and any(one.vault.casefold() == vault.casefold() for one in self._shelves()):
            try:  # first: who may write another vault could put an item with this title in the way
                return self._in(vault, item)
            except Failed as failed:
                if failed.code != "item_not_found":
                    raise
        return _named(self.entries(), name)

    def _in(self, vault: str, item: str) -> Entry:
        return _named(self.entries(vault), item)

    def document(self, entry: Entry) -> Document[Item]:
        """The document of an item."""
        return self.shelf(entry.vault).items.get(entry.id)

    def read(self, reference: str) -> bytes:
        """The value that a reference names."""
        parsed = parse_reference(reference)
        item = self.document(self._in(parsed.vault, parsed.item)).value
        return field(item, parsed.field, parsed.section, time.time()).data

    def field(self, name: str, wanted: str) -> bytes:
        """A field of an item, by names as a person types them: the main one where none is named."""
        if is_reference(name) and not wanted:
            parsed = parse_reference(name)
            entry, wanted, section = self._in(parsed.vault, parsed.item), parsed.field, parsed.section
        else:
            entry = self.find(name)
            section, _, wanted = wanted.rpartition("/")
        item = self.document(entry).value
        return field(item, wanted, section, time.time()).data


def entry_of(document: Document[Item], vault: str) -> Entry:
    """An item without its values."""
    item = document.value
    fields = fields_of(item)
    return Entry(
        id=document.uid,
        type=item.type,
        title=item.title,
        vault=vault,
        username=item.username if isinstance(item, Login) else "",
        urls=list(item.urls),
        tags=list(item.tags),
        favorite=item.favorite,
        fields=[one.path for one in fields],
        concealed=[one.path for one in fields if one.concealed],
        updated_at=document.updated_at,
    )


class _Titled(NamedTuple):
    """An entry as `find_item` takes it."""

    uid: str
    value: Item
    entry: Entry


def _order(entry: Entry) -> tuple[str, str, str]:
    return entry.vault.casefold(), entry.title.casefold(), entry.id


def _named(entries: list[Entry], name: str) -> Entry:
    same = [one for one in entries if name in {one.title, one.id}]
    if len(same) == 1:
        return same[0]
    try:
        return find_item(name, (_Titled(one.id, Item(title=one.title), one) for one in entries)).entry
    except Refusal as refusal:
        raise Failed(refusal.code, refusal.message, refusal.details) from None
