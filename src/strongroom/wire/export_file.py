"""An export file, checked line by line: the rules of each line, their order, the counts and the hash."""

from __future__ import annotations

import hashlib
from typing import Final

from strongroom.errors import Invalid
from strongroom.export_rows import (
    ExportCounts,
    ExportedBlob,
    ExportedDocument,
    ExportedKeyring,
    ExportedKeyringVersion,
    ExportedVault,
    ExportedVersion,
    ExportRow,
    KeyringRow,
)
from strongroom.wire.export_lines import FORMAT, FORMAT_VERSION, Counts, Header, Trailer, bad_line, read_line

MAX_KEYRINGS: Final = 128  # replaced ones: a server retains the last ten, and one for each of 90 days
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


class ExportFile:
    """Checks an export file line by line. No timestamp in it may be after `latest`, if one is given."""

    def __init__(self, latest: int | None = None) -> None:
        self.number = 0  # lines so far, without the trailer
        self.header: Header | None = None
        self.keyring: ExportedKeyring | None = None
        self.reached: dict[str, int] = {}  # the clock of each vault; whoever uses it empties it
        self.is_whole = False  # the trailer was there, and is right
        self._latest = latest
        self._keyring_version = 0  # of the last one that was replaced
        self._vault: ExportedVault | None = None
        self._part, self._last = 0, -1
        self._hash = hashlib.sha256()
        self._counts: dict[type[ExportRow | KeyringRow], int] = {
            ExportedKeyring: 0,
            ExportedKeyringVersion: 0,
            ExportedVault: 0,
            ExportedDocument: 0,
            ExportedVersion: 0,
            ExportedBlob: 0,
        }

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines so far."""
        return self._hash.hexdigest()

    @property
    def counts(self) -> Counts:
        """The number of lines of each kind so far."""
        return Counts(*self._counts.values())

    @property
    def vault_counts(self) -> ExportCounts:
        """The number of lines so far of what is in vaults."""
        counts = self.counts
        return ExportCounts(counts.vaults, counts.documents, counts.versions, counts.blob_versions)

    def read(self, raw: bytes) -> Header | Trailer | ExportRow | KeyringRow:
        """Check the next line; refused with its number."""
        if self.is_whole:
            raise bad_line(self.number + 2, {"kind": "comes after the trailer, which must be the last line"})
        try:
            line = read_line(raw)
            self._check_line(line)
        except Invalid as refusal:
            raise bad_line(self.number + 1, (refusal.details or {})["fields"]) from None
        if isinstance(line, Trailer):
            self.is_whole = True
        else:
            self.number += 1
            self._hash.update(raw)
        return line

    def _check_line(self, line: Header | Trailer | ExportRow | KeyringRow) -> None:
        """Refuse a line that is out of order."""
        self._check_times(line)
        if isinstance(line, Header):
            self._check_header(line)
        elif self.header is None:
            raise Invalid({"kind": "must be header in the first line"})
        elif isinstance(line, Trailer):
            self._end_vault()
            self._check_trailer(line)
        elif isinstance(line, ExportedKeyring | ExportedKeyringVersion):
            self._check_keyring(line)
        elif isinstance(line, ExportedVault):
            self._end_vault()
            if line.updated_at > self.header.clock:
                raise Invalid({"updatedAt": "must not be after the clock of the header"})
            self._vault, self._part, self._last = line, 0, -1
            self.reached[line.uid] = line.created_at
        else:
            self._check_in_vault(line)
        if not isinstance(line, Header | Trailer):
            self._counts[type(line)] += 1

    def _check_times(self, line: Header | Trailer | ExportRow | KeyringRow) -> None:
        if self._latest is None:
            return
        late = [field for name, field in _TIMESTAMPS.items() if (getattr(line, name, None) or 0) > self._latest]
        if late:
            raise Invalid(dict.fromkeys(late, "is more than 24 hours ahead of this server's time"))

    def _check_header(self, header: Header) -> None:
        if self.header is not None:
            raise Invalid({"kind": "is header a second time"})
        if header.format != FORMAT:
            raise Invalid({"format": f"must be {FORMAT}"})
        if header.version != FORMAT_VERSION:
            raise Invalid({"version": f"must be {FORMAT_VERSION}: no other is read here"})
        self.header = header

    def _check_keyring(self, line: KeyringRow) -> None:
        """Check that the keyring stands before all vaults, and before the keyrings that it replaced."""
        if self._vault is not None:
            raise Invalid({"kind": "must come before the vaults"})
        if isinstance(line, ExportedKeyring):
            if self.keyring is not None or self._keyring_version:
                raise Invalid({"kind": "must be there once, and before those of kind keyringVersion"})
            self.keyring = line
            return
        if self.keyring is None:
            raise Invalid({"kind": "must come after the keyring"})
        if not self._keyring_version < line.version < self.keyring.version:
            raise Invalid({"version": "must be after that of the line before, and before that of the keyring"})
        if self._counts[ExportedKeyringVersion] == MAX_KEYRINGS:
            raise Invalid({"kind": f"must be there {MAX_KEYRINGS} times at the most"})
        self._keyring_version = line.version

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

    def _check_trailer(self, trailer: Trailer) -> None:
        """Refuse a file that was altered: by the hash and the counts of its trailer."""
        if trailer.sha256.lower() != self.digest:
            raise Invalid({"sha256": "is not that of the lines before: the file was altered"})
        if trailer.counts != self.counts:
            raise Invalid({"counts": "are not those of the lines before: the file was altered"})
