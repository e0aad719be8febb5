"""Operations for imports and exports: where the items of a vault came from, and all items with their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed
from strongroom.errors import DocumentNotFound
from strongroom.items import Source

if TYPE_CHECKING:
    from strongroom.agent.conversation import Conversation

_PAGE: Final = 16 << 20  # bytes of a page


def _sources(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """The items of a vault by uid, each with the format and the id that it was imported from; none of a new vault."""
    catalog = operations.unlocked_account().catalog
    try:
        shelf = catalog.shelf(member(request, "vault"))
    except Failed as failed:
        if failed.code == "vault_not_found":
            return []
        raise
    found = []
    for document in shelf.items:
        source = document.value.source or Source()
        found.append([document.uid, source.format, source.id])
    return found


def _export(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """The first of these items with their values, and how many ids that were. What is gone by now is skipped."""
    catalog, ids = operations.unlocked_account().catalog, request.get("ids")
    if not isinstance(ids, list):
        raise Failed("invalid", "The member ids of the request must be a list.")
    vaults = {entry.id: entry.vault for entry in catalog.entries()}
    shelves = {name: catalog.shelf(name) for name in {*vaults.values()}}
    found: list[dict[str, Any]] = []
    size = done = 0
    for uid in ids:
        done += 1
        try:
            document = shelves[vaults[uid]].items.get(uid)
        except (KeyError, TypeError, DocumentNotFound):
            continue
        found.append({"id": uid, "vault": vaults[uid], "item": document.value.to_stored()})
        size += len(msgspec.json.encode(found[-1]))
        if size > _PAGE:
            break
    return {"items": found, "done": done}


OPERATIONS: dict[str, Operation] = {"sources": _sources, "export": _export}
