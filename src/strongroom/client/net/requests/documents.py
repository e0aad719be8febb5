"""Requests of documents: single ones, lists, the trash, history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom import errors
from strongroom.client.format.seal import Sealed
from strongroom.client.net import decoders
from strongroom.client.net.call import LARGE, Call, encode, path_part
from strongroom.errors import Refusal
from strongroom.model import Document
from strongroom.wire import responses

_NO_DOCUMENT: Final[Mapping[int, type[Refusal]]] = {
    404: errors.DocumentNotFound,
    409: errors.DocumentConflict,
    412: errors.DocumentConflict,
}


def _path(vault: str) -> str:
    return f"/vaults/{path_part(vault)}/documents"


def _document_path(vault: str, uid: str) -> str:
    return f"{_path(vault)}/{path_part(uid)}"


def create(vault: str, uid: str, collection: str, sealed: Sealed, keyring_version: int | None = None) -> Call[Document]:
    """Create a document."""
    body = encode({"collection": collection, "data": sealed.data, "hmac": sealed.hmac, "uid": uid})
    return Call(
        method="POST",
        path=_path(vault),
        body=body,
        decode=decoders.document,
        refusals={404: errors.VaultNotFound, 409: errors.UidTaken},
        already_done=(errors.UidTaken,),
        max_bytes=LARGE,
        keyring_version=keyring_version,
    )


def get(vault: str, uid: str) -> Call[Document]:
    """Get a document, deleted or not."""
    return Call(
        method="GET", path=_document_path(vault, uid), decode=decoders.document, refusals=_NO_DOCUMENT, max_bytes=LARGE
    )


def put(vault: str, uid: str, sealed: Sealed, version: int, keyring_version: int | None = None) -> Call[Document]:
    """Replace the ciphertext of a document of this version."""
    body = encode({"data": sealed.data, "hmac": sealed.hmac, "version": version})
    return Call(
        method="PUT",
        path=_document_path(vault, uid),
        body=body,
        decode=decoders.document,
        refusals=_NO_DOCUMENT,
        max_bytes=LARGE,
        keyring_version=keyring_version,
    )


def list_page(
    vault: str,
    *,
    collection: str | None = None,
    since: int | None = None,
    limit: int,
    deleted: bool | None = None,
    trash: bool = False,
    wait: int = 0,
) -> Call[responses.Documents]:
    """List a page of documents; with `trash`, only of deleted ones that can be revived."""
    query: list[tuple[str, str]] = []
    if collection is not None:
        query.append(("collection", collection))
    if since is not None:
        query.append(("since", str(since)))
    query.append(("limit", str(limit)))
    if trash:
        query.append(("deleted", "only"))
    elif deleted is not None:
        query.append(("includeDeleted", "true" if deleted else "false"))
    if wait:
        query.append(("wait", str(wait)))
    return Call(
        method="GET",
        path=_path(vault),
        query=tuple(query),
        decode=decoders.documents,
        refusals={404: errors.VaultNotFound},
        max_bytes=LARGE,
        wait=wait,
    )


def purge(vault: str, uid: str, version: int) -> Call[Document]:
    """Purge a deleted document of this version."""
    return Call(
        method="DELETE",
        path=f"/vaults/{path_part(vault)}/trash/{path_part(uid)}",
        body=encode({"version": version}),
        decode=decoders.document,
        refusals=_NO_DOCUMENT,
    )


def empty_trash(vault: str, collection: str | None) -> Call[responses.Purged]:
    """Purge deleted documents of a vault, or of one collection; some of them, where there are many."""
    return Call(
        method="DELETE",
        path=f"/vaults/{path_part(vault)}/trash",
        query=() if collection is None else (("collection", collection),),
        decode=decoders.purged,
        refusals={404: errors.VaultNotFound},
    )


def get_version(vault: str, uid: str, version: int) -> Call[Document]:
    """Get an earlier version of a document."""
    path = f"{_document_path(vault, uid)}/versions/{version}"
    return Call(method="GET", path=path, decode=decoders.document, refusals=_NO_DOCUMENT, max_bytes=LARGE)


def history(vault: str, since: int, uid: str | None = None) -> Call[responses.History]:
    """Uid, version and proof of the documents' versions that were replaced after a time and are kept."""
    query = [("since", str(since)), ("limit", "5000")]
    if uid is not None:
        query.append(("uid", uid))
    path = f"{_path(vault)}/history"
    refusals: Mapping[int, type[Refusal]] = {404: errors.VaultNotFound}
    return Call(
        method="GET", path=path, query=tuple(query), decode=decoders.history, refusals=refusals, max_bytes=LARGE
    )
