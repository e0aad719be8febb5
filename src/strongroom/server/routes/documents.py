"""Documents of a vault. The canonical path is /vaults/...; /vault/... is an alias."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import documents
from strongroom.actions.documents import ListQuery
from strongroom.errors import Invalid
from strongroom.model import Document, Permission
from strongroom.server.request import ClientDisconnected, Endpoint, Request, parse_integer
from strongroom.server.response import Response, json_items, json_response, streaming_response
from strongroom.server.snapshots import stream_list

_HEAD: Final = b'{"documents":['
MOST_WAIT: Final = 60  # seconds


def _response(
    request: Request, document: Document, status: int = 200, sent: wire.requests.Body | None = None
) -> Response:
    etag = str(document.version)
    if request.method in {"GET", "HEAD"} and request.not_modified(etag):
        return Response(status=304, etag=etag)
    return json_response(rules.visible_to(request.actor, document, sent), status, etag=etag)


async def create(request: Request) -> Response:
    """Create a document."""
    wanted = await request.read_body(wire.requests.CreateDocument)
    document, new = await request.write(
        documents.create, request.actor, request.context.limits, request.uid("vaultUid"), wanted
    )
    return _response(request, document, 201 if new else 200, wanted)


async def get(request: Request) -> Response:
    """A document, deleted or not."""
    document = await request.read(documents.get, request.actor, request.uid("vaultUid"), request.uid("uid"))
    return _response(request, document)


async def put(request: Request) -> Response:
    """Replace a document at the version that the client last saw."""
    wanted = await request.read_body(wire.requests.PutDocument)
    expected = request.expected(wanted.version)
    if expected is None:
        raise Invalid({"version": "is required: the version you last saw (or send If-Match)"})
    document = await request.write(
        documents.put,
        request.actor,
        request.context.limits,
        request.uid("vaultUid"),
        request.uid("uid"),
        wanted,
        expected,
    )
    return _response(request, document, sent=wanted)


async def delete(request: Request) -> Response:
    """Delete a document; a tombstone stays."""
    wanted = await request.read_body(wire.requests.DeleteDocument)
    expected = request.expected(wanted.version)
    tombstone = await request.write(
        documents.delete, request.actor, request.context.limits, request.uid("vaultUid"), request.uid("uid"), expected
    )
    tombstone = rules.visible_to(request.actor, tombstone)
    fields = (getattr(tombstone, name) for name in Document.__struct_fields__)
    return json_response(wire.responses.Deleted(True, *fields), etag=str(tombstone.version))  # noqa: FBT003


async def list_(request: Request) -> Response:
    """The documents of a vault, all or those that changed after `since`; with `wait`, a long poll."""
    wanted = _list_query(request)
    await _wait(request, wanted)
    return await _list(request, wanted)


async def sync(request: Request) -> Response:
    """The list with `since`, under the path that published clients of this API use."""
    wanted = _list_query(request, since=0)
    await _wait(request, wanted)
    return await _list(request, wanted, synced=True)


async def _wait(request: Request, wanted: ListQuery) -> None:
    """Long poll: wait for a change that this list would show. The caller is authenticated again afterwards."""
    if not wanted.wait:
        return
    uid, checks = request.uid("vaultUid"), count()

    async def has_changes() -> bool:
        if next(checks) and request.recheck is not None:
            await request.recheck(request)
        return await request.read(documents.has_changes, request.actor, uid, wanted)

    if await has_changes():
        return
    disconnected = asyncio.ensure_future(request.body.wait_disconnected())
    try:
        await request.context.live.wait(request.actor, uid, wanted.wait, has_changes, disconnected)
        if disconnected.done():
            raise ClientDisconnected
    finally:
        disconnected.cancel()
    if request.recheck is not None:
        await request.recheck(request)  # the caller's access may have ended while it waited


async def _list(request: Request, wanted: ListQuery, *, synced: bool = False) -> Response:
    """The list: in one short read, if it has few documents that changed after `since`; otherwise as a stream."""
    listing = documents.DocumentList(request.actor, request.uid("vaultUid"), wanted)
    if wanted.since is not None and (found := await request.read(listing.read_few)) is not None:
        shown = b"".join(json_items(items, first=True)) if (items := listing.take(found)) else b""
        return Response(_HEAD + shown + _tail(listing.last, more=listing.more, synced=synced))
    return await streaming_response(
        stream_list(
            request,
            _HEAD,
            listing.read,
            listing.take,
            lambda: _tail(listing.last, more=listing.more, synced=synced),
        )
    )


def _list_query(request: Request, since: int | None = None) -> ListQuery:
    """Parse the query parameters of a list."""
    query = request.query()
    bad: dict[str, str] = {}
    limit = collection = tombstones = None
    trash = "deleted" in query
    if trash and query["deleted"] != "only":
        bad["deleted"] = "must be only, or absent"
    elif trash and "includeDeleted" in query:
        bad["deleted"] = "contradicts includeDeleted"
    if "since" in query:
        since = parse_integer(query["since"], 0)
        if since is None:
            bad["since"] = "must be an integer from 0: Unix milliseconds"
    if "limit" in query:
        limit = parse_integer(query["limit"], 1)
        if limit is None:
            bad["limit"] = "must be an integer from 1"
    if "collection" in query:
        collection = query["collection"]
        if not 1 <= len(collection) <= 255 or rules.has_control(collection):
            bad["collection"] = wire.says(wire.requests.Name)
    if "includeDeleted" in query:
        tombstones = {"true": True, "false": False}.get(query["includeDeleted"])
        if tombstones is None:
            bad["includeDeleted"] = "must be true or false"
    wait = parse_integer(query.get("wait", "0"), 0)
    if wait is None or wait > MOST_WAIT:
        bad["wait"] = f"must be an integer from 0 to {MOST_WAIT}: seconds"
    elif "wait" in query and since is None and "since" not in bad:
        bad["since"] = "is required together with wait"
    if bad or wait is None:
        raise Invalid(bad)
    return ListQuery(since, limit, collection, tombstones, wait, trash=trash)


def _tail(last: int, *, more: bool, synced: bool) -> bytes:
    tail = b'],"hasMore":%s,"next":%d' % (b"true" if more else b"false", last)
    return tail + (b',"syncedAt":%d}' % last if synced else b"}")


_DOCUMENTS: Final = "/vaults/{vaultUid}/documents"
_QUERY: Final = (
    ("since", "integer", "Only documents that changed after this time (Unix milliseconds), tombstones included"),
    ("limit", "integer", "At most this many documents; all of them if absent"),
    ("collection", "string", "Only documents of this collection"),
    ("includeDeleted", "boolean", "Whether to include tombstones; by default only together with since"),
    ("deleted", "string", "only: just the deleted documents that can still be restored"),
    ("wait", "integer", "Seconds, up to 60, to wait for a change; requires since"),
)
_MISSING: Final = (errors.VaultNotFound, errors.DocumentNotFound)

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=_DOCUMENTS,
        handler=list_,
        summary="List documents in the order of their changes",
        permission=Permission.READ,
        response_type=wire.responses.Documents,
        query=_QUERY,
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="POST",
        path=_DOCUMENTS,
        handler=create,
        summary="Create a document",
        permission=Permission.WRITE,
        request_type=wire.requests.CreateDocument,
        response_type=Document,
        status=201,
        refusals=(errors.VaultNotFound, errors.UidTaken, errors.QuotaExceeded, errors.KeyringConflict),
        request_headers=("Keyring-Version",),
    ),
    Endpoint(
        method="GET",
        path=_DOCUMENTS + "/sync",
        handler=sync,
        summary="The list with since (0 when absent)",
        permission=Permission.READ,
        response_type=wire.responses.Synced,
        query=_QUERY,
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="GET",
        path=_DOCUMENTS + "/{uid}",
        handler=get,
        summary="A document, deleted or not",
        permission=Permission.READ,
        response_type=Document,
        refusals=_MISSING,
        request_headers=("If-None-Match",),
    ),
    Endpoint(
        method="PUT",
        path=_DOCUMENTS + "/{uid}",
        handler=put,
        summary="Replace a document at the version you last saw",
        permission=Permission.WRITE,
        request_type=wire.requests.PutDocument,
        response_type=Document,
        refusals=(*_MISSING, errors.DocumentConflict, errors.QuotaExceeded, errors.KeyringConflict),
        request_headers=("If-Match", "Keyring-Version"),
    ),
    Endpoint(
        method="DELETE",
        path=_DOCUMENTS + "/{uid}",
        handler=delete,
        summary="Delete a document; a tombstone stays",
        permission=Permission.DELETE,
        request_type=wire.requests.DeleteDocument,
        response_type=wire.responses.Deleted,
        refusals=(*_MISSING, errors.DocumentConflict, errors.KeyringConflict),
        request_headers=("If-Match", "Keyring-Version"),
    ),
)
