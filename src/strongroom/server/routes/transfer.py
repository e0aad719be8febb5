"""Export and import: all data of an account as one file."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strongroom import errors, identifiers, wire
from strongroom.actions import exports, imports
from strongroom.errors import StorageFull, Unavailable
from strongroom.export_rows import (
    ExportedBlob,
    ExportedDocument,
    ExportedKeyring,
    ExportedKeyringVersion,
    ExportedVault,
    ExportedVersion,
    ExportRow,
    KeyringRow,
)
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import CHUNK, Response, json_response, streaming_response
from strongroom.server.routes.import_upload import LINES, ImportUpload
from strongroom.server.snapshots import ExportSnapshot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from strongroom.server.response import Chunks
    from strongroom.store import Tx


_KINDS: Final = (  # in the order of the trailer's counts
    ExportedKeyring,
    ExportedKeyringVersion,
    ExportedVault,
    ExportedDocument,
    ExportedVersion,
    ExportedBlob,
)


async def export(request: Request) -> Response:
    """All data of the account, with its ciphertext as stored. It is recorded in the account's log."""
    headers = ((b"content-disposition", b'attachment; filename="strongroom-export.ndjson"'),)
    if request.method == "HEAD":
        return Response(headers=headers, content_type=LINES.encode())
    with suppress(StorageFull, Unavailable):  # an export must work on a full disk
        await request.write(exports.record, request.actor, request.origin)
    return await streaming_response(_stream_export(request), headers=headers, content_type=LINES.encode())


async def _stream_export(request: Request) -> Chunks:
    """Stream the file from one consistent snapshot, with only one page of it in memory."""
    context, now = request.context, request.context.clock()
    counts: dict[type[ExportRow | KeyringRow], int] = dict.fromkeys(_KINDS, 0)
    digest = hashlib.sha256()
    out = bytearray()

    async def begin(tx: Tx) -> AsyncGenerator[Sequence[ExportRow | KeyringRow], None]:
        nonlocal out
        await exports.begin(tx, request.actor)
        clock, kdf = await exports.clock(tx, request.actor), await exports.kdf(tx, request.actor)
        header = wire.export_lines.Header(
            wire.export_lines.FORMAT,
            wire.export_lines.FORMAT_VERSION,
            identifiers.new_uid(now),
            context.epoch,
            now,
            clock,
            kdf,
        )
        out += wire.encode_lines([header])
        return exports.pages(tx, request.actor)

    steps = request.steps()
    async with ExportSnapshot(request) as snapshot:
        async for page in await snapshot.read(begin):
            if page:
                kind: type[ExportRow | KeyringRow] = type(page[0])
                counts[kind] += len(page)
                out += wire.encode_lines(page)
            if len(out) > CHUNK:
                await snapshot.pause(len(out))
                await asyncio.sleep(0)  # other requests: a row of some megabytes takes time to read, and to hash
                digest.update(out)
                yield out
                await snapshot.resume()
                out = bytearray()
            await steps.give_way()
    digest.update(out)
    yield out + wire.encode_lines(
        [wire.export_lines.Trailer(wire.export_lines.Counts(*counts.values()), digest.hexdigest())]
    )


async def import_(request: Request) -> Response:
    """Import the file of an export into an account without vaults. After an interruption, send the same file again."""
    return json_response(await ImportUpload(request).run())


async def abandon_import(request: Request) -> Response:
    """Abandon an unfinished import: what was imported is deleted, and the account is empty again."""
    await request.write(imports.abandon, request.actor)
    while await request.write_long(imports.delete_some, request.actor):
        pass
    await request.truncate_log()
    return json_response(wire.responses.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/auth/export",
        handler=export,
        summary="All data of the account as one file",
        access=Access.USER,
        refusals=(errors.RateLimited,),
        response_media_type=LINES,
    ),
    Endpoint(
        method="POST",
        path="/auth/import",
        handler=import_,
        summary="Import such a file into an account without vaults",
        access=Access.USER,
        request_media_type=LINES,
        response_type=wire.responses.Imported,
        refusals=(
            errors.InvalidCredentials,
            errors.SecondFactorRequired,
            errors.InvalidSecondFactor,
            errors.RateLimited,
            errors.AccountNotEmpty,
            errors.ImportUnfinished,
            errors.TooManyVaults,
            errors.QuotaExceeded,
        ),
    ),
    Endpoint(
        method="DELETE",
        path="/auth/import",
        handler=abandon_import,
        summary="Abandon an unfinished import",
        access=Access.USER,
        response_type=wire.responses.Done,
        refusals=(errors.ImportNotFound,),
    ),
)
