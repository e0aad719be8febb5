"""Operations that write items: on this device at once, to the server with the next sync. History is the server's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.agent.catalog import Entry, entry_of
from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed
from strongroom.items import Item, ItemNotFound, OneTimeCode, Other, find_item, is_reference, parse_reference
from strongroom.items import totp as one_time

if TYPE_CHECKING:
    from strongroom.agent.account import Account
    from strongroom.agent.conversation import Conversation
    from strongroom.client import Document, Items, ReplicaItems

FIRST_VAULT: Final = "Personal"
_MOST: Final = 1_000  # items that are written at a time
_TIME_TO_SEND: Final = 3.0  # seconds to send what waits, before something is deleted


def _item(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """An item with its values, as it is stored."""
    account = operations.unlocked_account()
    entry = account.catalog.find(member(request, "item"))
    return _whole(entry, account.catalog.document(entry))


def _whole(entry: Entry, document: Document[Item]) -> dict[str, Any]:
    return entry.shown() | {"version": document.version, "proof": document.proof, "item": document.raw}


def _add(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """A new item. Without a vault it goes to the only one; where there is none, to a first one."""
    account = operations.unlocked_account()
    vault = _vault(account, request)
    document = _items(account, vault, create=bool(request.get("create"))).create(_checked(request.get("item")))
    entry = entry_of(document, vault)
    account.catalog.put(entry)
    account.changed()
    return entry.shown()


def _add_many(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """New items in one transaction: all or none. Their ids, in their order."""
    account, given = operations.unlocked_account(), request.get("items")
    if not isinstance(given, list) or len(given) > _MOST:
        raise Failed("invalid", f"The member items of the request must be a list of at most {_MOST:,} items.")
    vault, values = _vault(account, request), [_checked(one) for one in given]
    made = _items(account, vault, create=bool(request.get("create"))).create_many(values)
    account.catalog.forget()
    account.changed()
    return [one.uid for one in made]


def _replace(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """Another value for an item, if it is still the one that the command has seen."""
    account = operations.unlocked_account()
    entry = account.catalog.find(member(request, "id"))
    items = _items(account, entry.vault)
    document = items.get(entry.id)
    if document.proof != member(request, "proof"):
        raise Failed("document_conflict", "The item was changed meanwhile; nothing was written. Look at it again.")
    document = items.replace(document, _checked(request.get("item")))
    entry = entry_of(document, entry.vault)
    account.catalog.put(entry)
    account.changed()
    return entry.shown()


def _remove(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """Delete an item: it is in the trash of the server for a time. What was never sent is in no trash."""
    account = operations.unlocked_account()
    entry = account.catalog.find(member(request, "id"))
    sent = account.flush(_TIME_TO_SEND)
    items = _items(account, entry.vault)
    items.delete(items.get(entry.id))
    account.catalog.drop(entry.id)
    account.changed()
    return entry.shown() | {"restorable": sent}


def _history(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """The versions of an item that are kept, the newest first; or one of them, whole."""
    account = operations.unlocked_account()
    entry = account.catalog.find(member(request, "item"))
    with account.person.at(conversation):
        account.sync()
        items = _on_server(account, entry.vault)
        version = request.get("version")
        if isinstance(version, int):
            return _whole(entry, items.get_version(entry.id, version))
        now = items.get(entry.id)
        kept = [{"version": now.version, "updatedAt": now.updated_at, "current": True, "deleted": False}]
        kept += [
            {"version": one.version, "updatedAt": one.updated_at, "current": False, "deleted": one.deleted}
            for one in items.history(entry.id)
        ]
    return entry.shown() | {"versions": kept}


def _trash(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """The deleted items of a vault, or of all, that can be restored."""
    account = operations.unlocked_account()
    wanted = request.get("vault")
    with account.person.at(conversation):
        account.sync()
        names = [wanted] if isinstance(wanted, str) else [one.name for one in account.replica.vaults()]
        return [
            entry_of(one, name).shown()
            for name in names
            for one in _on_server(account, account.catalog.shelf(name).vault).trash
        ]


def _restore(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """A deleted item again, or an item as it was at a version."""
    account, version = operations.unlocked_account(), request.get("version")
    reference = parse_reference(member(request, "item"))
    with account.person.at(conversation):
        account.sync()
        vault = account.catalog.shelf(reference.vault).vault
        items = _on_server(account, vault)
        if isinstance(version, int):
            entry = account.catalog.find(member(request, "item"))
            document = items.restore(items.get(entry.id), version)
        else:
            try:
                found = find_item(reference.item, items.trash)
            except ItemNotFound:
                raise Failed(
                    "item_not_found", f"There is no deleted item {reference.item!r} in the trash of {vault!r}."
                ) from None
            document = items.revive(found)
        account.sync()
    return entry_of(document, vault).shown()


def _totp(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """The one-time code of an item, and for how long it is good."""
    account = operations.unlocked_account()
    name = member(request, "item")
    if is_reference(name):
        reference = parse_reference(name)
        name = str(msgspec.structs.replace(reference, field="", section=""))
    entry = account.catalog.find(name)
    item = account.catalog.document(entry).value
    secret = getattr(item, "totp", None)
    if not isinstance(secret, OneTimeCode):
        raise Failed("field_not_found", f"The item {entry.title!r} has no one-time codes.")
    now = time.time()
    return {"code": one_time.code(secret, now), "seconds": one_time.seconds_left(secret, now)}


def _vault(account: Account, request: dict[str, Any]) -> str:
    named = request.get("vault")
    if isinstance(named, str) and named:
        return named if request.get("create") else account.catalog.shelf(named).vault
    names = [one.name for one in account.replica.vaults()]
    if len(names) > 1:
        raise Failed("invalid", f"Say which vault with --vault: {', '.join(sorted(names))}.")
    if not names:
        account.replica.vault(FIRST_VAULT, create=True)
    return names[0] if names else FIRST_VAULT


def _items(account: Account, vault: str, *, create: bool = False) -> ReplicaItems:
    return account.replica.vault(vault, create=create).items()


def _on_server(account: Account, vault: str) -> Items:
    return account.client.vault(vault).items()


def _checked(raw: Any) -> Item:
    """An item from its JSON, if it fits its type. The error shows no value."""
    item = Item.from_stored(raw)
    if isinstance(item, Other) and item.problem:
        raise Failed("invalid", item.problem)
    if not item.title.strip():
        raise Failed("invalid", "An item needs a title.")
    try:
        item.to_stored()
    except msgspec.ValidationError as error:
        raise Failed("invalid", f"The item does not fit its type: {error}.") from None
    return item


OPERATIONS: dict[str, Operation] = {
    "item": _item,
    "add": _add,
    "add_many": _add_many,
    "replace": _replace,
    "remove": _remove,
    "history": _history,
    "trash": _trash,
    "restore": _restore,
    "totp": _totp,
}
