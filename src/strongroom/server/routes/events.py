"""Live events of one vault, or of all vaults of an account."""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import errors, wire
from strongroom.actions import change_feed
from strongroom.errors import Invalid
from strongroom.model import Permission, Variant
from strongroom.rules import MAX_INTEGER
from strongroom.server.authentication import has_valid_signature
from strongroom.server.live import headers_only
from strongroom.server.request import Endpoint, Request, parse_integer
from strongroom.server.response import Response

_SAYS: Final = "must be an integer from 0: the id of the last event that you have"


def _since(request: Request) -> int | None:
    """Where to go on; None is now. A client that comes back by itself sends the header, and that is the later one."""
    query, header = request.query(), request.header(b"last-event-id")
    given = {"since": query.get("since"), "Last-Event-ID": header}
    values = {name: parse_integer(text, 0) for name, text in given.items() if text is not None}
    bad = {name: _SAYS for name, value in values.items() if value is None}
    if bad:
        raise Invalid(bad)
    since = values.get("Last-Event-ID", values.get("since"))
    return None if since is None else min(since, MAX_INTEGER)


async def vault(request: Request) -> Response:
    """Each change of a document of the vault, as it happens."""
    since, uid = _since(request), request.uid("vaultUid")
    if request.method == "HEAD":
        await request.read(change_feed.open_vault, request.actor, uid)
        return headers_only()
    return await request.context.live.vault(request.actor, partial(has_valid_signature, request), uid, since)


async def account(request: Request) -> Response:
    """Each change of a document or a vault within reach, as it happens."""
    since = _since(request)
    if request.method == "HEAD":
        return headers_only()
    documents = request.context.variant.has_documents
    return await request.context.live.account(
        request.actor, partial(has_valid_signature, request), since, documents=documents
    )


_QUERY: Final = (("since", "integer", "Go on after this moment: the id of the last event that you have"),)
_HEADERS: Final = ("Last-Event-ID",)


def endpoints(variant: Variant) -> tuple[Endpoint, ...]:
    """The streams; without documents there is none of a single vault."""
    of_account = Endpoint(
        method="GET",
        path="/events",
        handler=account,
        summary="Follow all vaults: an event for each change",
        permission=Permission.READ,
        event_types=(wire.events.Ready, wire.events.DocumentChanged, wire.events.VaultChanged, wire.events.Ended),
        query=_QUERY,
        request_headers=_HEADERS,
    )
    if not variant.has_documents:
        return (of_account,)
    of_vault = Endpoint(
        method="GET",
        path="/vaults/{vaultUid}/events",
        aliases=("/vault/{vaultUid}/events",),
        handler=vault,
        summary="Follow a vault: an event for each change of a document",
        permission=Permission.READ,
        event_types=(wire.events.Ready, wire.events.DocumentChanged, wire.events.Ended),
        query=_QUERY,
        request_headers=_HEADERS,
        refusals=(errors.VaultNotFound,),
    )
    return of_account, of_vault
