"""The lines of an export file, as an import decodes them, with the rules of single requests."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Struct

from strongroom import rules
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
from strongroom.wire.decode import decode
from strongroom.wire.requests import (
    Blob,
    Body,
    Ciphertext,
    Collection,
    Hmac,
    Kdf,
    Name,
    OneFactor,
    Salt,
    Text,
    Uid,
    Wrapped,
    _blob_whole,
    _is_kdf,
    _is_one_factor,
    _is_uid,
    _meta,
)

MEDIA_TYPE: Final = "application/x-ndjson"
FORMAT: Final = "strongroom-export"
FORMAT_VERSION: Final = 2  # version 1 had no keyring

Timestamp = Annotated[int, _meta("must be an integer of Unix milliseconds, from 0", ge=0, le=rules.MAX_IMPORTED)]
Ordinal = Annotated[int, _meta("must be an integer from 1", ge=1, le=rules.MAX_IMPORTED)]
Number = Annotated[int, _meta("must be an integer from 0", ge=0, le=rules.MAX_IMPORTED)]


class Header(Body, frozen=True, tag="header", tag_field="kind", omit_defaults=True):
    """The first line: what the file is. `id` tells one export from another; `clock` and `kdf` are the account's."""

    format: Text
    version: Ordinal
    id: Uid
    epoch: Text
    exported_at: Timestamp
    clock: Timestamp
    kdf: Kdf | None = None
    checks = {"id": _is_uid, "kdf": _is_kdf}


class Counts(Struct, frozen=True, rename="camel"):
    """How many lines of each kind there are."""

    keyrings: Number
    keyring_versions: Number
    vaults: Number
    documents: Number
    versions: Number
    blob_versions: Number


class Trailer(Body, frozen=True, tag="trailer", tag_field="kind"):
    """The last line: how many of each kind there were, and the SHA-256 of every byte before this line."""

    counts: Annotated[
        Counts,
        _meta("must be the number of keyrings, keyringVersions, vaults, documents, versions and blobVersions"),
    ]
    sha256: Text


class PasswordLine(Body, frozen=True, tag="password", tag_field="kind"):
    """The account's password, before the file: whoever brings in keys proves it. It is no line of the file."""

    current_password: Text
    second_factor: OneFactor | None = None
    checks = {"second_factor": _is_one_factor}


def _in_order(given: dict[str, Any], *names: str) -> dict[str, str]:
    """The fields whose timestamps are before the one that they must follow."""
    told = [name for name in names if isinstance(given.get(name), int)]
    return {
        later: f"must not be before {earlier}" for earlier, later in pairwise(told) if given[later] < given[earlier]
    }


class _Line(Body, frozen=True):
    """A line that is stored. `becomes` has the same fields in the same order."""

    becomes: ClassVar[type[ExportRow | KeyringRow]]


class KeyringLine(_Line, frozen=True, tag="keyring", tag_field="kind"):
    """The account's keyring."""

    keyring: Wrapped
    version: Ordinal
    updated_at: Timestamp
    checks = {"keyring": rules.is_base64}
    becomes = ExportedKeyring


class KeyringVersionLine(_Line, frozen=True, tag="keyringVersion", tag_field="kind"):
    """A keyring that was replaced."""

    keyring: Wrapped
    version: Ordinal
    updated_at: Timestamp
    replaced_at: Timestamp
    kdf: Kdf | None = None
    checks = {"keyring": rules.is_base64, "kdf": _is_kdf}
    becomes = ExportedKeyringVersion

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:
        """Its times follow each other."""
        return _in_order(given, "updatedAt", "replacedAt")


class VaultLine(_Line, frozen=True, tag="vault", tag_field="kind"):
    """A vault."""

    uid: Uid
    name: Name
    version: Ordinal
    created_at: Timestamp
    updated_at: Timestamp
    data: Blob | None = None
    salt: Salt | None = None
    checks = {"uid": _is_uid, "salt": rules.is_base64}
    becomes = ExportedVault

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:
        """A blob is whole; a vault is made before it is changed."""
        return _blob_whole(given) | _in_order(given, "createdAt", "updatedAt")


