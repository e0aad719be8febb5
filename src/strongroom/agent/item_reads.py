"""Operations that read: which items there are, and what references name."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed

if TYPE_CHECKING:
    from strongroom.agent.conversation import Conversation


def _items(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    vault = request.get("vault")
    if vault is not None and not isinstance(vault, str):
        raise Failed("invalid", "The member vault of the request must be text.")
    return [one.shown() for one in operations.unlocked_account().catalog.entries(vault)]


def _read(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    references = request.get("references")
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        raise Failed("invalid", "The member references of the request must be a list of texts.")
    return read_all(operations.unlocked_account().catalog.read, references)


def _get(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    name, wanted = member(request, "item"), member(request, "field", "")
    data = operations.unlocked_account().catalog.field(name, wanted)
    return base64.b64encode(data).decode() if request.get("binary") else text_of(data, name)


def _find(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    return operations.unlocked_account().catalog.find(member(request, "item")).shown()


def read_all(read: Any, references: list[str]) -> dict[str, str]:
    """The value of every reference; the first that cannot be read fails all, and is named."""
    from strongroom.errors import Refusal

    found = {}
    for one in references:
        try:
            found[one] = text_of(read(one), one)
        except Failed as failed:
            raise Failed(failed.code, f"{one}: {failed.message}", failed.details) from None
        except Refusal as refusal:
            raise Failed(refusal.code, f"{one}: {refusal.message}", refusal.details) from None
    return found


def text_of(data: bytes, name: str) -> str:
    """A value as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Failed(
            "not_text", f"{name} is a file whose content is not text; run: strongroom get --output FILE"
        ) from None


OPERATIONS: dict[str, Operation] = {"items": _items, "read": _read, "get": _get, "find": _find}
