"""Sealed rows: a document, its deletion, a vault's blob. Each is bound to its place, its version and its parent.

    data = base64(format (1) ‖ kind (1) ‖ generation (4) ‖ box)
    hmac = "sr2." ‖ base64url(generation (4) ‖ parent (16) ‖ HMAC-SHA-256(proof key, row, kind, SHA-256 of data))

A deletion is two writes: a notice, sealed like a document of the next version, and then the server's own DELETE, which
keeps the notice under the tombstone. A tombstone without a notice is not believed. The proof of a notice does not cover
its data, so that it still stands when the server has thrown the data away.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, padding, primitives
from strongroom.client.format.content import EMPTY, to_content, to_value
from strongroom.client.format.encoding import (
    FORMAT,
    MOST_VERSION,
    NO_PARENT,
    PARENT,
    PREFIX,
    check_format,
    checked_name,
    checked_uid,
    checked_version,
    from_base64,
    from_url,
    generation_bytes,
    is_unicode,
    is_version,
    items,
    label,
    number,
    read_generation,
    short,
    text,
    to_base64,
    to_url,
    without_prefix,
)
from strongroom.client.format.keys import CollectionKey, CollectionKeys, VaultKey, VaultKeys
from strongroom.client.format.padding import Content
from strongroom.client.format.parents import Link
from strongroom.model import Document, Vault, VaultBlob
from strongroom.wire import responses

DOCUMENT: Final = 1
DELETION: Final = 2
BLOB: Final = 3
_HEAD_BYTES: Final = 6  # format, kind, generation
_AGAIN: Final = "What was sealed does not open again; nothing was sent."
_STRANGE: Final = "The server sent a row that is not in this format: another client made it, or it was changed."
_UNPROVEN: Final = "The server says that a document is deleted, and has no proof from a key holder."
_OLD_KEY: Final = (
    "The server shows something that was made with keys from before a rotation. If it was restored from an older "
    "backup, finish the rotation on a new device."
)
_HEAD: Final = {kind: bytes((FORMAT, kind)) for kind in (DOCUMENT, DELETION, BLOB)}
_KIND: Final = {_HEAD[DOCUMENT]: DOCUMENT, _HEAD[DELETION]: DELETION}
_HEAD_TEXT: Final = 8  # characters of base64 that the head takes, exactly
_LABEL: Final = {
    DOCUMENT: items(label("document")),
    DELETION: items(label("deletion")),
    BLOB: items(label("blob")),
}
_PROOF: Final = items(label("proof"))
_DIGEST: Final = items(bytes((DOCUMENT,))) + primitives.KEY.to_bytes(4, "big")  # what comes before a digest
_PROOF_TEXT: Final = 74  # characters of `hmac`
_READ_PROOF: Final = struct.Struct(f">I{PARENT}s{primitives.KEY}s").unpack
_NUMBERS_AND_PARENT: Final = struct.Struct(f">IQIQI{PARENT}s").pack


class Sealed(Struct, frozen=True):
    """What is sent of a document: the two fields that the server keeps."""

    data: str
    hmac: str


class SealedBlob(Struct, frozen=True):
    """What is sent of a blob."""

    data: str
    salt: str


class Proof(Struct, frozen=True):
    """What an `hmac` says: the generation of the key, the parent, and the proof itself."""

    generation: int
    parent: bytes
    mac: bytes


class Verified(Struct, frozen=True):
    """A row whose proof is right. `deleted` is a key holder's word; `purged`: the content is gone from the server."""

    uid: str
    version: int
    generation: int
    parent: bytes
    deleted: bool
    purged: bool


class Opened(Struct, frozen=True, kw_only=True):
    """A row that was believed, with its content."""

    uid: str
    version: int
    generation: int
    parent: bytes
    deleted: bool
    purged: bool
    content: Content

    @property
    def value(self) -> Any:
        """The value that was sealed; of a deletion, the last value if its notice carries it."""
        return to_value(self.content)

    def __repr__(self) -> str:
        return f"Opened(uid={self.uid!r}, version={self.version}, deleted={self.deleted})"


def read_proof(hmac: str | None) -> Proof:
    """The parts of an `hmac`; refused where it is in no spelling of this format."""
    spelled = without_prefix(hmac or "", _STRANGE)  # a later format may have longer ones
    if len(spelled) != _PROOF_TEXT - len(PREFIX):
        raise Tampered(_STRANGE)
    generation, parent, mac = _READ_PROOF(from_url(spelled))
    if generation == 0:
        raise Tampered
    return Proof(generation, parent, mac)


