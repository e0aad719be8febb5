"""Creates and replaces documents of one account with few statements, inside the writer's transaction.

The ledger is read and written once, each vault is written once, and rows are bound in one call. Wherever something is
to be refused nothing is returned; what was written by then is for the caller to undo, and the actions know the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from strongroom.model import RETAINED_ROW_BYTES, Document
from strongroom.store.queries.deletions import live
from strongroom.store.statement import columns
from strongroom.store.write_forms import NewDocument, Replacement

if TYPE_CHECKING:
    import apsw

_DOCUMENT: Final = columns(Document)
_CONTENT: Final = _DOCUMENT.removeprefix("uid, ")
_AS_TEXT: Final = _CONTENT.replace("data, hmac", "CAST(data AS TEXT), CAST(hmac AS TEXT)")
_LEDGER: Final = "SELECT clock, documents, bytes, row_bytes FROM ledgers WHERE user_id = ?1 AND importing = 0"
_KEYRING: Final = "SELECT version FROM keyrings WHERE user_id = ?1"
_KEPT: Final = "SELECT coalesce(sum(kept), 0) FROM vaults WHERE user_id = ?1"
_BOOK: Final = "UPDATE ledgers SET clock = ?2, documents = ?3, bytes = ?4, row_bytes = ?5 WHERE user_id = ?1"
_COUNT: Final = """
    UPDATE vaults SET updated_at = ?3, documents = documents + ?4, bytes = bytes + ?5, kept = kept + ?6,
           row_bytes = row_bytes + ?7
     WHERE user_id = ?1 AND uid = ?2
"""
_INSERT: Final = f"""
    INSERT INTO documents (user_id, {_DOCUMENT})
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, NULL
     WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE user_id = ?1 AND uid = ?2)
    ON CONFLICT DO NOTHING
"""
_RETAIN: Final = f"""
    INSERT INTO versions (user_id, {_DOCUMENT}, replaced_at)
    SELECT user_id, uid, {_AS_TEXT}, ?3 FROM documents WHERE user_id = ?1 AND uid = ?2
"""
_BEYOND: Final = f"""
    SELECT uid, rowid, vault_uid, octet_length(data) + coalesce(octet_length(hmac), 0) + {RETAINED_ROW_BYTES}
      FROM versions WHERE user_id = ?1 AND uid = ?2 ORDER BY version DESC LIMIT -1 OFFSET ?3
"""
_DROP: Final = "DELETE FROM versions WHERE rowid = ?1"
# The row of a version that is dropped takes the one that is retained: half the work of a DELETE and an INSERT.
_RETAIN_IN: Final = f"""
    UPDATE versions SET ({_CONTENT}, replaced_at) = (
        SELECT {_AS_TEXT}, ?3 FROM documents WHERE user_id = ?1 AND uid = ?2)
     WHERE rowid = ?4
"""
_REPLACE: Final = """
    UPDATE documents SET data = ?4, hmac = ?5, version = ?6, updated_at = ?7
     WHERE user_id = ?1 AND uid = ?2 AND vault_uid = ?3 AND version = ?8 AND deleted_at IS NULL AND purged_at IS NULL
