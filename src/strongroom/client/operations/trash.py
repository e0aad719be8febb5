"""The trash: deleted documents are revived, or purged for good.

That a document is deleted is proven by its notice. That its content is gone from the server is the server's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.client.errors import Tampered
from strongroom.client.format import seal
from strongroom.client.net import requests
from strongroom.client.operations import documents
from strongroom.client.operations.documents import WRONG_DOCUMENT
from strongroom.errors import DocumentNotFound, Invalid

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Document, KeyScope

_NOT_PURGED: Final = "The server did not purge the document that it was told to."
_ENDLESS: Final = "The server says again and again that there is more to purge."
_EMPTY: Final = "The content of this document is gone from the server; create a new document."
_MOST_REQUESTS: Final = 100_000


def revive(core: Core, scope: KeyScope, document: Document) -> Effects[Document]:
    """A deleted document with its last value again, if it has not changed since it was read."""
    _require_deleted(scope, document)
    if document.purged:
        raise DocumentNotFound(_EMPTY)
    return (yield from documents.replace_raw(core, scope, document, document.raw))


def purge(core: Core, scope: KeyScope, document: Document) -> Effects[None]:
    """Purge the content and the history of a deleted document, if it has not changed since it was read."""
    _require_deleted(scope, document)
    mark = core.device.mark()
    row = yield from core.session.send(requests.documents.purge(scope.vault, document.uid, document.version))
    if (row.uid, row.version, row.hmac) != (document.uid, document.version, document.proof):
        raise Tampered(WRONG_DOCUMENT)
    if row.data or row.deleted_at is None:
        raise Tampered(_NOT_PURGED)
    core.device.record(row, mark, deleted=seal.verify_document(scope.key(row.collection), row).deleted)


def _require_deleted(scope: KeyScope, document: Document) -> None:
    """Refuse a document that was not deleted when it was read."""
    documents.wire_collection(scope, document)
    if not document.deleted:
        raise Invalid({"document": "is not deleted; give one that delete has returned, or one of the trash"})


def empty(core: Core, scope: KeyScope) -> Effects[int]:
    """Purge all deleted documents of a vault, or of one collection; how many, as the server says."""
    scope = documents.renewed(core, scope)
    purged = 0
    for wire in (None,) if scope.collection_keys is None else scope.collection_keys.wires:
        for _ in range(_MOST_REQUESTS):
            done = yield from core.session.send(requests.documents.empty_trash(scope.vault, wire))
            purged += done.purged
            if not done.has_more:
                break
            if not done.purged:
                raise Tampered(_ENDLESS)
        else:
            raise Tampered(_ENDLESS)
    return purged
