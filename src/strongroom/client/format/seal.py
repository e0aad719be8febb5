"""Sealed rows: a document, its deletion, a vault's blob. Each is bound to its place and to the version that it will be.

    data = base64(format (1) ‖ kind (1) ‖ box)
    hmac = "sr1." ‖ base64url(HMAC-SHA-256(proof key, place, uid, version, kind, SHA-256 of data))

A deletion is two writes: a notice, sealed like a document of the next version, and then the server's own DELETE, which
keeps the notice under the tombstone. A tombstone without a notice is not believed. The proof of a notice does not cover
its data, so that it still stands when the server has thrown the data away.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, padding, primitives
from strongroom.client.format.content import EMPTY, to_content, to_value
from strongroom.client.format.encoding import (
    FORMAT,
    checked_name,
    checked_uid,
    checked_version,
    from_base64,
    is_version,
    items,
    label,
    number,
    text,
    to_base64,
    to_url,
)
from strongroom.client.format.keys import CollectionKey, VaultKey
from strongroom.client.format.padding import Content
from strongroom.model import Document, Vault
from strongroom.wire import responses

DOCUMENT: Final = 1
DELETION: Final = 2
BLOB: Final = 3
PROOF_PREFIX: Final = "sr1."
_AGAIN: Final = "What was sealed does not open again; nothing was sent."
_STRANGE: Final = "The server sent a row that is not in this format: another client made it, or it was changed."
_UNPROVEN: Final = "The server says that a document is deleted, and has no proof from a key holder."
_HEAD: Final = {kind: bytes((FORMAT, kind)) for kind in (DOCUMENT, DELETION, BLOB)}
_KIND: Final = {_HEAD[DOCUMENT]: DOCUMENT, _HEAD[DELETION]: DELETION}
_LABEL: Final = {
    DOCUMENT: items(label("document")),
    DELETION: items(label("deletion")),
    BLOB: items(label("blob")),
}
_PROOF: Final = items(label("proof"))


class Sealed(Struct, frozen=True):
    """What is sent of a document: the two fields that the server keeps."""

    data: str
    hmac: str


class SealedBlob(Struct, frozen=True):
    """What is sent of a blob."""

    data: str
    salt: str


class Opened(Struct, frozen=True, kw_only=True):
    """A row that was believed. `deleted` is a key holder's word; `purged`: the content is gone from the server."""

    uid: str
    version: int
    deleted: bool
    purged: bool
    content: Content

    @property
    def value(self) -> Any:
        """The value that was sealed; of a deletion, the last value if its notice carries it."""
        return to_value(self.content)

    def __repr__(self) -> str:
        return f"Opened(uid={self.uid!r}, version={self.version}, deleted={self.deleted})"


def seal_document(
    keys: CollectionKey, uid: str, version: int, value: Any, random: primitives.Random = primitives.random
) -> Sealed:
    """Seal a value as this document's next version: 1 for a new one, else one more than the stored version."""
    return seal_content(keys, DOCUMENT, uid, version, to_content(value), random)


def seal_deletion(
    keys: CollectionKey,
    uid: str,
    version: int,
    last: Content = EMPTY,
    random: primitives.Random = primitives.random,
) -> Sealed:
    """Seal the notice that a document is deleted: PUT it as the next version, then DELETE that.

    `last` is the content that was deleted, so that it can be restored; it is lost when the server empties its trash.
    """
    return seal_content(keys, DELETION, uid, version, last, random)


def seal_content(
    keys: CollectionKey, kind: int, uid: str, version: int, content: Content, random: primitives.Random
) -> Sealed:
    """Seal content, and open again what is about to be sent."""
    uid = checked_uid(uid)
    row = _row(keys, uid, checked_version(version))
    associated = _LABEL[kind] + row
    padded = padding.pad(content)
    data = to_base64(_HEAD[kind] + box.seal(keys.sealing, random(primitives.KEY), padded, associated))
    if box.open_(keys.sealing, from_base64(data)[2:], associated) != padded:
        raise Tampered(_AGAIN)
    return Sealed(data, _proof(keys, kind, row, data))


