"""Import: reads an export file as a stream, line by line, and stores it in small transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from strongroom import wire
from strongroom.actions import deletions, imports, second_factors
from strongroom.errors import (
    AccountNotEmpty,
    ImportUnfinished,
    Invalid,
    PayloadTooLarge,
    Refusal,
    RequestTimeout,
    Unauthorized,
    UnsupportedMediaType,
)
from strongroom.export_rows import ExportCounts, ExportedKeyring, ExportedKeyringVersion
from strongroom.rules import DAY
from strongroom.server.authentication import has_valid_signature, verify_password
from strongroom.server.request import BODY_RATE, BODY_SECONDS
from strongroom.server.timeouts import timeout
from strongroom.store.queries.imports import ImportProgress
from strongroom.wire.export_file import ExportFile

if TYPE_CHECKING:
    from strongroom.export_rows import ExportRow
    from strongroom.server.request import Request

LINES: Final = wire.export_lines.MEDIA_TYPE
LINE_OVERHEAD: Final = 4_096  # bytes of a line beside the ciphertext of the largest request
BATCH_LINES: Final = 256  # in one transaction, so that other writes wait a few milliseconds only
BATCH_BYTES: Final = 512 * 1024
_CUT_OFF: Final = (
    "ends before its trailer: it was cut off. What was imported stays; send the whole file again to continue"
)


class ImportUpload:
    """One attempt to import a file. Lines that earlier attempts with the same file stored are skipped."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._file = ExportFile(request.context.clock() + DAY)  # the clock of the other server may be ahead a little
        self._keys = imports.ImportedKeys()
        self._known: ImportProgress | None = None  # the position of earlier attempts, once the import has begun
        self._done = False  # earlier attempts reached the end
        self._stored = ImportProgress(0, "", ExportCounts())
        self._pending: list[tuple[int, ExportRow]] = []
        self._size = 0
        self._held = 0  # bytes of the keyrings, which are stored at the end

    async def run(self) -> wire.responses.Imported:
        """Read and store the whole file; what was imported."""
        request, file = self._request, self._file
        _check_headers(request)
        await request.read(imports.require_empty_account, request.actor)
        steps = request.steps()
        async with aclosing(self._lines()) as lines:
            async for raw in lines:
                await self._line(raw)
                await steps.give_way()
        if not file.is_whole or file.header is None or self._known is None:
            raise Invalid({"body": _CUT_OFF}, f"The file {_CUT_OFF}, or abandon the import with DELETE /auth/import.")
        if file.number < self._known.lines:
            raise self._wrong_file()
        if self._done:
            done = await request.read(imports.latest, request.actor)
        else:
            rest = file.header.id, self._batch(), self._keys, file.header.clock, request.origin
            done = await request.write_long(imports.finish, request.actor, request.context.limits, *rest)
        return wire.responses.Imported(
            file.counts.keyrings,
            file.counts.keyring_versions,
            done.vaults,
            done.documents,
            done.versions,
            done.blob_versions,
            done.left_out,
        )

    @property
    def _progress(self) -> ImportProgress:
        return ImportProgress(self._file.number, self._file.digest, self._file.vault_counts)

    async def _line(self, raw: bytes) -> None:
        file = self._file
        if not file.number and self._keys.password_hash is None and await self._is_password(raw):
            return
        before = self._progress if self._known is None else None
        line = file.read(raw)
        if isinstance(line, wire.export_lines.Header):
            self._keys.kdf = line.kdf
            return
        if isinstance(line, ExportedKeyring | ExportedKeyringVersion):
            self._keys.keyrings.append(line)
            self._held += len(raw)
            return
        if before is not None:
            await self._begin(before)
        if isinstance(line, wire.export_lines.Trailer):
            return
        assert self._known is not None  # noqa: S101 - it has begun
        if file.number > self._known.lines:
            if self._done:
                raise self._wrong_file()
            self._pending.append((file.number, line))
            self._size += len(raw)
            if len(self._pending) >= BATCH_LINES or self._size >= BATCH_BYTES:
                await self._store()
        elif file.number == self._known.lines:
            if self._progress != self._known:
                raise self._wrong_file()
            file.reached.clear()

    async def _is_password(self, raw: bytes) -> bool:
        """Whether this line is the password and not the file; a wrong one is refused, as a failed login."""
        given = wire.export_lines.read_password(raw)
        if given is None:
            return False
        request = self._request
        async with verify_password(request, given.current_password, given.second_factor) as proof:
            # The keys are stored with the last of many transactions, and only if this is still the stored hash.
            used = request.write(second_factors.use, request.actor.user_id, proof, request.origin)
            self._keys.password_hash = await used
        return True

    async def _begin(self, before: ImportProgress) -> None:
        """Begin or resume the import, after the header and the keyrings: none of them is stored yet."""
        header = self._file.header
        assert header is not None  # noqa: S101 - it is the first line of every file
        request, progress = self._request, deletions.DeletionProgress()
        # Rows of deleted vaults may have the uids and the times of those in the file, which come as they are.
        while await request.write_long(deletions.delete_some_of, request.actor.user_id, progress):
            pass
        known, self._done = await self._request.write(imports.begin, self._request.actor, header, before, self._keys)
        self._known = self._stored = known
        if known.lines <= before.lines and known != before:
            raise self._wrong_file()

    async def _store(self) -> None:
        """Store the pending lines and the progress in one transaction."""
        context, file, batch = self._request.context, self._file, self._batch()
        if not has_valid_signature(self._request):
            raise Unauthorized
        assert file.header is not None  # noqa: S101 - no line is pending before the header
        await self._request.write_long(imports.store_batch, self._request.actor, context.limits, file.header.id, batch)
        self._stored = batch.progress
        self._pending, self._size, file.reached = [], 0, {}

    def _batch(self) -> imports.ImportBatch:
        return imports.ImportBatch(self._pending, self._stored.lines, self._progress, self._file.reached)

    def _wrong_file(self) -> Refusal:
        """The refusal of a file that differs from that of the earlier attempts."""
        if self._done:
            return AccountNotEmpty()
        return ImportUnfinished(
            "This is not the file of the unfinished import into this account. Send that file again, or abandon the "
            "import with DELETE /auth/import."
        )

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the body, each with its line break; the last one may have none."""
        request = self._request
        longest = request.context.settings.max_body_bytes + LINE_OVERHEAD
        pending, seen = bytearray(), 0
        async with aclosing(_chunks(request)) as pieces:
            async for piece in pieces:
                pending += piece
                end = pending.find(b"\n", seen)
                while 0 <= end < longest:
                    yield bytes(pending[: end + 1])
                    del pending[: end + 1]
                    end = pending.find(b"\n")
                seen = len(pending)
                request.buffer(seen + self._held)
                if seen > longest:
                    raise wire.export_lines.bad_line(
                        self._file.number + 1, {"line": f"is longer than {longest} bytes, the limit of this server"}
                    )
                await asyncio.sleep(0)  # yield to other requests
        if pending:
            yield bytes(pending)


def _check_headers(request: Request) -> None:
    """Refuse a wrong size or media type before anything is read."""
    limit, declared = request.context.settings.import_max_bytes, request.header(b"content-length")
    if limit and declared is not None and int(declared) > limit:
        raise PayloadTooLarge(limit)
    if (request.header(b"content-type") or "").partition(";")[0].strip().lower() != LINES:
        raise UnsupportedMediaType(f"Send the file of an export, with 'Content-Type: {LINES}'.")


async def _chunks(request: Request) -> AsyncGenerator[bytes, None]:
    """The chunks of the body as they arrive. Only time spent waiting for them counts against the timeout."""
    limit = request.context.settings.import_max_bytes or None
    loop = asyncio.get_running_loop()
    got, waited = 0, 0.0
    more = True
    while more:
        began = loop.time()
        try:
            async with await timeout(BODY_SECONDS + got / BODY_RATE - waited):
                body, more = await request.body.more()
        except TimeoutError:
            raise RequestTimeout from None
        waited += loop.time() - began
        got += len(body)
        if limit is not None and got > limit:
            raise PayloadTooLarge(limit)
        yield body
