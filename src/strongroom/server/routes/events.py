"""Event streams of one vault, or of all vaults of an account."""

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

_SAYS: Final = "must be an integer from 0: the id of the last event that you received"


def _since(request: Request) -> int | None:
    """The cursor to resume from; None is now. Last-Event-ID, which a reconnecting client sends, wins over since."""
    query, header = request.query(), request.header(b"last-event-id")
    given = {"since": query.get("since"), "Last-Event-ID": header}
    values = {name: parse_integer(text, 0) for name, text in given.items() if text is not None}
    bad = {name: _SAYS for name, value in values.items() if value is None}
    if bad:
        raise Invalid(bad)
    since = values.get("Last-Event-ID", values.get("since"))
    return None if since is None else min(since, MAX_INTEGER)


async def vault(request: Request) -> Response:
    """An event for each change of a document of the vault."""
    since, uid = _since(request), request.uid("vaultUid")
    if request.method == "HEAD":
        await request.read(change_feed.open_vault, request.actor, uid)
        return headers_only()
    return await request.context.live.vault(request.actor, partial(has_valid_signature, request), uid, since)


async def account(request: Request) -> Response:
    """An event for each change of a document or a vault that the caller may read."""
    since = _since(request)
    if request.method == "HEAD":
        return headers_only()
    signed, documents = partial(has_valid_signature, request), request.context.variant.has_documents
    return await request.context.live.account(request.actor, signed, since, documents=documents)


_QUERY: Final = (("since", "integer", "Resume after this event: the id of the last event that you received"),)
_HEADERS: Final = ("Last-Event-ID",)


def endpoints(variant: Variant) -> tuple[Endpoint, ...]:
    """The event streams; that of a single vault only where vaults have documents."""
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
        handler=vault,
        summary="Follow a vault: an event for each change of a document",
        permission=Permission.READ,
        event_types=(wire.events.Ready, wire.events.DocumentChanged, wire.events.Ended),
        query=_QUERY,
        request_headers=_HEADERS,
        refusals=(errors.VaultNotFound,),
    )
    return of_account, of_vault
