"""Imports: the progress of one, and the rows that it inserts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from strongroom.export_rows import (
    ExportCounts,
    ExportedBlob,
    ExportedDocument,
    ExportedVault,
    ExportedVersion,
    ExportRow,
)
from strongroom.store.queries.ledgers import Ledger
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.store.database import Tx

OPEN, EMPTYING, DONE = "open", "emptying", "done"


class ImportProgress(Struct, frozen=True):
    """How far an import came: so many lines, with this digest, and what was in them."""

    lines: int
    digest: str
    counts: ExportCounts


class Import(Struct, frozen=True):
    """The last import into an account."""

    id: str
    state: str
    lines: int
    digest: str
    vaults: int
    documents: int
    versions: int
    blob_versions: int
    left_out: int

    @property
    def progress(self) -> ImportProgress:
        """Its progress."""
        return ImportProgress(
            self.lines, self.digest, ExportCounts(self.vaults, self.documents, self.versions, self.blob_versions)
        )


_GET = Sql(f"SELECT {columns(Import)} FROM imports WHERE user_id = :user_id")
_HAS_VAULTS = Sql("SELECT 1 FROM vaults WHERE user_id = :user_id LIMIT 1")
_BEGIN = Sql("""
    INSERT INTO imports
           (user_id, id, state, lines, digest, vaults, documents, versions, blob_versions, left_out, began_at)
    VALUES (:user_id, :id, 'open', :lines, :digest, 0, 0, 0, 0, 0, :now)
    ON CONFLICT (user_id) DO UPDATE
       SET id = :id, state = 'open', lines = :lines, digest = :digest,
           vaults = 0, documents = 0, versions = 0, blob_versions = 0, left_out = 0, began_at = :now
""")
_ADVANCE = Sql("""
    UPDATE imports
       SET lines = :lines, digest = :digest,
           vaults = :vaults, documents = :documents, versions = :versions, blob_versions = :blob_versions
     WHERE user_id = :user_id AND id = :id AND state = 'open' AND lines = :before
""")
_LEAVE_OUT = Sql("UPDATE imports SET left_out = left_out + :count WHERE user_id = :user_id")
_TURN = Sql("UPDATE imports SET state = :state WHERE user_id = :user_id AND state IN ('open', 'emptying')")
_FORGET = Sql("DELETE FROM imports WHERE user_id = :user_id")

# The account's ledger: locked, set, and counted on, but never advanced while the import is unfinished.
_CLAIM = Sql("""
    INSERT INTO ledgers (user_id, clock, documents, bytes, importing) VALUES (:user_id, 0, 0, 0, 0)
    ON CONFLICT (user_id) DO UPDATE SET importing = ledgers.importing
""")
_SET = Sql("UPDATE ledgers SET importing = :importing WHERE user_id = :user_id")
_ADD_USAGE = Sql(f"""
    UPDATE ledgers SET documents = documents + :documents, bytes = bytes + :bytes, row_bytes = row_bytes + :row_bytes
     WHERE user_id = :user_id AND importing = 1
 RETURNING {columns(Ledger)}
""")
_RELEASE = Sql("UPDATE ledgers SET importing = 0, clock = :clock WHERE user_id = :user_id AND importing = 1")
_CLEAR = Sql("UPDATE ledgers SET importing = 0, documents = 0, bytes = 0, row_bytes = 0 WHERE user_id = :user_id")
_ADD_VAULT_CHANGES = Sql("""
    INSERT INTO vault_changes (user_id, changed_at, vault_uid, kind, name, version)
    SELECT user_id, :clock + row_number() OVER (ORDER BY uid), uid, 'created', name, version
      FROM vaults WHERE user_id = :user_id
""")

# An owner's uids are unique over vaults and documents alike. A vault's time is that of what is in it so far.
_VAULT = Sql("""
    INSERT INTO vaults (user_id, uid, name, data, salt, version, created_at, updated_at, documents, bytes)
    SELECT :user_id, :uid, :name, :data, :salt, :version, :created_at, :created_at, 0, 0
     WHERE NOT EXISTS (SELECT 1 FROM documents WHERE user_id = :user_id AND uid = :uid)
    ON CONFLICT DO NOTHING
""")
_DOCUMENT = Sql(f"""
    INSERT INTO documents (user_id, {columns(ExportedDocument)})
    SELECT :user_id, :uid, :vault_uid, :collection, :version, :created_at, :updated_at,
           :data, :hmac, :deleted_at, :purged_at
     WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE user_id = :user_id AND uid = :uid)
    ON CONFLICT DO NOTHING
""")
_VERSION = Sql(f"""
    INSERT INTO versions (user_id, {columns(ExportedVersion)})
    SELECT user_id, uid, vault_uid, :collection, :version, :created_at, :updated_at, :replaced_at,
           :data, :hmac, :deleted_at
      FROM documents
     WHERE user_id = :user_id AND uid = :uid AND vault_uid = :vault_uid AND purged_at IS NULL
       AND version > :version
    ON CONFLICT DO NOTHING
