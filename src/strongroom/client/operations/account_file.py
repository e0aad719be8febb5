"""The file of an account (docs/export.md), verified with the account's keys.

Nothing of a file is believed that the keys do not prove: each document, deletion, version and blob has its proof, each
vault of the directory is there, and each keyring belongs to the account. Vaults that the directory does not have, such
as one whose deletion was interrupted, are carried unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import msgspec

from strongroom import model
from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import keyring, names, seal
from strongroom.client.format.encoding import short
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import VaultKeys
from strongroom.client.format.padding import Content
from strongroom.client.operations.documents import KeyScope, key_scope
from strongroom.errors import Invalid
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
from strongroom.wire.export_file import ExportFile
from strongroom.wire.export_lines import FORMAT, Header, Trailer

MAX_LINE: Final = 1 << 31  # bytes
_SOME: Final = 1 << 20  # bytes that are read before progress is told
_NO_KEYRING: Final = "The file has no keyring: it is not of an account of this client."
_CUT_OFF: Final = "The file ends before its last line: it was cut off. Export the account again."
_DAMAGED: Final = "The file is incomplete or damaged; export the account again."
_NO_EXPORT: Final = "This is no file of export_account, or its beginning is damaged."
_PLAINTEXT: Final = (
    "This is a file of export_plaintext, which cannot be imported; to move an account, use a file of export_account."
)
_MISSING_VAULT: Final = "The file lacks a vault that the account's directory has, and that nobody deleted."

Line = Header | Trailer | ExportRow | KeyringRow


class AccountFile:
    """Reads the lines of a file and verifies each. `use_keyring` follows on the line of the keyring."""

    def __init__(self) -> None:
        self.lines = ExportFile()
        self._ring: Keyring | None = None
        self._vault: _VaultRows | None = None
        self._vaults: set[str] = set()
        self._uids: set[str] = set()
        self._keyrings: list[ExportedKeyringVersion] = []

    @property
    def header(self) -> Header:
        """The first line, once it was read."""
        if self.lines.header is None:
            raise Invalid({"file": _CUT_OFF}, _CUT_OFF)
        return self.lines.header

    @property
    def ring(self) -> Keyring:
        """The keyring of the file, opened."""
        if self._ring is None:
            raise Invalid({"file": _NO_KEYRING}, _NO_KEYRING)
        return self._ring

    @property
    def replaced_keyrings(self) -> list[ExportedKeyringVersion]:
        """The keyrings that were replaced."""
        return self._keyrings

    def use_keyring(self, line: ExportedKeyring, ring: Keyring) -> None:
        """Verify everything that comes with this keyring; refused where the line names another version than it does."""
        if ring.version != line.version:
            raise self._altered()
        self._ring = ring

    def read_head(self, source: BinaryIO) -> ExportedKeyring:
        """Read the header and the keyring."""
        self.read(source.readline(MAX_LINE))
        line = self.read(source.readline(MAX_LINE))
        if not isinstance(line, ExportedKeyring):
            raise Invalid({"file": _NO_KEYRING}, _NO_KEYRING)
        return line

    def read_some(self, source: BinaryIO) -> bool:
        """Read and verify the next lines; False at the end of the file, which must be whole."""
        end = source.tell() + _SOME
        for raw in raw_lines(source):
            self.read(raw)
            if source.tell() >= end:
                return True
        self.require_whole()
        return False

    def read(self, raw: bytes) -> Line:
        """Read and verify the next line."""
        if not raw:
            raise Invalid({"file": _CUT_OFF}, _CUT_OFF)
        try:
            line = self.lines.read(raw)
        except Invalid as fault:
            raise self._unreadable(raw, fault) from None
        try:
            self._verify(line)
        except (Tampered, Locked):
            raise self._altered() from None
        return line

    def require_whole(self) -> None:
        """Refuse a file that was cut off."""
        if not self.lines.is_whole:
            raise Invalid({"file": _CUT_OFF}, _CUT_OFF)

    def scope(self, vault_uid: str) -> KeyScope | None:
        """The keys of the vault that is being read; None if the directory has no such vault."""
        return self._vault.scope if self._vault is not None and self._vault.uid == vault_uid else None

    def _unreadable(self, raw: bytes, fault: Invalid) -> Invalid:
        """What is wrong with a file that has a line which is not valid."""
        if self.lines.header is None and _is_plaintext(raw):
            said = _PLAINTEXT
        elif self.lines.header is None and not has_header(raw):
            said = _NO_EXPORT
        elif self.lines.header is None:
            return fault
        elif not raw.endswith(b"\n"):
            said = _CUT_OFF
        else:
            said = f"{fault.message} {_DAMAGED}"
        refusal = Invalid((fault.details or {}).get("fields", {}), said)
        refusal.details = fault.details
        return refusal

    def _altered(self) -> Tampered:
        return Tampered(
            f"Line {self.lines.number} of the file was not made with the keys of this account for its place: the file "
            "was altered, or put together from several."
        )

    def _verify(self, line: Line) -> None:
        if isinstance(line, Header | ExportedKeyring):
            return
        if isinstance(line, ExportedKeyringVersion):
            self._verify_keyring(line)
        elif isinstance(line, Trailer):
            self._end_vault()
            if any(entry.made and entry.uid not in self._vaults for entry in self.ring.vaults):
                raise RolledBack(_MISSING_VAULT)
        elif isinstance(line, ExportedVault):
            self._end_vault()
            self._vault = _VaultRows(self.ring, line)
            self._vaults.add(line.uid)
        elif self._vault is not None:
            if isinstance(line, ExportedDocument):
                if line.uid in self._uids:
                    raise Tampered
                self._uids.add(line.uid)
            self._vault.add(line)

    def _end_vault(self) -> None:
        if self._vault is not None:
            self._vault.check()
            self._vault = None

    def _verify_keyring(self, line: ExportedKeyringVersion) -> None:
        """Refuse a keyring of another account, of another version, or that the next one does not follow on."""
        if keyring.account_of(line.keyring) != self.ring.account or keyring.version_of(line.keyring) != line.version:
            raise Tampered
        before = self._keyrings[-1] if self._keyrings else None
        if before is not None and before.version == line.version - 1:
            _require_next(before.keyring, keyring.previous_of(line.keyring))
        if line.version == self.ring.version - 1:
            _require_next(line.keyring, self.ring.previous)
        self._keyrings.append(line)


def _require_next(before: str, previous: bytes) -> None:
    if keyring.digest_of(before) != previous:
        raise Tampered


class _VaultRows:
    """The rows of one vault: each is proven by itself, and none follows on a row under a newer key."""

    def __init__(self, ring: Keyring, line: ExportedVault) -> None:
        entry = ring.entry(line.uid)
        self.uid = line.uid
        self.scope = None if entry is None else key_scope(ring.vault_keys(entry))
        self._line = line
        self._names = [line.name]  # that a replaced blob may be bound to
        if entry is not None and entry.sealed:
            self._names += [names.seal_vault_name(key, entry.name) for key in ring.vault_keys(entry).keys]
        self._versions: dict[str, int] = {}
        self._history: set[tuple[str, int]] = set()
        self._generations: dict[bytes, int] = {}  # of each row, by what a row that follows on it calls it
        self._parents: list[tuple[int, bytes]] = []
        self._blobs: list[ExportedBlob] = []
        if line.data is not None:
            self._open_blob(line.version, line.name, line.data, line.salt, seal.open_blob)

    def add(self, line: ExportedDocument | ExportedVersion | ExportedBlob) -> None:
        """Verify a row."""
        if self.scope is None:
            return
        if isinstance(line, ExportedBlob):
            self._blobs.append(line)
            return
        verify = seal.verify_document if isinstance(line, ExportedDocument) else seal.verify_past_document
        made = verify(self.scope.key(line.collection), document_of(line))
        self._parents.append((made.generation, made.parent))
        if isinstance(line, ExportedDocument):
            self._versions[line.uid] = line.version
            return
        if line.version >= self._versions.get(line.uid, 0) or (line.uid, line.version) in self._history:
            raise Tampered
        self._history.add((line.uid, line.version))
        self._generations[short(line.hmac or "")] = made.generation

    def check(self) -> None:
        """Check what takes all rows of the vault."""
        if any(generation < self._generations.get(parent, 0) for generation, parent in self._parents):
            raise Tampered
        self._check_blobs()

    def _check_blobs(self) -> None:
        """Each replaced blob is named by the one after it, or opens: a blob is bound to the name of its time."""
        data = self._line.data
        wanted = None if data is None or not self._blobs else seal.blob_parent(data)
        for blob in reversed(self._blobs):
            if short(blob.data) != wanted:
                self._open_any(blob)
            wanted = seal.blob_parent(blob.data)

    def _open_any(self, blob: ExportedBlob) -> None:
        for name in (*self._names, blob.name or ""):
            try:
                self._open_blob(blob.version, name, blob.data, blob.salt, seal.open_known_blob)
            except Tampered:
                continue
            return
        raise Tampered

    def _open_blob(
        self, version: int, name: str, data: str, salt: str | None, open_: Callable[[VaultKeys, model.Vault], Content]
    ) -> None:
        if self.scope is not None and self.scope.vault_keys is not None:
            vault = model.Vault(self.uid, name, version, 0, data=data, salt=salt)
            open_(self.scope.vault_keys, vault)


def document_of(line: ExportedDocument | ExportedVersion) -> model.Document:
    """A line as the row of a document."""
    return model.Document(
        line.uid,
        line.vault_uid,
        line.collection,
        line.data or "",
        line.hmac,
        line.version,
        line.created_at,
        line.updated_at,
        line.deleted_at,
    )


def has_header(raw: bytes) -> bool:
    """Whether the first line of a file says that it is the file of an account."""
    return _field(raw, "format") == FORMAT


def _is_plaintext(raw: bytes) -> bool:
    return _field(raw, "kind") is None and isinstance(_field(raw, "vault"), str)


def _field(raw: bytes, name: str) -> object:
    """A field of a line, if it is one of JSON."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found.get(name) if isinstance(found, dict) else None


def raw_lines(source: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each with its line break."""
    while raw := source.readline(MAX_LINE):
        yield raw


class LineSplitter:
    """Splits what arrives in pieces into lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece, each with its line break."""
        *ended, rest = piece.split(b"\n")
        found = [line + b"\n" for line in ended]
        if found:
            found[0] = b"".join([*self._parts, found[0]])
            self._parts, self._length = [], 0
        self._parts.append(rest)
        self._length += len(rest)
        if self._length > MAX_LINE:
            raise Tampered("The server sent a line that is longer than any line can be.")
        return found

    def require_end(self) -> None:
        """Refuse what ends within a line."""
        if self._length:
            raise Invalid({"file": _CUT_OFF}, _CUT_OFF)
