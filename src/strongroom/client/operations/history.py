"""History: versions of documents and of blobs that were replaced and are kept.

A version is believed if a key holder made it for this place and this version, and if the parents lead to it from the
current one. Where the server keeps too little to show that, the version has `gap=True`; where they lead elsewhere, it
is of another branch, and refused. Times, and which versions are kept, are the server's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import content, seal
from strongroom.client.format.encoding import checked_integer, checked_uid
from strongroom.client.format.parents import Descent, Link, trace, trace_all
from strongroom.client.net import requests
from strongroom.client.operations import documents, vaults
from strongroom.client.operations.documents import FORKED, WRONG_DOCUMENT
from strongroom.client.operations.vaults import Blob
from strongroom.errors import VersionNotFound

if TYPE_CHECKING:
    from strongroom import model
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Document, KeyScope
    from strongroom.client.operations.vaults import OpenVault

_TWICE: Final = "The server's history shows one version twice, or another content of the current one."
_BELOW: Final = "The server's history does not show that a version under keys of before a rotation was ever current."
_EMPTY: Final = "This version has no content: it is a deletion whose content is gone."


class Version(Struct, frozen=True, kw_only=True):
    """A version that was replaced and is kept. `updated_at` is the server's word; `deleted` is a key holder's.

    `gap`: the server's history does not show whether the current version follows on this one.
    """

    version: int
    updated_at: int
    deleted: bool = False
    gap: bool = False


def of_document(core: Core, scope: KeyScope, uid: str) -> Effects[list[Version]]:
    """The versions of a document that were replaced and are kept, newest first."""
    now = yield from documents.get(core, scope, checked_uid(uid), deleted=True)
    rows, links, newest = yield from _history(core, scope, now)
    return [
        Version(
            version=row.version,
            updated_at=row.updated_at,
            deleted=_notice(core, scope, now, row.version, row.hmac) is not None,
            gap=_is_gap(descent),
        )
        for row, descent in zip(rows, trace_all(newest, links, seal.lineage), strict=True)
    ]


def get_version(core: Core, scope: KeyScope, uid: str, version: int) -> Effects[Document]:
    """A document as it was at a version, or as it is."""
    checked_integer(version, "version")
    now = yield from documents.get(core, scope, checked_uid(uid), deleted=True)
    if version == now.version:
        return now
    if not 1 <= version < now.version:
        raise VersionNotFound
    row = yield from core.session.send(requests.documents.get_version(scope.vault, now.uid, version))
    moved = (row.uid, row.version, row.collection) != (now.uid, version, now.wire)
    if moved or row.created_at != now.created_at:
        raise Tampered(WRONG_DOCUMENT)
    keys, made = yield from documents.verify_row(core, scope, row, seal.open_past_document)
    _, links, newest = yield from _history(core, scope, now)
    gap = _is_gap(trace(newest, seal.link(row), links, seal.lineage))
    if gap and made.generation < keys.floor:
        raise Tampered(_BELOW)
    return documents.to_document(scope, row, made.content, keys.name, deleted=made.deleted, gap=gap)


def restore(core: Core, scope: KeyScope, document: Document, version: int) -> Effects[Document]:
    """The content of a version in the place of the current one, which must be the one that was seen."""
    documents.wire_collection(scope, document)
    old = yield from get_version(core, scope, document.uid, version)
    if old.purged:
        raise VersionNotFound(_EMPTY)
    return (yield from documents.replace_raw(core, scope, document, old.raw))


def _history(
    core: Core, scope: KeyScope, now: Document
) -> Effects[tuple[list[model.ReplacedVersion], list[Link], Link]]:
    """What the server keeps of a document before its current version, newest first; the same as links; the current."""
    found = yield from documents.history_rows(core, scope.vault, 0, uid=now.uid)
    if any(row.uid != now.uid for row in found):
        raise Tampered(WRONG_DOCUMENT)
    rows = sorted((row for row in found if row.version <= now.version), key=lambda row: -row.version)
    _require_once([row.version for row in rows])
    if rows and rows[0].version == now.version:  # it was replaced after it was read
        if rows[0].hmac != now.proof:
            raise Tampered(_TWICE)
        del rows[0]
    newest, *links = (
        Link(_notice(core, scope, now, version, hmac) or version, hmac or "")
        for version, hmac in [(now.version, now.proof), *((row.version, row.hmac) for row in rows)]
    )
    return rows, links, newest


def _require_once(versions: list[int]) -> None:
    """Refuse a history that shows a version twice."""
    if len(set(versions)) != len(versions):
        raise Tampered(_TWICE)


def _notice(core: Core, scope: KeyScope, now: Document, version: int, hmac: str | None) -> int | None:
    keys = documents.renewed(core, scope).key(now.wire)
    return seal.notice_version(keys, now.wire, now.uid, version, hmac)


def _is_gap(descent: Descent) -> bool:
    """Whether it cannot be told that the current version follows on another; one of another branch is refused."""
    if descent is Descent.FORKED:
        raise Tampered(FORKED)
    return descent is Descent.GAP


# Blobs


def of_blob(core: Core, vault: OpenVault) -> Effects[list[Version]]:
    """The versions of a vault whose blob was replaced and is kept, newest first: the server's word till one is read."""
    vault, row, _ = yield from vaults.current_row(core, vault)
    kept = yield from core.session.send(requests.vaults.blob_versions(vault.uid))
    _require_once([one.version for one in kept.versions])
    found = [Version(version=one.version, updated_at=one.updated_at) for one in kept.versions]
    return sorted((one for one in found if 1 <= one.version < row.version), key=lambda one: -one.version)


def get_blob_version(core: Core, vault: OpenVault, version: int) -> Effects[Blob]:
    """A vault's blob as it was at a version of the vault, or as it is."""
    checked_integer(version, "version")
    vault, row, gap = yield from vaults.current_row(core, vault)
    if row.data is None or not 1 <= version <= row.version:
        raise VersionNotFound
    if version == row.version and (newest := vaults.to_blob(vault, row, gap=gap)) is not None:
        core.device.record_blob(row)
        return newest
    old = yield from core.session.send(requests.vaults.blob_version(vault.uid, version))
    if (old.uid, old.version) != (vault.uid, version):
        raise Tampered(vaults.WRONG_VAULT)
    names = vault.wires if old.name is None else (old.name,)
    opened = seal.open_past_blob(vault.keys, old, names)
    gap = yield from vaults.require_blob_descent(core, row, Link(version, old.data))
    if gap and seal.blob_generation(old.data) < vault.keys.floor:
        raise Tampered(_BELOW)
    return Blob(vault.uid, content.to_value(opened), version, gap)


def restore_blob(core: Core, vault: OpenVault, version: int, after: Blob | None) -> Effects[Blob]:
    """The blob of a version in the place of the current one."""
    old = yield from get_blob_version(core, vault, version)
    return (yield from vaults.put_blob(core, vault, old.raw, after))
