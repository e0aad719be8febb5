"""Refused changes: queued changes that the server does not accept. Each stays until it is sent, moved or discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from strongroom.client.errors import Locked
from strongroom.client.replica.sizes import too_large
from strongroom.client.replica.store.records import PUT, RefusalRecord
from strongroom.client.replica.vault_keys import Place
from strongroom.errors import DocumentConflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strongroom import model
    from strongroom.client.operations.documents import Document
    from strongroom.client.operations.value_types import T
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import Entry
    from strongroom.client.replica.vaults import ReplicaCollection

RefusalKind: TypeAlias = Literal[
    "payload_too_large",
    "insufficient_scope",
    "quota_exceeded",
    "storage_full",
    "import_unfinished",
    "validation_error",
    "uid_taken",
    "vault_deleted",
]
TEMPORARY: Final[frozenset[RefusalKind]] = frozenset({"quota_exceeded", "storage_full", "import_unfinished"})
VAULT_DELETED: Final[RefusalKind] = "vault_deleted"
TOO_LARGE: Final[RefusalKind] = "payload_too_large"
_SENTENCES: Final[dict[RefusalKind, str]] = {
    "payload_too_large": (
        "This change is too large for the server, or for a proxy before it. Make the document smaller, or discard the "
        "change."
    ),
    "insufficient_scope": (
        "This token does not allow this change. Open the replica with a token that does, or discard the change."
    ),
    "quota_exceeded": (
        "The account's quota is used up. Delete something, or ask the operator of the server for more; the next sync "
        "tries again."
    ),
    "storage_full": "The server's disk is full. The next sync tries again.",
    "import_unfinished": (
        "An import into this account is unfinished, and the server accepts nothing else meanwhile. The next sync tries "
        "again."
    ),
    "validation_error": (
        "The server does not accept the form of this change. Update the client or the server, and retry; or discard "
        "the change."
    ),
    "uid_taken": (
        "Another document of the account has this uid already, where this vault or token does not reach. Move this "
        "document to a collection, where it gets a new uid, or discard it."
    ),
    "vault_deleted": (
        "The vault was deleted on another device. Move this document to a collection of another vault, or discard it."
    ),
}
_LOST_KEYS: Final = "The keys of the deleted vault are not on this device any more; this change can only be discarded."
_NOT_HERE: Final = "must be a collection of the same replica"


class Reason(Struct, frozen=True, kw_only=True):
    """Why the server refused a change. `kind` is for programs, `sentence` for people.

    Of a change that is too large, `size` is that of its request in bytes, encrypted and padded, and `limit` what the
    server accepts, if it says so.
    """

    kind: RefusalKind
    sentence: str
    size: int | None = None
    limit: int | None = None

    def __str__(self) -> str:
        return self.sentence


class RefusedChange:
    """A change on this device that the server refused. Choose `discard`, `retry` or `move_to`.

    `document` is the document as it is on this device; None where the keys of its vault are gone. A refused deletion
    has `document.deleted`.
    """

    def __init__(
        self, local: Local, place: Place, record: RefusalRecord, entry: Entry | None, row: model.Document | None
    ) -> None:
        self._local = local
        self._record = record
        self._entry = entry
        self._row = row
        self.reason: Reason = _reason(record)
        self.vault_name: str = place.name
        self.document: Document | None = None
        if place.scope is not None and entry is not None:
            self.document = local.open_entry(place.scope, entry)
        elif place.scope is not None and row is not None:
            self.document = local.open_local_row(place.scope, row)

    @property
    def uid(self) -> str:
        """The document's uid."""
        return self._record.uid

    @property
    def vault(self) -> str:
        """The uid of the document's vault."""
        return self._record.vault

    @property
    def collection(self) -> str:
        """The plaintext name of the document's collection; empty where the keys of the vault are gone."""
        return "" if self.document is None else self.document.collection

    @property
    def is_temporary(self) -> bool:
        """Whether every sync tries again by itself."""
        return self.reason.kind in TEMPORARY

    def __repr__(self) -> str:
        return f"RefusedChange(uid={self.uid!r}, kind={self.reason.kind!r})"

    def discard(self) -> None:
        """Drop the change. The document is then as the server has it."""
        with self._local.file.transaction():
            self._require_unchanged()
            self._drop()

    def retry(self) -> None:
        """Send the change again with the next sync."""
        with self._local.file.transaction():
            self._require_unchanged()
            self._local.file.refusals.drop(self.vault, self.uid)

    def move_to(self, collection: ReplicaCollection[T]) -> Document[T]:
        """Make a new document with this value in another collection of the replica, and drop the change."""
        if getattr(collection, "_local", None) is not self._local:
            raise Invalid({"collection": _NOT_HERE})
        if self.document is None:
            raise Locked(_LOST_KEYS)
        if self.document.deleted:
            raise Invalid({"collection": "is not for a deletion, which has nothing to move; discard it"})
        with self._local.file.transaction():
            self._require_unchanged()
            scope = msgspec.structs.replace(collection._scope, type=None)  # noqa: SLF001 - the value is not checked
            moved = self._local.create(scope, self.document.raw, None)
            self._drop()
        return collection.get(moved.uid)

    def _require_unchanged(self) -> None:
        file = self._local.file
        if file.outbox.get(self.vault, self.uid) != self._entry or (
            self._entry is None and self.uid not in file.documents.repeats(self.vault)
        ):
            version, updated_at = (0, 0) if self.document is None else (self.document.version, self.document.updated_at)
            raise DocumentConflict(version, updated_at)

    def _drop(self) -> None:
        file = self._local.file
        if self._entry is not None:
            file.outbox.drop(self.vault, self.uid)
            if self.reason.kind == VAULT_DELETED and not file.outbox.entries(self.vault):
                file.vaults.drop_keys(self.vault)
            return
        # A document that a restored server has lost: what the server has instead is read anew.
        file.documents.drop_repeat(self.vault, self.uid)
        file.documents.drop(self.vault, self.uid)
        record = file.vaults.get(self.vault)
        if record is not None:
            file.vaults.put(msgspec.structs.replace(record, cursor=0))


def refused_changes(local: Local, places: Mapping[str, Place]) -> list[RefusedChange]:
    """All refused changes, those of deleted vaults included; a change that is also a conflict is one of those only."""
    conflicts = set(local.file.outbox.conflicting())
    found = []
    for record in local.file.refusals.all():
        entry, row = local.file.outbox.get(record.vault, record.uid), local.file.documents.get(record.vault, record.uid)
        if (record.vault, record.uid) not in conflicts and (entry is not None or row is not None):
            place = places.get(record.vault, Place(None, ""))
            found.append(RefusedChange(local, place, record, entry, row))
    return found


def refuse_deleted_vault(local: Local, uid: str) -> None:
    """Record that the changes in a vault cannot be sent: it was deleted. Deletions are done with it."""
    file = local.file
    with file.transaction():
        for entry in file.outbox.entries(uid):
            if entry.kind == PUT:
                file.refusals.put(RefusalRecord(vault=uid, uid=entry.uid, kind=VAULT_DELETED))
            else:
                file.outbox.drop(uid, entry.uid)
        file.vaults.drop(uid)
        file.vaults.forget_new(uid)
        if not file.outbox.entries(uid):
            file.vaults.drop_keys(uid)


def _reason(record: RefusalRecord) -> Reason:
    kind = msgspec.convert(record.kind, RefusalKind)
    sentence = _SENTENCES[kind]
    if kind == TOO_LARGE and record.size is not None and record.max_bytes is not None:
        sentence = too_large(record.size, record.max_bytes)
    return Reason(kind=kind, sentence=sentence, size=record.size, limit=record.max_bytes)