class DocumentLine(_Line, frozen=True, tag="document", tag_field="kind"):
    """A document, deleted or not."""

    uid: Uid
    vault_uid: Uid
    collection: Collection
    version: Ordinal
    created_at: Timestamp
    updated_at: Timestamp
    data: Ciphertext | None = None
    hmac: Hmac | None = None
    deleted_at: Timestamp | None = None
    purged_at: Timestamp | None = None
    checks = {"uid": _is_uid, "vault_uid": _is_uid, "collection": rules.is_collection, "data": rules.is_base64}
    becomes = ExportedDocument

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:
        """Only what was deleted can have been thrown away, and only that has no data."""
        bad = _in_order(given, "createdAt", "deletedAt", "updatedAt") | _in_order(given, "deletedAt", "purgedAt")
        purged = given.get("purgedAt") is not None
        if purged and given.get("deletedAt") is None:
            bad["purgedAt"] = "is only for a document that is deleted"
        if purged == (given.get("data") is not None):
            bad["data"] = "must be absent where purgedAt is given" if purged else "is required"
        return bad


class VersionLine(_Line, frozen=True, tag="version", tag_field="kind"):
    """What a document was before it was replaced."""

    uid: Uid
    vault_uid: Uid
    collection: Collection
    version: Ordinal
    created_at: Timestamp
    updated_at: Timestamp
    replaced_at: Timestamp
    data: Ciphertext
    hmac: Hmac | None = None
    deleted_at: Timestamp | None = None
    checks = {"uid": _is_uid, "vault_uid": _is_uid, "collection": rules.is_collection, "data": rules.is_base64}
    becomes = ExportedVersion

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:
        """Its times follow each other."""
        return _in_order(given, "createdAt", "deletedAt", "updatedAt", "replacedAt")


class BlobLine(_Line, frozen=True, tag="blobVersion", tag_field="kind"):
    """What a vault's blob was before it was replaced."""

    uid: Uid
    version: Ordinal
    updated_at: Timestamp
    replaced_at: Timestamp
    data: Blob
    salt: Salt
    name: Name | None = None
    checks = {"uid": _is_uid, "salt": rules.is_base64}
    becomes = ExportedBlob

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:
        """Its times follow each other."""
        return _in_order(given, "updatedAt", "replacedAt")


class _Kind(Struct, frozen=True):
    kind: str


_KINDS: Final[dict[str, type[Header | Trailer | _Line]]] = {
    "header": Header,
    "keyring": KeyringLine,
    "keyringVersion": KeyringVersionLine,
    "vault": VaultLine,
    "document": DocumentLine,
    "version": VersionLine,
    "blobVersion": BlobLine,
    "trailer": Trailer,
}
_kind = msgspec.json.Decoder(_Kind).decode


def _kind_of(raw: bytes) -> str | None:
    try:
        return _kind(raw).kind
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def read_password(raw: bytes) -> PasswordLine | None:
    """The line with the password that stands before the file; None if it is no such line."""
    return decode(PasswordLine, raw) if _kind_of(raw) == "password" else None


def read_line(raw: bytes) -> Header | Trailer | ExportRow | KeyringRow:
    """Decode one line; uids in canonical form."""
    shape = _KINDS.get(_kind_of(raw) or "")
    if shape is None:
        decode(Body, raw.strip() or b"0")  # says what is wrong with it if it is no JSON object at all
        raise Invalid({"kind": f"must be one of {', '.join(_KINDS)}"})
    line = decode(shape, raw)
    if not isinstance(line, _Line):
        return line
    values = {name: getattr(line, name) for name in line.__struct_fields__}
    return line.becomes(**{name: value.lower() if name in _UIDS else value for name, value in values.items()})


_UIDS: Final = {"uid", "vault_uid"}


def bad_line(number: int, fields: dict[str, str]) -> Invalid:
    """The error for an invalid line of a file."""
    told = "; ".join(f"{name} {sentence}" for name, sentence in fields.items())
    refusal = Invalid(fields, f"Line {number} of the file is not valid: {told}.")
    assert refusal.details is not None  # noqa: S101 - it holds the fields
    refusal.details["line"] = number
    return refusal
