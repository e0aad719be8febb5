"""Import: reads an export file as a stream, line by line, and stores it in small transactions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from strongroom import wire
from strongroom.actions import imports
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
from strongroom.export_rows import (
    ExportCounts,
    ExportedBlob,
    ExportedDocument,
    ExportedVault,
    ExportedVersion,
    ExportRow,
)
from strongroom.rules import DAY
from strongroom.server.authentication import has_valid_signature
from strongroom.server.request import BODY_RATE, BODY_SECONDS
from strongroom.server.timeouts import timeout
from strongroom.store.queries.imports import ImportProgress

if TYPE_CHECKING:
    from strongroom.server.request import Request
    from strongroom.store.queries.imports import Import

LINES: Final = "application/x-ndjson"
LINE_OVERHEAD: Final = 4_096  # bytes of a line beside the ciphertext of the largest request
BATCH_LINES: Final = 256  # in one transaction, so that other writes wait a few milliseconds only
BATCH_BYTES: Final = 512 * 1024
_PARTS: Final = (ExportedDocument, ExportedVersion, ExportedBlob)  # of a vault, in this order
_TIMESTAMPS: Final = {
    "exported_at": "exportedAt",
    "clock": "clock",
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "deleted_at": "deletedAt",
    "purged_at": "purgedAt",
    "replaced_at": "replacedAt",
}
_CUT_OFF: Final = (
    "ends before its trailer: it was cut off. What was imported stays; send the whole file again to continue"
)


class ImportFile:
    """Validates an export file line by line: its order, its counts, its hash."""

    def __init__(self, now: int) -> None:
        self.number = 0
        self._latest = now + DAY  # the clock of the other server may be ahead, but not by more
        self.header: wire.export_lines.Header | None = None
        self.reached: dict[str, int] = {}  # the clock of each vault in the current batch
        self._vault: ExportedVault | None = None
        self._part, self._last = 0, -1
        self._hash = hashlib.sha256()
        self._counts = {ExportedVault: 0, ExportedDocument: 0, ExportedVersion: 0, ExportedBlob: 0}

    @property
    def progress(self) -> ImportProgress:
        """The progress: lines, hash and counts so far."""
        return ImportProgress(self.number, self._hash.hexdigest(), ExportCounts(*self._counts.values()))

    def read(self, raw: bytes) -> wire.export_lines.Header | wire.export_lines.Trailer | ExportRow:
        """Validate the next line; refused with its number."""
        try:
            line = wire.export_lines.read_line(raw)
            self._check_line(line)
        except Invalid as refusal:
            raise wire.export_lines.bad_line(self.number + 1, (refusal.details or {})["fields"]) from None
        if not isinstance(line, wire.export_lines.Trailer):
            self.number += 1
            self._hash.update(raw)
        return line

    def _check_line(self, line: wire.export_lines.Header | wire.export_lines.Trailer | ExportRow) -> None:
        """Refuse a line that is out of order."""
        late = [field for name, field in _TIMESTAMPS.items() if (getattr(line, name, None) or 0) > self._latest]
        if late:
            raise Invalid(dict.fromkeys(late, "is more than 24 hours ahead of this server's time"))
        if isinstance(line, wire.export_lines.Header):
            self._check_header(line)
        elif self.header is None:
            raise Invalid({"kind": "must be header in the first line"})
        elif isinstance(line, wire.export_lines.Trailer):
            self._end_vault()
            self._check_trailer(line)
        elif isinstance(line, ExportedVault):
            self._end_vault()
            if line.updated_at > self.header.clock:
                raise Invalid({"updatedAt": "must not be after the clock of the header"})
            self._vault, self._part, self._last = line, 0, -1
            self.reached[line.uid] = line.created_at
        else:
            self._check_in_vault(line)
        if type(line) in self._counts:
            self._counts[type(line)] += 1

    def _check_header(self, header: wire.export_lines.Header) -> None:
        if self.header is not None:
            raise Invalid({"kind": "is header a second time"})
        if header.format != wire.export_lines.FORMAT:
            raise Invalid({"format": f"must be {wire.export_lines.FORMAT}"})
        if header.version != wire.export_lines.FORMAT_VERSION:
            raise Invalid({"version": f"must be {wire.export_lines.FORMAT_VERSION}: this server reads no other"})
        self.header = header

    def _check_in_vault(self, line: ExportedDocument | ExportedVersion | ExportedBlob) -> None:
        """Check the order in a vault: documents, their versions, versions of its blob; each by time or version."""
        name, home = ("uid", line.uid) if isinstance(line, ExportedBlob) else ("vaultUid", line.vault_uid)
        if self._vault is None or home != self._vault.uid:
            raise Invalid({name: "must be that of the vault before it"})
        part = _PARTS.index(type(line))
        if part < self._part:
            raise Invalid({"kind": "must come before the versions of its vault"})
        if part > self._part:
            self._part, self._last = part, -1
        by, place = ("version", line.version) if isinstance(line, ExportedBlob) else ("updatedAt", line.updated_at)
        if place <= self._last:
            raise Invalid({by: "must be after that of the line before"})
        if line.updated_at > self._vault.updated_at:
            raise Invalid({"updatedAt": "must not be after that of its vault"})
        self._last = place
        if isinstance(line, ExportedDocument):
            self.reached[line.vault_uid] = line.updated_at

    def _end_vault(self) -> None:
        if self._vault is not None:
            self.reached[self._vault.uid] = self._vault.updated_at

    def _check_trailer(self, trailer: wire.export_lines.Trailer) -> None:
        """Refuse a file that was altered: by the hash and the counts of its trailer."""
        if trailer.sha256.lower() != self._hash.hexdigest():
            raise Invalid({"sha256": "is not that of the lines before: the file was altered"})
        if trailer.tally != self.progress.counts:
            raise Invalid({"counts": "are not those of the lines before: the file was altered"})


class ImportUpload:
    """One attempt to import a file. Lines that earlier attempts with the same file stored are skipped."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._file = ImportFile(request.context.clock())
        self._known = ImportProgress(0, "", ExportCounts())  # the position of earlier attempts
        self._done = False  # earlier attempts reached the end
        self._stored = self._known
        self._trailer = False
        self._pending: list[tuple[int, ExportRow]] = []
        self._size = 0

    async def run(self) -> Import:
        """Read and store the whole file; the result of the import."""
        request, file = self._request, self._file
        _check_headers(request)
        await request.read(imports.require_empty_account, request.actor)
        async with aclosing(_lines(request)) as lines:
            async for raw in lines:
                await self._line(raw)
        if not self._trailer or file.header is None:
            raise Invalid({"body": _CUT_OFF}, f"The file {_CUT_OFF}, or abandon the import with DELETE /auth/import.")
        if file.number < self._known.lines:
            raise self._wrong_file()
        if self._done:
            return await request.read(imports.latest, request.actor)
        rest = file.header.id, self._batch(), file.header.clock, request.origin
        return await request.write_long(imports.finish, request.actor, request.context.limits, *rest)

    async def _line(self, raw: bytes) -> None:
        file = self._file
        if self._trailer:
            raise wire.export_lines.bad_line(
                file.number + 2, {"kind": "comes after the trailer, which must be the last line"}
            )
        line = file.read(raw)
        if isinstance(line, wire.export_lines.Trailer):
            self._trailer = True
            return
        if isinstance(line, wire.export_lines.Header):
            self._known, self._done = await self._request.write(imports.begin, self._request.actor, line, file.progress)
            self._stored = self._known
        elif file.number > self._known.lines:
            if self._done:
                raise self._wrong_file()
            self._pending.append((file.number, line))
            self._size += len(raw)
            if len(self._pending) >= BATCH_LINES or self._size >= BATCH_BYTES:
                await self._store()
        if file.number == self._known.lines:
            if file.progress != self._known:
                raise self._wrong_file()
            file.reached.clear()

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
        return imports.ImportBatch(self._pending, self._stored.lines, self._file.progress, self._file.reached)

    def _wrong_file(self) -> Refusal:
        """The refusal of a file that differs from that of the earlier attempts."""
        if self._done:
            return AccountNotEmpty()
        return ImportUnfinished(
            "This is not the file of the unfinished import into this account. Send that file again, or abandon the "
            "import with DELETE /auth/import."
        )


