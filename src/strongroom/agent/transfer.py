"""Operations for imports and exports: where the items of a vault came from, and all items with their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed
from strongroom.items import Source

if TYPE_CHECKING:
    from strongroom.agent.conversation import Conversation

_PAGE: Final = 16 << 20  # bytes of a page
_MOST: Final = 1_000  # items of a page


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
    """A page of all items with their values, from a place in their order on; where the next begins, if there is one."""
    catalog = operations.unlocked_account().catalog
    vault, at = request.get("vault"), request.get("at", 0)
    if not isinstance(at, int) or at < 0:
        raise Failed("invalid", "The member at of the request must be a number.")
    entries = catalog.entries(vault if isinstance(vault, str) else None)
    found: list[dict[str, Any]] = []
    size = 0
    for entry in entries[at : at + _MOST]:
        document = catalog.document(entry)
        found.append({"id": document.uid, "vault": entry.vault, "item": document.value.to_stored()})
        size += len(msgspec.json.encode(found[-1]))
        if size > _PAGE:
            break
    after = at + len(found)
    return {"items": found, "total": len(entries), "next": after if after < len(entries) else None}


OPERATIONS: dict[str, Operation] = {"sources": _sources, "export": _export}
