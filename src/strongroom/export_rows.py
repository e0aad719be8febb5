"""The rows of an export: as the store reads and adds them, and as the lines of the file."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Kdf: TypeAlias = dict[str, str | int | bool]  # a key derivation descriptor, which is not interpreted


class ExportedKeyring(Struct, frozen=True, rename="camel", omit_defaults=True, tag="keyring", tag_field="kind"):
    """The account's keyring."""

    keyring: str
    version: int
    updated_at: int

    def __repr__(self) -> str:
        return f"ExportedKeyring(version={self.version})"


class ExportedKeyringVersion(
    Struct, frozen=True, rename="camel", omit_defaults=True, tag="keyringVersion", tag_field="kind"
):
    """A keyring that was replaced, with the key derivation descriptor that the account had until then."""

    keyring: str
    version: int
    updated_at: int
    replaced_at: int
    kdf: Kdf | None = None

    def __repr__(self) -> str:
        return f"ExportedKeyringVersion(version={self.version})"


class ExportedVault(Struct, frozen=True, rename="camel", omit_defaults=True, tag="vault", tag_field="kind"):
    """A vault."""

    uid: str
    name: str
    version: int
    created_at: int
    updated_at: int
    data: str | None = None
    salt: str | None = None

    def __repr__(self) -> str:
        return f"ExportedVault(uid={self.uid!r})"


class ExportedDocument(Struct, frozen=True, rename="camel", omit_defaults=True, tag="document", tag_field="kind"):
    """A document, deleted or not. One whose ciphertext was purged has no data; `purged_at` is the time of that."""

    uid: str
    vault_uid: str
    collection: str
    version: int
    created_at: int
    updated_at: int
    data: str | None = None
    hmac: str | None = None
    deleted_at: int | None = None
    purged_at: int | None = None

    def __repr__(self) -> str:
        return f"ExportedDocument(uid={self.uid!r}, version={self.version})"


class ExportedVersion(Struct, frozen=True, rename="camel", omit_defaults=True, tag="version", tag_field="kind"):
    """A version of a document that was replaced."""

    uid: str
    vault_uid: str
    collection: str
    version: int
    created_at: int
    updated_at: int
    replaced_at: int
    data: str
    hmac: str | None = None
    deleted_at: int | None = None

    def __repr__(self) -> str:
        return f"ExportedVersion(uid={self.uid!r}, version={self.version})"


class ExportedBlob(Struct, frozen=True, rename="camel", omit_defaults=True, tag="blobVersion", tag_field="kind"):
    """A version of a vault's blob that was replaced."""

    uid: str
    version: int
    updated_at: int
    replaced_at: int
    data: str
    salt: str | None = None
    name: str | None = None

    def __repr__(self) -> str:
        return f"ExportedBlob(uid={self.uid!r}, version={self.version})"


class ExportCounts(Struct, frozen=True, rename="camel"):
    """The number of rows of each kind in vaults, in an export or in what an import has stored."""

    vaults: int = 0
    documents: int = 0
    versions: int = 0
    blob_versions: int = 0


KeyringRow: TypeAlias = ExportedKeyring | ExportedKeyringVersion
ExportRow: TypeAlias = ExportedVault | ExportedDocument | ExportedVersion | ExportedBlob