def parent_of(hmac: str) -> bytes:
    """The parent that an `hmac` names."""
    return read_proof(hmac).parent


def lineage(hmac: str) -> tuple[int, bytes]:
    """The generation and the parent that an `hmac` names."""
    proof = read_proof(hmac)
    return proof.generation, proof.parent


def require_generation(seen: str, newer: str) -> None:
    """Refuse an `hmac` that names as its parent one under a newer key: its writer was shut out by a rotation."""
    generation, parent = lineage(newer)
    if parent == short(seen) and generation < lineage(seen)[0]:
        raise Tampered(_OLD_KEY)


def link(row: Document) -> Link:
    """A row as a link of its chain: a tombstone counts as its notice."""
    return Link(row.version - (row.deleted_at is not None), row.hmac or "")


def notice_version(keys: CollectionKeys, wire: str, uid: str, version: int, hmac: str | None) -> int | None:
    """The version of the notice that an `hmac` proves: the row's own or, of a tombstone, the one before.

    None: it is not the proof of a deletion. Of a document it needs the data to prove anything.
    """
    proof = read_proof(hmac)
    key = keys.of(proof.generation)
    for one in (version, version - 1):
        row = _row(keys, key, wire, uid, one, proof.parent) if is_version(one) else b""
        if row and primitives.equal(proof.mac, _mac(key, DELETION, row, "")):
            return one
    return None


def parent_after(row: Document | None) -> bytes:
    """The parent of a row that follows on this one; None: it is the first."""
    return NO_PARENT if row is None or row.hmac is None else short(row.hmac)


def seal_document(
    keys: CollectionKeys,
    uid: str,
    version: int,
    value: Any,
    *,
    parent: bytes = NO_PARENT,
    wire: str | None = None,
    random: primitives.Random = primitives.random,
) -> Sealed:
    """Seal a value as this document's next version: 1 for a new one, else one more than the stored version.

    `wire` is the collection's name on the wire where the document lies; None for a new document.
    """
    return seal_content(keys, DOCUMENT, uid, version, to_content(value), parent=parent, wire=wire, random=random)


def seal_deletion(
    keys: CollectionKeys,
    uid: str,
    version: int,
    last: Content = EMPTY,
    *,
    parent: bytes,
    wire: str | None = None,
    random: primitives.Random = primitives.random,
) -> Sealed:
    """Seal the notice that a document is deleted: PUT it as the next version, then DELETE that.

    `last` is the content that was deleted, so that it can be restored; it goes when the server empties its trash.
    """
    return seal_content(keys, DELETION, uid, version, last, parent=parent, wire=wire, random=random)


def seal_content(
    keys: CollectionKeys,
    kind: int,
    uid: str,
    version: int,
    content: Content,
    *,
    parent: bytes,
    wire: str | None = None,
    random: primitives.Random = primitives.random,
) -> Sealed:
    """Seal content under the newest key, and open again what is about to be sent."""
    key = keys.newest
    row = _row(keys, key, wire or keys.wire, checked_uid(uid), checked_version(version), parent)
    associated = _LABEL[kind] + row
    padded = padding.pad(content)
    sealed = box.seal(key.sealing, random(primitives.KEY), padded, associated)
    data = to_base64(_HEAD[kind] + generation_bytes(key.generation) + sealed)
    if box.open_(key.sealing, from_base64(data)[_HEAD_BYTES:], associated) != padded:
        raise Tampered(_AGAIN)
    mac = _mac(key, kind, row, data)
    return Sealed(data, PREFIX + to_url(generation_bytes(key.generation) + parent + mac))


def reseal_notice(keys: CollectionKeys, row: Document, random: primitives.Random = primitives.random) -> Sealed:
    """A notice with the proof of a tombstone whose content was thrown away: the proof does not depend on it."""
    proof = read_proof(row.hmac)
    key = keys.of(proof.generation)
    associated = _LABEL[DELETION] + _row(keys, key, row.collection, row.uid, row.version - 1, proof.parent)
    sealed = box.seal(key.sealing, random(primitives.KEY), padding.pad(EMPTY), associated)
    return Sealed(to_base64(_HEAD[DELETION] + generation_bytes(key.generation) + sealed), row.hmac or "")