"""


def run(connection: apsw.Connection, user_id: str, forms: Sequence[NewDocument | Replacement], now: int) -> Any:
    """The documents that these writes, which are all of one kind and of different uids, store; None: one is refused."""
    execute = connection.cursor().execute
    ledger = execute(_LEDGER, (user_id,)).fetchone()
    seen = [form.keyring_version for form in forms if form.keyring_version is not None]
    newest = (execute(_KEYRING, (user_id,)).fetchone() or (0,)) if seen else (0,)
    if ledger is None or not _are_numbers(*ledger, *newest) or (seen and newest[0] > min(seen)):
        return None
    clock, *used = ledger
    first = clock + 1 if clock >= now else now
    write = _create if isinstance(forms[0], NewDocument) else _replace
    return write(connection, user_id, forms, first, *used)


def _create(connection: Any, user_id: str, forms: Any, first: int, documents: int, size: int, row_bytes: int) -> Any:
    limits, many = forms[0].limits, connection.cursor().executemany
    documents += len(forms)
    size += sum(form.size for form in forms)
    row_bytes += sum(form.row_bytes for form in forms)
    if _is_above(documents, limits.documents) or _is_above(size, limits.bytes):
        return None
    if _is_above(row_bytes, forms[0].most_row_bytes):
        return None
    before, last = connection.total_changes(), first + len(forms) - 1
    wanted = zip(forms, count(first))
    many(
        _INSERT,
        [(user_id, one.uid, one.vault_uid, one.collection, one.data, one.hmac, one.version, at) for one, at in wanted],
    )
    if connection.total_changes() - before != len(forms):
        return None
    booked: dict[str, tuple[int, int, int, int]] = {}
    for at, one in enumerate(forms, first):
        _, number, added, rows = booked.get(one.vault_uid, (0, 0, 0, 0))
        booked[one.vault_uid] = at, number + 1, added + one.size, rows + one.row_bytes
    before = connection.total_changes()
    many(_COUNT, [(user_id, uid, at, number, added, 0, rows) for uid, (at, number, added, rows) in booked.items()])
    if connection.total_changes() - before != len(booked):  # a vault is not there
        return None
    connection.execute(_BOOK, (user_id, last, documents, size, row_bytes))
    return [
        Document(one.uid, one.vault_uid, one.collection, one.data, one.hmac, one.version, at, at, None)
        for at, one in enumerate(forms, first)
    ]


def _replace(connection: Any, user_id: str, forms: Any, first: int, documents: int, size: int, row_bytes: int) -> Any:
    limits, most_retained = forms[0].limits, forms[0].most_retained
    uids = [form.uid for form in forms]
    found = connection.execute(_heads(len(uids)), (user_id, *uids)).fetchall()
    heads = {
        uid: (vault, version, collection, created, length) for uid, vault, version, collection, created, length in found
    }
    booked: dict[str, tuple[int, int, int]] = {}
    results, more = [], 0
    for at, one in enumerate(forms, first):
        vault, version, collection, created_at, length = heads.get(one.uid, (None, 0, "", 0, 0))
        if vault != one.vault_uid or version != one.version or not _are_numbers(version, created_at, length):
            return None
        new_version = version + 1 if one.new_version is None else one.new_version
        if new_version <= version or not isinstance(collection, str):
            return None
        _, grown, kept = booked.get(vault, (0, 0, 0))
        booked[vault] = at, grown + one.size - length, kept + (length + RETAINED_ROW_BYTES if limits.versions else 0)
        more += max(one.size - length, 0)
        results.append(Document(one.uid, vault, collection, one.data, one.hmac, new_version, created_at, at, None))
    if more and _is_above(size + more, limits.bytes):
        return None
    if most_retained is not None:
        retained = connection.execute(_KEPT, (user_id,)).fetchone()[0]
        if not _are_numbers(retained) or _is_above(
            retained + sum(kept for _, _, kept in booked.values()), most_retained
        ):
            return None
    many = connection.cursor().executemany
    if limits.versions:
        _retain(many, user_id, forms, first, booked)
    before = connection.total_changes()
    many(
        _REPLACE,
        [
            (user_id, new.uid, new.vault_uid, new.data, new.hmac, new.version, new.updated_at, one.version)
            for one, new in zip(forms, results, strict=True)
        ],
    )
    if connection.total_changes() - before != len(forms):
        return None
    many(_COUNT, [(user_id, uid, at, 0, grown, kept, 0) for uid, (at, grown, kept) in booked.items()])
    grown = sum(grown for _, grown, _ in booked.values())
    connection.execute(_BOOK, (user_id, first + len(forms) - 1, documents, size + grown, row_bytes))
    return results


def _retain(many: Any, user_id: str, forms: Any, first: int, booked: dict[str, tuple[int, int, int]]) -> None:
    """Retain documents as they are, and drop the versions that are too many then, also from what is booked."""
    most = forms[0].limits.versions
    full = [(user_id, form.uid, most - 1) for form in forms if form.version > most]
    rows: dict[str, int] = {}
    for uid, row, vault, size in list(many(_BEYOND, full)) if full else ():
        at, grown, kept = booked[vault]
        booked[vault] = at, grown, kept - size
        if uid in rows:
            many(_DROP, [(row,)])
        else:
            rows[uid] = row
    retained = [(user_id, form.uid, at) for at, form in enumerate(forms, first)]
    many(_RETAIN, [one for one in retained if one[1] not in rows])
    many(_RETAIN_IN, [(*one, rows[one[1]]) for one in retained if one[1] in rows])


@lru_cache(maxsize=256)
def _heads(number: int) -> str:
    """The statement that reads so many live documents without their ciphertext."""
    return (
        "SELECT uid, vault_uid, version, collection, created_at, octet_length(data) + coalesce(octet_length(hmac), 0)"
        f" FROM documents WHERE user_id = ?1 AND uid IN ({', '.join(f'?{at + 2}' for at in range(number))})"
        f" AND deleted_at IS NULL AND purged_at IS NULL AND {live(user_id='?1', vault_uid='documents.vault_uid')}"
    )


def _are_numbers(*values: Any) -> bool:
    """Whether values that were read are numbers, and not what damage has left in their place."""
    return all(type(value) is int for value in values)


def _is_above(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit
