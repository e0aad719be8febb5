"""Conflicts: a document was changed on this device and on the server. Both changes are kept until one is resolved.

A resolver is a function from a Conflict to a Resolution. `keep_mine`, `keep_theirs` and `keep_both` are three;
one of your own may look at base, mine and theirs, and give one of theirs back, or `merged(value)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from strongroom import identifiers, model
from strongroom.client.format import seal
from strongroom.client.format.content import to_value
from strongroom.client.operations.value_types import to_raw
from strongroom.client.replica.store.records import PUT, Entry
from strongroom.errors import DocumentConflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strongroom.client.format.keys import VaultKeys
    from strongroom.client.operations.documents import Document, KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import VaultRecord

_KINDS: Final = frozenset({"mine", "theirs", "both", "merged"})


class Resolution(Struct, frozen=True):
    """The resolution of a conflict. `value` is for `merged` only."""

    kind: str
    value: Any = None

    def __repr__(self) -> str:
        return f"Resolution({self.kind!r})"


class Conflict:
    """A document changed on this device and on the server. `base` is the common ancestor, if known."""

    def __init__(self, local: Local, scope: KeyScope, entry: Entry, row: model.Document) -> None:
        self._local = local
        self._scope = scope
        self._entry = entry
        self._row = row
        self.base: Document | None = None if entry.before is None else local.open_local_row(scope, entry.before)
        self.mine: Document = local.open_entry(scope, entry)
        self.theirs: Document = local.open_local_row(scope, row)

    @property
    def needs_manual_resolution(self) -> bool:
        """Whether no resolver may decide it: the server's side is not of a higher version than this device has seen."""
        return self._row.version <= self._entry.floor

    @property
    def uid(self) -> str:
        """The document's uid."""
        return self._entry.uid

    @property
    def vault(self) -> str:
        """The uid of the document's vault."""
        return self._entry.vault

    @property
    def collection(self) -> str:
        """The plaintext name of the document's collection."""
        return self.theirs.collection

    def __repr__(self) -> str:
        return f"Conflict(uid={self.uid!r})"

    def resolve(self, how: Resolver) -> None:
        """Resolve the conflict. What remains of `mine` is sent with the next sync."""
        resolution = checked_resolver(how)(self)
        if not isinstance(resolution, Resolution) or resolution.kind not in _KINDS:
            given = type(resolution).__name__
            raise Invalid({"resolver": f"must return what keep_mine(conflict) returns, or merged(value), not {given}"})
        file = self._local.file
        with file.transaction():
            if (
                file.outbox.get(self.vault, self.uid) != self._entry
                or file.documents.get(self.vault, self.uid) != self._row
            ):
                raise DocumentConflict(self.theirs.version, self.theirs.updated_at)
            _apply(self._local, self._scope, self._entry, self._row, resolution, self)


class BlobConflict:
    """After a restore the server has gone on with another blob than this device has. The replica shows `mine`.

    To keep `mine`, put it in the place of the server's: `blob.put(conflict.mine, after=blob.get())`, where `blob` is
    `client.vault(…).blob`. Then, or to do without it, `discard`.
    """

    def __init__(self, local: Local, keys: VaultKeys, mine: VaultRecord) -> None:
        self._local = local
        self._mine = mine
        self.mine: Any = to_value(seal.open_known_blob(keys, _vault(mine)))
        now = local.file.vaults.get(mine.uid)
        self.theirs: Any = None
        if now is not None and now.data is not None:
            self.theirs = to_value(seal.open_known_blob(keys, _vault(now)))

    @property
    def vault(self) -> str:
        """The uid of the vault."""
        return self._mine.uid

    def __repr__(self) -> str:
        return f"BlobConflict(vault={self.vault!r})"

    def discard(self) -> None:
        """Forget this device's blob."""
        with self._local.file.transaction():
            self._local.file.vaults.drop_blob_aside(self.vault)


def _vault(record: VaultRecord) -> model.Vault:
    return model.Vault(record.uid, record.wire, record.version, record.clock, data=record.data, salt=record.salt)