def verify_document(keys: CollectionKeys, row: Document) -> Verified:
    """Believe that a key holder made this row for exactly this place and version; a document's box is not opened.

    The caller compares a uid that it asked for with `row.uid`; vault and collection are compared here. The proof of a
    deletion does not cover its data, so that box is opened.
    """
    verified, key, kind, items_of_row = _verified(keys, row)
    if kind == DELETION and not verified.purged:
        _open(key, kind, items_of_row, row.data)
    return verified


def verify_past_document(keys: CollectionKeys, row: Document) -> Verified:
    """The same of a row that need not be current: one that was replaced, or that this device has believed before."""
    return verify_document(msgspec.structs.replace(keys, floor=1), row)


def open_document(keys: CollectionKeys, row: Document) -> Opened:
    """Believe a row, live or deleted, and open it."""
    verified, key, kind, items_of_row = _verified(keys, row)
    content = EMPTY
    if not verified.purged:
        content = _open(key, kind, items_of_row, row.data)
        if content.kind == padding.NOTHING and kind == DOCUMENT:
            raise Tampered
    return Opened(
        uid=verified.uid,
        version=verified.version,
        generation=verified.generation,
        parent=verified.parent,
        deleted=verified.deleted,
        purged=verified.purged,
        content=content,
    )


def open_past_document(keys: CollectionKeys, row: Document) -> Opened:
    """The same of a row that need not be current: one that was replaced, or that this device has believed before."""
    return open_document(msgspec.structs.replace(keys, floor=1), row)


def require_floor(keys: CollectionKeys, row: Document) -> None:
    """Refuse a live row below the floor: all that were live have been encrypted again above it."""
    if keys.floor > 1 and row.deleted_at is None and read_proof(row.hmac).generation < keys.floor:
        raise Tampered(_OLD_KEY)


def _open(key: CollectionKey, kind: int, items_of_row: bytes, data: str) -> Content:
    return padding.unpad(box.open_(key.sealing, from_base64(data)[_HEAD_BYTES:], _LABEL[kind] + items_of_row))


def _verified(keys: CollectionKeys, row: Document) -> tuple[Verified, CollectionKey, int, bytes]:
    """A row whose proof is right; and its key, its kind, and the items that it is bound to."""
    if row.vault_uid != keys.vault or row.collection not in keys.wires or not is_unicode(row.uid):
        raise Tampered
    gone = row.deleted_at is not None
    version = row.version - gone  # the DELETE counted one more than the notice
    proof = read_proof(row.hmac)
    generation, parent = proof.generation, proof.parent
    require_floor(keys, row)
    if version < 1 or row.version > MOST_VERSION:
        raise Tampered(_UNPROVEN if gone else None)
    purged, kind = gone and not row.data, DELETION
    if not purged:
        kind, sealed_under = _head(row.data[:_HEAD_TEXT])
        if sealed_under != generation:
            raise Tampered
    if gone and kind != DELETION:
        raise Tampered(_UNPROVEN)
    key = keys.of(generation)
    items_of_row = _row(keys, key, row.collection, row.uid, version, parent)
    if not primitives.equal(proof.mac, _mac(key, kind, items_of_row, row.data)):
        raise Tampered(_UNPROVEN if gone else None)
    verified = Verified(row.uid, row.version, generation, parent, kind == DELETION, purged)
    return verified, key, kind, items_of_row


@lru_cache(maxsize=64)
def _head(start: str) -> tuple[int, int]:
    """Kind and generation, by the first characters of `data`."""
    head = from_base64(start) if len(start) == _HEAD_TEXT else b"\0"
    check_format(head[0], _STRANGE)
    kind = _KIND.get(head[:2])
    if kind is None:
        raise Tampered(_STRANGE)
    return kind, int.from_bytes(head[2:], "big")


def _row(keys: CollectionKeys, key: CollectionKey, wire: str, uid: str, version: int, parent: bytes) -> bytes:
    """The items that say which version of which document, under which key, after what."""
    raw = text(uid)
    numbers = _NUMBERS_AND_PARENT(8, version, 8, key.generation, PARENT, parent)
    return b"".join((_place(keys.account, keys.vault, wire), len(raw).to_bytes(4, "big"), raw, numbers))


@lru_cache(maxsize=64)
def _place(account: bytes, vault: str, wire: str) -> bytes:
    """The items that say which collection: the same for all of its rows."""
    return items(account, text(vault), text(wire))