def open_document(keys: CollectionKey, row: Document) -> Opened:
    """Verify and decrypt a row, live or deleted: a key holder must have made it for exactly this place and version.

    The caller compares `row.uid` with the uid of its request; vault and collection are compared here, with the key's.
    """
    if row.vault_uid != keys.vault or row.collection != keys.collection or row.hmac is None:
        raise Tampered(_STRANGE if row.hmac is None else None)
    if not is_version(row.version):
        raise Tampered
    if row.deleted_at is None:
        kind, content = _open(keys, row.uid, row.version, row.data, row.hmac)
        return _opened(row, content, deleted=kind == DELETION)
    return _open_tombstone(keys, row, row.hmac)


def _open_tombstone(keys: CollectionKey, row: Document, hmac: str) -> Opened:
    before = row.version - 1  # the notice's version: the DELETE counted one more
    if not is_version(before):
        raise Tampered(_UNPROVEN)
    if row.data:
        kind, content = _open(keys, row.uid, before, row.data, hmac)
        if kind != DELETION:
            raise Tampered(_UNPROVEN)
        return _opened(row, content, deleted=True)
    if not _equal(hmac, _proof(keys, DELETION, _row(keys, row.uid, before), "")):
        raise Tampered(_UNPROVEN)
    return _opened(row, EMPTY, deleted=True, purged=True)


def _opened(row: Document, content: Content, *, deleted: bool, purged: bool = False) -> Opened:
    return Opened(uid=row.uid, version=row.version, deleted=deleted, purged=purged, content=content)


def _open(keys: CollectionKey, uid: str, version: int, data: str, hmac: str) -> tuple[int, Content]:
    raw = from_base64(data)
    kind = _KIND.get(raw[:2])
    if kind is None:
        raise Tampered(_STRANGE)
    row = _row(keys, uid, version)
    if not _equal(hmac, _proof(keys, kind, row, data)):
        raise Tampered
    content = padding.unpad(box.open_(keys.sealing, raw[2:], _LABEL[kind] + row))
    if content.kind == padding.NOTHING and kind == DOCUMENT:
        raise Tampered
    return kind, content


def _row(keys: CollectionKey, uid: str, version: int) -> bytes:
    """The items that say which version of which document: account, vault, collection, uid, version."""
    return keys.place + items(text(uid), number(version))


def _proof(keys: CollectionKey, kind: int, row: bytes, data: str) -> str:
    digest = primitives.sha256(data.encode("ascii")) if kind == DOCUMENT else b""
    return PROOF_PREFIX + to_url(primitives.hmac_sha256(keys.proving, _PROOF + row + items(bytes((kind,)), digest)))


def _equal(left: str, right: str) -> bool:
    return primitives.equal(left.encode("utf-8", "surrogatepass"), right.encode("ascii"))


# A blob is bound to its vault's name too: a rename seals the blob again, in the same request.


def seal_blob(
    keys: VaultKey, name: str, version: int, value: Any, random: primitives.Random = primitives.random
) -> SealedBlob:
    """Seal a value as this vault's blob. `name` is the vault's on the wire, `version` the vault's next version."""
    content = to_content(value)
    associated = _blob(keys, checked_name(name, "name"), checked_version(version))
    sealed = box.seal(keys.blob(), random(primitives.KEY), padding.pad(content), associated)
    made = SealedBlob(to_base64(_HEAD[BLOB] + sealed[primitives.KEY :]), to_base64(sealed[: primitives.KEY]))
    if _open_blob(keys, made.data, made.salt, associated) != content:
        raise Tampered(_AGAIN)
    return made


def open_blob(keys: VaultKey, vault: Vault | responses.Vault) -> Content:
    """Verify and decrypt a blob: a key holder must have made it for exactly this vault, name and version."""
    if vault.uid != keys.vault or vault.data is None or vault.salt is None or not is_version(vault.version):
        raise Tampered
    return _open_blob(keys, vault.data, vault.salt, _blob(keys, vault.name, vault.version))


def _open_blob(keys: VaultKey, data: str, salt: str, associated: bytes) -> Content:
    raw = from_base64(data)
    if raw[:2] != _HEAD[BLOB]:
        raise Tampered(_STRANGE)
    cut = from_base64(salt)
    if len(cut) != primitives.KEY:
        raise Tampered
    content = padding.unpad(box.open_(keys.blob(), cut + raw[2:], associated))
    if content.kind == padding.NOTHING:
        raise Tampered
    return content


def _blob(keys: VaultKey, name: str, version: int) -> bytes:
    return _LABEL[BLOB] + items(keys.account, text(keys.vault), text(name), number(version))
