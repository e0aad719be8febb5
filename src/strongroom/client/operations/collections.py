"""The collections of a vault.

A sealed name proves that a key holder named a collection of this vault so. Which of them hold documents is the server's
word, as far as this device has not seen one in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import names
from strongroom.client.net import requests
from strongroom.client.operations import documents, keyrings, vaults
from strongroom.client.operations.documents import WITHHELD
from strongroom.errors import Invalid

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.vaults import OpenVault

_ORDER: Final = "The server's list of collections shows one twice, or does not end."


def list_collections(core: Core, vault: OpenVault) -> Effects[list[str]]:
    """The names of the collections that hold documents, sorted."""
    vault = vaults.renewed(core, vault)
    wires: dict[str, None] = {}
    after, more = None, True
    while more:
        page = yield from core.session.send(requests.vaults.list_collections(vault.uid, after))
        count = len(wires) + len(page.collections)
        wires |= dict.fromkeys(page.collections)
        if len(wires) != count or (page.has_more and not page.collections):
            raise Tampered(_ORDER)
        after, more = next(reversed(wires), None), page.has_more
    found = set()
    for wire in wires:
        try:
            found.add(_name(vault, wire))
        except Locked:
            if core.ring is None:
                raise
            yield from keyrings.reload(core)  # perhaps another device has rotated the vault's key
            vault = vaults.renewed(core, vault)
            found.add(_name(vault, wire))
    yield from _check_missing(core, vault, set(wires))
    return sorted(found)


def _name(vault: OpenVault, wire: str) -> str:
    """What people call a collection; refused where its name is not in the manner of this vault."""
    if vault.sealed:
        return names.open_collection_name(vault.keys, wire)
    try:
        return names.plain(wire, "collection")
    except Invalid:
        raise Tampered from None


def _check_missing(core: Core, vault: OpenVault, wires: set[str]) -> Effects[None]:
    """Refuse a list without a collection in which this device has seen a document that is still there."""
    seen = {known.collection: uid for uid, known in core.device.live(vault.uid).items()}
    scope = documents.key_scope(vault.keys)
    for wire, uid in seen.items():
        if wire in wires:
            continue
        known = core.device.known(vault.uid, uid)
        document = yield from documents.get(core, scope, uid, deleted=True)
        if known is not None and not document.deleted and document.version == known.row.version:
            raise RolledBack(WITHHELD)