def _check_headers(request: Request) -> None:
    """Refuse a wrong size or media type before anything is read."""
    limit, declared = request.context.settings.import_max_bytes, request.header(b"content-length")
    if limit and declared is not None and int(declared) > limit:
        raise PayloadTooLarge(limit)
    if (request.header(b"content-type") or "").partition(";")[0].strip().lower() != LINES:
        raise UnsupportedMediaType(f"Send the file of an export, with 'Content-Type: {LINES}'.")


async def _lines(request: Request) -> AsyncGenerator[bytes, None]:
    """The lines of the body, each with its line break; the last one may have none."""
    longest = request.context.settings.max_body_bytes + LINE_OVERHEAD
    pending, seen, number = bytearray(), 0, 1
    async with aclosing(_chunks(request)) as pieces:
        async for piece in pieces:
            pending += piece
            end = pending.find(b"\n", seen)
            while 0 <= end < longest:
                yield bytes(pending[: end + 1])
                del pending[: end + 1]
                number += 1
                end = pending.find(b"\n")
            seen = len(pending)
            request.buffer(seen)
            if seen > longest:
                raise wire.export_lines.bad_line(
                    number, {"line": f"is longer than {longest} bytes, the limit of this server"}
                )
            await asyncio.sleep(0)  # yield to other requests
    if pending:
        yield bytes(pending)


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
