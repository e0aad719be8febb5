"""The export of a replica: what it holds, as the file of an account that `import_account` takes (docs/export.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom import identifiers
from strongroom.client.errors import Locked
from strongroom.client.format import keyring, names
from strongroom.client.operations.account_file import AccountFile
from strongroom.client.operations.documents import KeyScope, key_scope
from strongroom.client.operations.vaults import open_entry
from strongroom.client.replica import vault_keys
from strongroom.client.replica.above_floor import blob_above, entry_above, row_above
from strongroom.client.replica.follow import follow_keys
from strongroom.client.replica.store.records import PUT
from strongroom.export_rows import ExportedDocument, ExportedKeyring, ExportedVault
from strongroom.wire.export_lines import FORMAT, FORMAT_VERSION, Header, Trailer

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.format.keyring_body import VaultEntry
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import Entry
    from strongroom.model import Document

_NO_TOKEN: Final = "A token opens what it was made for; log in to export the replica of the account."  # noqa: S105


def export(local: Local, write: Callable[[bytes], object]) -> None:
    """Write what a replica holds, queued changes included; each line is verified with the account's keys."""
    if local.core.token is not None:
        raise Locked(_NO_TOKEN)
    follow_keys(local.core, local.file)
    with local.file.snapshot():
        _Export(local, write).run()


class _Export:
    def __init__(self, local: Local, write: Callable[[bytes], object]) -> None:
        self._local = local
        self._write = write
        self._file = AccountFile()
        self._now = local.core.clock()
        self._queued: dict[str, list[Entry]] = {}
        for entry in local.file.outbox.entries():
            self._queued.setdefault(entry.vault, []).append(entry)

    def run(self) -> None:
        """Write all lines."""
        core, records = self._local.core, self._local.file.vaults.all()
        ring, sealed = self._keyring({record.uid for record in records})
        scopes = {entry.uid: key_scope(ring.vault_keys(entry)) for entry in ring.vaults}
        vaults = [self._vault(entry, scopes[entry.uid]) for entry in ring.vaults if entry.made]
        clock = max([vault.updated_at for vault in vaults], default=0)
        self._line(
            Header(
                format=FORMAT,
                version=FORMAT_VERSION,
                id=identifiers.new_uid(self._now),
                epoch=next((record.epoch for record in records), ""),
                exported_at=self._now,
                clock=clock,
                kdf=None if core.descriptor is None else core.descriptor.spelled(),
            )
        )
        line = ExportedKeyring(sealed, ring.version, self._now)
        self._line(line)
        self._file.use_keyring(line, ring)
        for vault in vaults:
            self._line(vault)
            for document in self._documents(scopes[vault.uid]):
                self._line(document)
        self._line(Trailer(counts=self._file.lines.counts, sha256=self._file.lines.digest))

    def _line(self, line: msgspec.Struct) -> None:
        raw = msgspec.json.encode(line) + b"\n"
        self._file.read(raw)
        self._write(raw)

    def _keyring(self, here: set[str]) -> tuple[Keyring, str]:
        """The keyring; where vaults wait here that the server does not have, or not any more, the next one with them.

        A vault that this replica has never fetched is not in the file, so the file calls it one that was not made.
        """
        core = self._local.core
        ring, sealed = core.keyring(), core.sealed or ""
        entries = [entry if entry.uid in here else _changed(entry, made=False) for entry in ring.vaults]
        taken = {entry.name: entry for entry in entries}
        kept = vault_keys.kept(self._local.file, ring)
        for entry in vault_keys.created(self._local.file, ring):
            kept[entry.uid] = entry
        new = self._local.file.vaults.new()
        for uid, entry in sorted(kept.items()):
            if ring.entry(uid) is None and (uid in new or uid in self._queued):
                name = names.free_name(entry.name, taken.get)
                taken[name] = _changed(entry, name=name, made=True)
                entries.append(taken[name])
        if sorted(entries, key=lambda entry: entry.uid) == list(ring.vaults):
            return ring, sealed
        sealed, ring = keyring.seal(ring.with_directory(entries))
        return ring, sealed

    def _vault(self, entry: VaultEntry, scope: KeyScope) -> ExportedVault:
        file = self._local.file
        record = file.vaults.blob_aside(entry.uid) or file.vaults.get(entry.uid)
        updated_at = self._now if record is None else record.clock
        created_at = updated_at
        for row in self._documents(scope):
            created_at, updated_at = min(created_at, row.created_at), max(updated_at, row.updated_at)
        if record is None:
            return ExportedVault(entry.uid, open_entry(self._local.core, entry).wire, 1, created_at, updated_at)
        if scope.vault_keys is not None:
            record = blob_above(scope.vault_keys, record)
        blob = record.data, record.salt
        return ExportedVault(entry.uid, record.wire, record.version, created_at, updated_at, *blob)

    def _documents(self, scope: KeyScope) -> Iterator[ExportedDocument]:
        """The rows as the server has them; then the queued changes, as they would be stored; none below the floor."""
        vault = scope.vault
        queued = self._queued.get(vault, [])
        changed, last = {entry.uid for entry in queued}, 0
        for row in self._local.file.documents.all(vault):
            if row.uid not in changed:
                last = max(row.updated_at, last + 1)
                yield _stored(row_above(scope, row), last)
        record = self._local.file.vaults.get(vault)
        last = max(last, 0 if record is None else record.clock)
        for entry in queued:
            last = max(entry.made_at, last + 1)
            yield _queued(entry_above(scope, entry), last)


def _changed(entry: VaultEntry, **changes: object) -> VaultEntry:
    return msgspec.structs.replace(entry, **changes)


def _stored(row: Document, at: int) -> ExportedDocument:
    """A row as the server has it. Where a restored server lost it, its times mean nothing."""
    deleted_at = None if row.deleted_at is None else min(row.deleted_at, at)
    return ExportedDocument(
        uid=row.uid,
        vault_uid=row.vault_uid,
        collection=row.collection,
        version=row.version,
        created_at=min(row.created_at, at if deleted_at is None else deleted_at),
        updated_at=at,
        data=row.data or None,
        hmac=row.hmac,
        deleted_at=deleted_at,
        purged_at=None if row.data else deleted_at,
    )


def _queued(entry: Entry, at: int) -> ExportedDocument:
    """A queued change as it would be stored: of a deletion, the tombstone that follows on its notice."""
    is_deletion = entry.kind != PUT
    return ExportedDocument(
        uid=entry.uid,
        vault_uid=entry.vault,
        collection=entry.collection,
        version=entry.version + is_deletion,
        created_at=min(entry.made_at if entry.before is None else entry.before.created_at, at),
        updated_at=at,
        data=entry.data,
        hmac=entry.hmac,
        deleted_at=at if is_deletion else None,
    )
