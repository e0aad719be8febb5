"""A server of the bare specification: it makes the uids itself, promises no order, and may hide what is deleted.

A uid must be known before anything is sealed. So a new document begins as a reservation, which holds nothing: a notice
of deletion, sealed for the uid `reserved`. The server answers with a uid, and the document follows as version 2. A
reservation that nothing followed is no document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom import model
from strongroom.client.errors import Tampered
from strongroom.client.format import seal
from strongroom.client.format.seal import Opened
from strongroom.client.net import requests, responses
from strongroom.errors import DocumentNotFound

if TYPE_CHECKING:
    from strongroom.client.format.keys import AccountKey, CollectionKey, VaultKey
    from strongroom.client.format.seal import Sealed, SealedBlob
    from strongroom.client.net.responses import Vault

RESERVED: Final = "reserved"


def reservation(keys: CollectionKey) -> Sealed:
    """What a new document begins as."""
    return seal.seal_deletion(keys, RESERVED, 1)


def open_document(keys: CollectionKey, row: model.Document) -> Opened:
    """Believe a row. A server of this kind may delete without counting, and may keep reservations."""
    try:
        return seal.open_document(keys, row)
    except Tampered:
        if row.deleted_at is not None:
            return _deleted(seal.open_document(keys, msgspec.structs.replace(row, deleted_at=None)))
        if row.version != 1:
            raise
    return _deleted(seal.open_document(keys, msgspec.structs.replace(row, uid=RESERVED)))


def _deleted(made: Opened) -> Opened:
    if not made.deleted:
        raise Tampered
    return made


def delete_call(vault: str, uid: str, version: int) -> requests.Call[Any]:
    """The server's own deletion, whose answer the specification does not show."""
    asked = requests.delete_document(vault, uid, version)
    return requests.Call(
        method=asked.method,
        path=asked.path,
        body=asked.body,
        read=responses.anything,
        refusals=asked.refusals,
        done=(DocumentNotFound,),
        most=asked.most,
    )


# A vault that must carry a blob from the start carries a reservation, until its uid is known.


def reserved_blob(keys: AccountKey, wire: str) -> SealedBlob:
    """A blob that holds nothing."""
    return seal.seal_blob(keys.vault(RESERVED), wire, 1, None)


def is_reserved(keys: AccountKey, opened: VaultKey, row: Vault) -> bool:
    """Whether a vault still carries its reservation."""
    if row.version != 1:
        return False
    try:
        seal.open_blob(opened, row)
    except Tampered:
        seal.open_blob(keys.vault(RESERVED), msgspec.structs.replace(row, uid=RESERVED))
        return True
    return False
