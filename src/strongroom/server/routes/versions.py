"""Versions: the history of documents and of blobs."""

from __future__ import annotations

from typing import Final

from strongroom import errors, identifiers, rules, wire
from strongroom.actions import versions
from strongroom.errors import Invalid
from strongroom.model import Document, Permission, VaultBlob
from strongroom.server.request import Endpoint, Request, parse_integer
from strongroom.server.response import Response, json_response

MOST_HISTORY: Final = 1_000  # versions in one response, which is built in memory


def _version(request: Request) -> int:
    """The version in the path, or 0 (matches no row) if malformed."""
    number = parse_integer(request.path_params["version"], 1) or 0
    return number if number <= rules.MAX_INTEGER else 0


async def of_document(request: Request) -> Response:
    """The replaced versions of a document, newest first, without their ciphertext."""
    found = await request.read(versions.of_document, request.actor, request.uid("vaultUid"), request.uid("uid"))
    return json_response(wire.responses.Versions(found))


async def document(request: Request) -> Response:
    """A document as it was at a version."""
    where = request.uid("vaultUid"), request.uid("uid"), _version(request)
    return json_response(await request.read(versions.document, request.actor, *where))


async def history(request: Request) -> Response:
    """The replaced versions of a vault's documents, in the order in which they were written, without ciphertext."""
    query, bad = request.query(), dict[str, str]()
    since, limit = parse_integer(query.get("since", "0"), 0), parse_integer(query.get("limit", str(MOST_HISTORY)), 1)
    uid = identifiers.canonical(query["uid"]) if "uid" in query else None
    if since is None:
        bad["since"] = "must be an integer from 0: Unix milliseconds"
    if limit is None:
        bad["limit"] = "must be an integer from 1"
    if "uid" in query and uid is None:
        bad["uid"] = "must be a UUID"
    if bad or since is None or limit is None:
        raise Invalid(bad)
    where = request.uid("vaultUid"), uid, since, min(limit, MOST_HISTORY)
    found, more = await request.read(versions.history, request.actor, *where)
    return json_response(wire.responses.History(found, more, found[-1].updated_at if found else since))


async def of_blob(request: Request) -> Response:
    """The replaced blobs of a vault, newest first, without their ciphertext."""
    return json_response(
        wire.responses.BlobVersions(await request.read(versions.of_blob, request.actor, request.uid("uid")))
    )


async def blob(request: Request) -> Response:
    """A vault's blob as it was at a version."""
    return json_response(await request.read(versions.blob, request.actor, request.uid("uid"), _version(request)))


_DOCUMENT: Final = "/vaults/{vaultUid}/documents/{uid}/versions"
_BLOB: Final = "/vault/{uid}/versions"
_MISSING: Final = (errors.VaultNotFound, errors.DocumentNotFound)

OF_DOCUMENTS: Final = (
    Endpoint(
        method="GET",
        path="/vaults/{vaultUid}/documents/history",
        handler=history,
        summary="List the replaced versions of all documents of a vault",
        permission=Permission.READ,
        response_type=wire.responses.History,
        query=(
            ("since", "integer", "Only versions that were written after this time (Unix milliseconds)"),
            ("limit", "integer", f"At most this many, {MOST_HISTORY} if absent or larger"),
            ("uid", "string", "Only versions of this document"),
        ),
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="GET",
        path=_DOCUMENT,
        handler=of_document,
        summary="List the replaced versions of a document",
        permission=Permission.READ,
        response_type=wire.responses.Versions,
        refusals=_MISSING,
    ),
    Endpoint(
        method="GET",
        path=_DOCUMENT + "/{version}",
        handler=document,
        summary="A document as it was at a version",
        permission=Permission.READ,
        response_type=Document,
        refusals=(*_MISSING, errors.VersionNotFound),
    ),
)
OF_BLOBS: Final = (
    Endpoint(
        method="GET",
        path=_BLOB,
        handler=of_blob,
        summary="List the replaced versions of a vault's blob",
        permission=Permission.READ,
        response_type=wire.responses.BlobVersions,
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="GET",
        path=_BLOB + "/{version}",
        handler=blob,
        summary="A vault's blob as it was at a version",
        permission=Permission.READ,
        response_type=VaultBlob,
        refusals=(errors.VaultNotFound, errors.VersionNotFound),
    ),
)