def undecided_blobs(local: Local, scopes: Mapping[str, KeyScope]) -> list[BlobConflict]:
    """The blobs that were kept apart."""
    return [
        BlobConflict(local, scope.vault_keys, aside)
        for uid, scope in scopes.items()
        if scope.vault_keys is not None and (aside := local.file.vaults.blob_aside(uid)) is not None
    ]


Resolver: TypeAlias = Callable[[Conflict], Resolution]


def checked_resolver(how: Resolver) -> Resolver:
    """A function; anything else is the caller's mistake."""
    if not callable(how):
        raise Invalid({"resolver": f"must be a function, such as keep_mine, not {type(how).__name__}"})
    return how


def undecided_conflicts(local: Local, scopes: Mapping[str, KeyScope]) -> list[Conflict]:
    """The unresolved conflicts."""
    found = []
    for vault, uid in local.file.outbox.conflicting():
        entry, row = local.file.outbox.get(vault, uid), local.file.documents.get(vault, uid)
        if entry is not None and row is not None and vault in scopes:
            found.append(Conflict(local, scopes[vault], entry, row))
    return found


def keep_mine(conflict: Conflict) -> Resolution:  # noqa: ARG001
    """This device's change replaces the server's."""
    return Resolution("mine")


def keep_theirs(conflict: Conflict) -> Resolution:  # noqa: ARG001
    """This device's change is dropped."""
    return Resolution("theirs")


def keep_both(conflict: Conflict) -> Resolution:  # noqa: ARG001
    """The server's change stays, and this device's becomes a new document."""
    return Resolution("both")


def merged(value: Any) -> Resolution:
    """This value replaces both."""
    return Resolution("merged", to_raw(value))


def _apply(
    local: Local, scope: KeyScope, entry: Entry, row: model.Document, resolution: Resolution, conflict: Conflict
) -> None:
    if resolution.kind == "mine":
        _rebase(local, scope, entry, row)
    elif resolution.kind == "merged":
        version = max(row.version, entry.floor) + 1
        parent = seal.parent_after(row)
        keys = scope.key(entry.collection)
        sealed = seal.seal_document(keys, entry.uid, version, resolution.value, parent=parent, wire=entry.collection)
        local.limit.require(entry.uid, entry.collection, sealed)
        changed = msgspec.structs.replace(entry, kind=PUT, data=sealed.data, hmac=sealed.hmac, version=version)
        _rebase(local, scope, changed, row)
    else:
        local.file.outbox.drop(entry.vault, entry.uid)
        local.file.marks.lower(entry.vault, entry.uid)
        if resolution.kind == "both" and not conflict.mine.deleted:
            _copy(local, scope, conflict.mine)


def _rebase(local: Local, scope: KeyScope, entry: Entry, row: model.Document) -> None:
    """Rebase a change on the server's row. If that was purged, the change becomes a new document."""
    if row.deleted_at is not None and not row.data:
        recreate_entry(local, scope, entry)
        return
    local.file.outbox.put(msgspec.structs.replace(entry, base=row.version, before=row))


def copy_row(local: Local, scope: KeyScope, row: model.Document) -> None:
    """Keep the value of a row as a new document."""
    _copy(local, scope, local.open_local_row(scope, row))


def _copy(local: Local, scope: KeyScope, mine: Document) -> None:
    keys = scope.key(mine.wire)
    now = local.core.clock()
    uid = identifiers.new_uid(now)
    sealed = seal.seal_document(keys, uid, 1, mine.raw)
    local.file.outbox.put(
        Entry(
            vault=mine.vault,
            uid=uid,
            collection=keys.wire,
            kind=PUT,
            data=sealed.data,
            hmac=sealed.hmac,
            version=1,
            base=0,
            made_at=now,
        )
    )


def recreate_entry(local: Local, scope: KeyScope, entry: Entry) -> None:
    """Turn a change of a document that is deleted and purged into a new one; a deletion has nothing left to do."""
    mine = local.open_entry(scope, entry)
    local.file.outbox.drop(entry.vault, entry.uid)
    if not mine.deleted:
        _copy(local, scope, mine)
