"""A file on its way into an account: read as it arrives, line by line, and stored in small transactions."""

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
ENVELOPE: Final = 4_096  # what a line may have beside the ciphertext of a whole request
BATCH_LINES: Final = 256  # in one transaction, so that others who write wait a few milliseconds and no more
BATCH_BYTES: Final = 512 * 1024
_PARTS: Final = (ExportedDocument, ExportedVersion, ExportedBlob)  # of a vault, in this order
_MOMENTS: Final = {
    "exported_at": "exportedAt",
    "clock": "clock",
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "deleted_at": "deletedAt",
    "purged_at": "purgedAt",
    "replaced_at": "replacedAt",
}
_CUT_OFF: Final = "ends before its trailer: it was cut off. What came in stays; send the whole file to go on"


class ImportFile:
    """What was read of the file so far: each line in its place, numbered, hashed and counted."""

    def __init__(self, now: int) -> None:
        self.number = 0
        self._latest = now + DAY  # a clock may run ahead of ours, but not by more
        self.header: wire.export_lines.Header | None = None
        self.reached: dict[str, int] = {}  # the time of each vault that lines since the last batch concern
        self._vault: ExportedVault | None = None
        self._part, self._last = 0, -1
        self._hash = hashlib.sha256()
        self._counts = {ExportedVault: 0, ExportedDocument: 0, ExportedVersion: 0, ExportedBlob: 0}

    @property
    def progress(self) -> ImportProgress:
        """How far we are."""
        return ImportProgress(self.number, self._hash.hexdigest(), ExportCounts(*self._counts.values()))

    def read(self, raw: bytes) -> wire.export_lines.Header | wire.export_lines.Trailer | ExportRow:
        """The next line, or the refusal that names it."""
        try:
            line = wire.export_lines.read_line(raw)
            self._place(line)
        except Invalid as refusal:
            raise wire.export_lines.bad_line(self.number + 1, (refusal.details or {})["fields"]) from None
        if not isinstance(line, wire.export_lines.Trailer):
            self.number += 1
            self._hash.update(raw)
        return line

    def _place(self, line: wire.export_lines.Header | wire.export_lines.Trailer | ExportRow) -> None:
        """Refuse a line that does not belong here."""
        late = [said for name, said in _MOMENTS.items() if (getattr(line, name, None) or 0) > self._latest]
        if late:
            raise Invalid(dict.fromkeys(late, "is more than 24 hours ahead of this server's time"))
        if isinstance(line, wire.export_lines.Header):
            self._begin(line)
        elif self.header is None:
            raise Invalid({"kind": "must be header in the first line"})
        elif isinstance(line, wire.export_lines.Trailer):
            self._leave_vault()
            self._end(line)
        elif isinstance(line, ExportedVault):
            self._leave_vault()
            if line.updated_at > self.header.clock:
                raise Invalid({"updatedAt": "must not be after the clock of the header"})
            self._vault, self._part, self._last = line, 0, -1
            self.reached[line.uid] = line.created_at
        else:
            self._place_in_vault(line)
        if type(line) in self._counts:
            self._counts[type(line)] += 1

    def _begin(self, header: wire.export_lines.Header) -> None:
        if self.header is not None:
            raise Invalid({"kind": "is header a second time"})
        if header.format != wire.export_lines.FORMAT:
            raise Invalid({"format": f"must be {wire.export_lines.FORMAT}"})
        if header.version != wire.export_lines.FORMAT_VERSION:
            raise Invalid({"version": f"must be {wire.export_lines.FORMAT_VERSION}: this server reads no other"})
        self.header = header

    def _place_in_vault(self, line: ExportedDocument | ExportedVersion | ExportedBlob) -> None:
        """In a vault come its documents, then what they were, then what its blob was; each part in order."""
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

    def _leave_vault(self) -> None:
        if self._vault is not None:
            self.reached[self._vault.uid] = self._vault.updated_at

    def _end(self, trailer: wire.export_lines.Trailer) -> None:
        """Refuse a file that is not the one that was written."""
        if trailer.sha256.lower() != self._hash.hexdigest():
            raise Invalid({"sha256": "is not that of the lines before: the file was altered on its way"})
        if trailer.tally != self.progress.counts:
            raise Invalid({"counts": "are not those of the lines before: the file was altered"})


class ImportUpload:
    """One attempt to bring a file in. What earlier attempts with the same file brought is skipped."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._file = ImportFile(request.context.clock())
        self._known = ImportProgress(0, "", ExportCounts())  # how far earlier attempts came
        self._done = False  # to the end, even
        self._stored = self._known
        self._trailer = False
        self._waiting: list[tuple[int, ExportRow]] = []
        self._size = 0

    async def run(self) -> Import:
        """Read and store all of it; what came of it."""
        request, file = self._request, self._file
        _admit(request)
        await request.read(imports.require_empty_account, request.actor)
        async with aclosing(_lines(request)) as lines:
            async for raw in lines:
                await self._line(raw)
        if not self._trailer or file.header is None:
            raise Invalid({"body": _CUT_OFF}, f"The file {_CUT_OFF}, or give the import up with DELETE /auth/import.")
        if file.number < self._known.lines:
            raise self._another()
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
                raise self._another()
            self._waiting.append((file.number, line))
            self._size += len(raw)
            if len(self._waiting) >= BATCH_LINES or self._size >= BATCH_BYTES:
                await self._store()
        if file.number == self._known.lines:
            if file.progress != self._known:
                raise self._another()
            file.reached.clear()

    async def _store(self) -> None:
        """Store what waits, and with it the progress up to here."""
        context, file, batch = self._request.context, self._file, self._batch()
        if not has_valid_signature(self._request):
            raise Unauthorized
        assert file.header is not None  # noqa: S101 - nothing waits before it came
        await self._request.write_long(imports.store_batch, self._request.actor, context.limits, file.header.id, batch)
        self._stored = batch.progress
        self._waiting, self._size, file.reached = [], 0, {}

    def _batch(self) -> imports.ImportBatch:
        return imports.ImportBatch(self._waiting, self._stored.lines, self._file.progress, self._file.reached)

    def _another(self) -> Refusal:
        """Up to the progress it must be the file that came before, to the byte."""
        if self._done:
            return AccountNotEmpty()
        return ImportUnfinished("This is not the file with which the unfinished import into your account began.")


def _admit(request: Request) -> None:
    """Refuse what is too large or no file at all, before anything is read."""
    limit, declared = request.context.settings.import_max_bytes, request.header(b"content-length")
    if limit and declared is not None and int(declared) > limit:
        raise PayloadTooLarge(limit)
    if (request.header(b"content-type") or "").partition(";")[0].strip().lower() != LINES:
        raise UnsupportedMediaType(f"Send the file of an export, with 'Content-Type: {LINES}'.")


async def _lines(request: Request) -> AsyncGenerator[bytes, None]:
    """The lines of the body, each with its end; the last one may have none."""
    longest = request.context.settings.max_body_bytes + ENVELOPE
    pending, seen, number = bytearray(), 0, 1
    async with aclosing(_pieces(request)) as pieces:
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
                    number, {"line": f"is longer than {longest} bytes, the most that is taken here"}
                )
            await asyncio.sleep(0)  # others get their turn
    if pending:
        yield bytes(pending)


async def _pieces(request: Request) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. Only waiting for it counts against its time, not what is done with it meanwhile."""
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