def _mac(key: CollectionKey, kind: int, row: bytes, data: str) -> bytes:
    if kind == DOCUMENT:
        return key.proving.hmac(b"".join((_PROOF, row, _DIGEST, primitives.sha256(data.encode("ascii", "replace")))))
    return key.proving.hmac(_PROOF + row + items(bytes((kind,)), b""))


# A blob is bound to its vault's name too: a client that renames such a vault seals its blob anew, in the same request.


def seal_blob(
    keys: VaultKeys,
    name: str,
    version: int,
    value: Any,
    *,
    parent: bytes = NO_PARENT,
    random: primitives.Random = primitives.random,
) -> SealedBlob:
    """Seal a value as this vault's blob. `name` is the vault's on the wire, `version` the vault's next version."""
    return seal_blob_content(keys, name, version, to_content(value), parent=parent, random=random)


def seal_blob_content(
    keys: VaultKeys,
    name: str,
    version: int,
    content: Content,
    *,
    parent: bytes,
    random: primitives.Random = primitives.random,
) -> SealedBlob:
    """Seal content as this vault's blob, and open again what is about to be sent."""
    key = keys.newest
    associated = _blob(key, checked_name(name, "name"), checked_version(version), parent)
    sealed = box.seal(key.blob(), random(primitives.KEY), padding.pad(content), associated)
    head = _HEAD[BLOB] + generation_bytes(key.generation) + parent
    made = SealedBlob(to_base64(head + sealed[primitives.KEY :]), to_base64(sealed[: primitives.KEY]))
    if _open_blob(keys, name, version, made.data, made.salt) != content:
        raise Tampered(_AGAIN)
    return made


def blob_parent(data: str) -> bytes:
    """The parent that a blob names."""
    raw = from_base64(data)
    check_format(raw[0] if raw else 0, _STRANGE)
    if raw[:2] != _HEAD[BLOB] or len(raw) < _HEAD_BYTES + PARENT:
        raise Tampered(_STRANGE)
    return raw[_HEAD_BYTES : _HEAD_BYTES + PARENT]


def blob_generation(data: str) -> int:
    """The generation of the key that a blob is sealed under."""
    blob_parent(data)
    return read_generation(from_base64(data[:8])[2:_HEAD_BYTES])


def blob_lineage(data: str) -> tuple[int, bytes]:
    """The generation and the parent that a blob names."""
    return blob_generation(data), blob_parent(data)


def parent_after_blob(data: str | None) -> bytes:
    """The parent of a blob that follows on this one; None: it is the first."""
    return NO_PARENT if data is None else short(data)


def open_past_blob(keys: VaultKeys, blob: VaultBlob, names: Sequence[str]) -> Content:
    """Believe a blob that was replaced, if a key holder made it for this vault and version, and one of these names."""
    if blob.uid != keys.vault or not is_version(blob.version):
        raise Tampered
    for name in names[:-1]:
        with suppress(Tampered):
            return _open_blob(keys, name, blob.version, blob.data, blob.salt or "")
    return _open_blob(keys, names[-1], blob.version, blob.data, blob.salt or "")


def open_blob(keys: VaultKeys, vault: Vault | responses.Vault) -> Content:
    """Believe a vault's blob, if a key holder made it for exactly this vault, name and version."""
    if vault.uid != keys.vault or vault.data is None or vault.salt is None or not is_version(vault.version):
        raise Tampered
    if blob_generation(vault.data) < keys.floor:
        raise Tampered(_OLD_KEY)
    return _open_blob(keys, vault.name, vault.version, vault.data, vault.salt)


def open_known_blob(keys: VaultKeys, vault: Vault | responses.Vault) -> Content:
    """The same of a blob that this device has believed before: the floor may have risen since."""
    return open_blob(msgspec.structs.replace(keys, floor=1), vault)


def _open_blob(keys: VaultKeys, name: str, version: int, data: str, salt: str) -> Content:
    parent = blob_parent(data)
    key = keys.of(blob_generation(data))
    cut = from_base64(salt)
    if len(cut) != primitives.KEY or not is_unicode(name):
        raise Tampered
    sealed = cut + from_base64(data)[_HEAD_BYTES + PARENT :]
    content = padding.unpad(box.open_(key.blob(), sealed, _blob(key, name, version, parent)))
    if content.kind == padding.NOTHING:
        raise Tampered
    return content


def _blob(key: VaultKey, name: str, version: int, parent: bytes) -> bytes:
    return _LABEL[BLOB] + items(
        key.account, text(key.vault), text(name), number(version), number(key.generation), parent
    )
