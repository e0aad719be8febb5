"""Plaintext export of an account, as lines of JSON.

    {"vault": "personal", "uid": "…", "blob": …}     a vault, with its blob if it has one
    {"vault": "personal", "collection": "notes", "uid": "…", "version": 3, "value": …}     a document

Bytes stand as {"base64": "…"} under `bytes`, in the place of `value` or `blob`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from strongroom.client.format.encoding import to_base64
from strongroom.client.operations import documents, vaults
from strongroom.client.operations.listing import Listing

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core

_encode = msgspec.json.Encoder().encode


def export(core: Core, write: Callable[[bytes], object]) -> Effects[int]:
    """Write every vault and every live document; returns the number of documents."""
    count = 0
    for listed in (yield from vaults.list_vaults(core)):
        vault, row, gap = yield from vaults.current_row(core, listed)
        blob = vaults.to_blob(vault, row, gap=gap)
        line: dict[str, Any] = {"vault": vault.name, "uid": vault.uid}
        write(_encode(line | ({} if blob is None else _value_field("blob", blob.raw))) + b"\n")
        listing = Listing(core, documents.key_scope(vault.keys), None)
        while listing.more:
            for document in (yield from listing.page()):
                line = {
                    "vault": vault.name,
                    "collection": document.collection,
                    "uid": document.uid,
                    "version": document.version,
                }
                write(_encode(line | _value_field("value", document.raw)) + b"\n")
                count += 1
    return count


def _value_field(name: str, value: Any) -> dict[str, Any]:
    return {"bytes": {"base64": to_base64(value)}} if isinstance(value, bytes) else {name: value}