""")
_BLOB = Sql(f"""
    INSERT INTO blob_versions (user_id, {columns(ExportedBlob)})
    SELECT user_id, uid, :version, :updated_at, :replaced_at, :data, :salt, CAST(:name AS TEXT)
      FROM vaults WHERE user_id = :user_id AND uid = :uid AND version > :version
    ON CONFLICT DO NOTHING
""")

# How each kind is added, and the columns that identify one within the account.
_ADD: Final[dict[type[ExportRow], tuple[Sql, tuple[str, ...]]]] = {
    ExportedVault: (_VAULT, ("uid",)),
    ExportedDocument: (_DOCUMENT, ("uid",)),
    ExportedVersion: (_VERSION, ("uid", "version")),
    ExportedBlob: (_BLOB, ("uid", "version")),
}

_EMPTY_DOCUMENTS = Sql("""
    DELETE FROM documents WHERE user_id = :user_id AND uid IN (
        SELECT uid FROM documents WHERE user_id = :user_id LIMIT :most)
""")
_EMPTY_BLOBS = Sql("""
    DELETE FROM blob_versions WHERE user_id = :user_id AND (uid, version) IN (
        SELECT uid, version FROM blob_versions WHERE user_id = :user_id LIMIT :most)
""")
_EMPTY_VAULTS = Sql("""
    DELETE FROM vaults WHERE user_id = :user_id AND uid IN (
        SELECT uid FROM vaults WHERE user_id = :user_id LIMIT :most)
""")


async def get(tx: Tx, user_id: str) -> Import | None:
    """The last import into this account, finished or not."""
    return await tx.one(Import, _GET, user_id=user_id)


async def has_vaults(tx: Tx, user_id: str) -> bool:
    """Whether the account has any vault."""
    return await tx.value(_HAS_VAULTS, user_id=user_id) is not None


async def claim(tx: Tx, user_id: str) -> None:
    """Take the account's lock until commit, also where nothing was ever written."""
    await tx.run(_CLAIM, user_id=user_id)


async def begin(tx: Tx, user_id: str, file_id: str, progress: ImportProgress) -> None:
    """Begin an import: from now on, no other writer may write in the account."""
    await tx.run(_BEGIN, user_id=user_id, id=file_id, lines=progress.lines, digest=progress.digest, now=tx.now)
    await tx.run(_SET, user_id=user_id, importing=1)


async def add_usage(tx: Tx, user_id: str, documents: int, size: int, row_bytes: int) -> Ledger | None:
    """Take the account's lock, and count what comes in; None if no import is unfinished."""
    return await tx.one(Ledger, _ADD_USAGE, user_id=user_id, documents=documents, bytes=size, row_bytes=row_bytes)


async def advance(tx: Tx, user_id: str, file_id: str, before: int, progress: ImportProgress) -> bool:
    """Move the progress; False if this import is not where we left it."""
    moved = await tx.run(
        _ADVANCE,
        user_id=user_id,
        id=file_id,
        before=before,
        lines=progress.lines,
        digest=progress.digest,
        vaults=progress.counts.vaults,
        documents=progress.counts.documents,
        versions=progress.counts.versions,
        blob_versions=progress.counts.blob_versions,
    )
    return moved > 0


async def add(tx: Tx, user_id: str, rows: Sequence[ExportRow]) -> list[bool]:
    """Add rows of one kind and one vault, or vaults; False for one that does not belong here, or is there already."""
    statement, by = _ADD[type(rows[0])]
    return await tx.each(statement, [{**_fields(row), "user_id": user_id} for row in rows], by=by)


async def leave_out(tx: Tx, user_id: str, count: int) -> None:
    """Count lines that were left out."""
    await tx.run(_LEAVE_OUT, user_id=user_id, count=count)


def _fields(row: ExportRow) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(row, name) for name in row.__struct_fields__}
    if isinstance(row, ExportedDocument):
        fields["data"] = row.data or ""
    return fields


async def finish(tx: Tx, user_id: str, clock: int) -> None:
    """Open the account for writes again, with its clock after all that came in, and the vaults in the change feed."""
    added = await tx.run(_ADD_VAULT_CHANGES, user_id=user_id, clock=clock)
    await tx.run(_RELEASE, user_id=user_id, clock=clock + added)
    await tx.run(_TURN, user_id=user_id, state=DONE)


async def give_up(tx: Tx, user_id: str) -> bool:
    """Mark the import as one to be emptied; False if none is unfinished."""
    return await tx.run(_TURN, user_id=user_id, state=EMPTYING) > 0


async def empty(tx: Tx, user_id: str, most: int) -> bool:
    """Delete some of what came in; whether there was any left."""
    return (
        await tx.run(_EMPTY_DOCUMENTS, user_id=user_id, most=most) > 0
        or await tx.run(_EMPTY_BLOBS, user_id=user_id, most=most) > 0
        or await tx.run(_EMPTY_VAULTS, user_id=user_id, most=most) > 0
    )


async def forget(tx: Tx, user_id: str) -> None:
    """Delete the record of the import, and reset the usage of the account."""
    await tx.run(_CLEAR, user_id=user_id)
    await tx.run(_FORGET, user_id=user_id)
