"""The replica's SQLite file. Its contents are encrypted, and only its owner can read it.

One process writes to it, others read. A transaction is on disk when it ends: what was queued survives any kill. The
writer holds a lock on a second, empty file, which the operating system releases when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw
import msgspec
from msgspec import Struct

from strongroom.client.errors import Locked, ReadOnlyReplica
from strongroom.client.format.encoding import short, to_url
from strongroom.errors import Invalid
from strongroom.model import Document

_ANY_FORMAT: Final = "strongroom replica "
FORMAT: Final = f"{_ANY_FORMAT}4"
_DAMAGED: Final = "Move it away, open a new one and sync; what was not sent yet is in the damaged file alone"
_NEWER: Final = "Update this program"
_OLDER: Final = "Move it away, open a new one and sync; what was not sent yet is in the old file alone"
EARLIER_VERSIONS: Final = 50  # of a document, versions that are known to be earlier ones
_SCHEMA: Final = f"""
    CREATE TABLE facts (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE vaults (
        uid TEXT NOT NULL PRIMARY KEY,
        wire TEXT NOT NULL,
        version INTEGER NOT NULL,
        clock INTEGER NOT NULL,
        epoch TEXT NOT NULL,
        cursor INTEGER NOT NULL,
        start INTEGER,
        data TEXT,
        salt TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE documents (
        uid TEXT NOT NULL,
        vault TEXT NOT NULL,
        collection TEXT NOT NULL,
        data TEXT NOT NULL,
        hmac TEXT,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER,
        deleted INTEGER NOT NULL,
        mine INTEGER NOT NULL,
        PRIMARY KEY (vault, uid)
    ) STRICT;
    CREATE INDEX documents_in_order ON documents (vault, collection, updated_at, uid);
    CREATE INDEX documents_by_moment ON documents (vault, updated_at, uid);
    CREATE TABLE earlier (
        vault TEXT NOT NULL,
        uid TEXT NOT NULL,
        version INTEGER NOT NULL,
        hmac TEXT NOT NULL,
        PRIMARY KEY (vault, uid, version, hmac)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER keep_earlier AFTER UPDATE ON documents WHEN OLD.hmac IS NOT NULL AND OLD.hmac != NEW.hmac BEGIN
        INSERT INTO earlier (vault, uid, version, hmac) VALUES (OLD.vault, OLD.uid, OLD.version, OLD.hmac)
            ON CONFLICT DO NOTHING;
        DELETE FROM earlier WHERE vault = OLD.vault AND uid = OLD.uid AND version <= OLD.version - {EARLIER_VERSIONS};
    END;
    CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        vault TEXT NOT NULL,
        uid TEXT NOT NULL,
        collection TEXT NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL,
        hmac TEXT NOT NULL,
        version INTEGER NOT NULL,
        base INTEGER NOT NULL,
        floor INTEGER NOT NULL,
        before TEXT,
        made_at INTEGER NOT NULL,
        UNIQUE (vault, uid)
    ) STRICT;
    CREATE TABLE repeats (
        vault TEXT NOT NULL,
        uid TEXT NOT NULL,
        base INTEGER NOT NULL,
        PRIMARY KEY (vault, uid)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sent (
        vault TEXT NOT NULL,
        uid TEXT NOT NULL,
        hmac TEXT NOT NULL,
        PRIMARY KEY (vault, uid, hmac)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE refusals (
        vault TEXT NOT NULL,
        uid TEXT NOT NULL,
        kind TEXT NOT NULL,
        max_bytes INTEGER,
        size INTEGER,
        again INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (vault, uid)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE vault_keys (
        vault TEXT NOT NULL PRIMARY KEY,
        sealed TEXT NOT NULL,
        new INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
"""
_COLUMNS: Final = "uid, vault, collection, data, hmac, version, created_at, updated_at, deleted_at"
_ENTRY: Final = "seq, vault, uid, collection, kind, data, hmac, version, base, floor, before, made_at"
_PUT_ROW: Final = (
    f"INSERT INTO documents ({_COLUMNS}, deleted, mine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (vault, uid) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in f"{_COLUMNS}, deleted, mine".split(", "))
)
_row_text = msgspec.json.Encoder().encode
_row_back = msgspec.json.Decoder(Document).decode

PUT: Final = "put"
DELETE: Final = "delete"
DIVERGED: Final = -1  # the base of a change that follows on nothing that the server has
DELETE_ONLY: Final = "bury"  # the notice is stored, the server's own deletion is not


Head: TypeAlias = tuple[int, str | None, int, int]  # of a document: version, proof, created_at, updated_at


class VaultRecord(Struct, frozen=True, kw_only=True):
    """A vault as last pulled. Everything up to `cursor` was received.

    `start` is the vault's clock when a first download began that has not ended yet.
    """

    uid: str
    wire: str
    version: int
    clock: int
    epoch: str
    cursor: int
    start: int | None = None
    data: str | None = None
    salt: str | None = None


class Entry(Struct, frozen=True, kw_only=True):
    """An outbox entry: a change sealed as `version`, and the version of the server's row that it is based on.

    What is sent gets a version above `floor`. `before` is the row that the change was made from.
    """

    vault: str
    uid: str
    collection: str
    kind: str
    data: str
    hmac: str
    version: int
    base: int
    floor: int = 0
    before: Document | None = None
    made_at: int = 0
    seq: int = 0

    def __repr__(self) -> str:
        return f"Entry(uid={self.uid!r}, kind={self.kind!r}, base={self.base})"


class RefusalRecord(Struct, frozen=True, kw_only=True):
    """Why the server refused the queued change of a document. `max_bytes` and `size` are of a request."""

    vault: str
    uid: str
    kind: str
    max_bytes: int | None = None
    size: int | None = None


class File:
    """An open replica file. A lock serialises threads.

    `read_only`: None writes unless another process does, and takes over when that one has ended.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool | None = None) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._path = Path(path)
        self._never_writes = read_only is True
        self._writer_lock: apsw.Connection | None = None
        if read_only is not True:
            _create(self._path)
            _require_private(self._path)
            self._writer_lock = _take_writer_lock(self._path)
        if read_only is False and self._writer_lock is None:
            raise ReadOnlyReplica
        try:
            self._db = _open_file(self._path, writes=self.is_writer)
        except BaseException:
            self._release()
            raise
        self._depth = 0

    @property
    def is_closed(self) -> bool:
        """Whether the file was closed."""
        return self._closed

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._db.close()
            self._release()

    def _release(self) -> None:
        if self._writer_lock is not None:
            self._writer_lock.close()
            self._writer_lock = None

    @property
    def is_writer(self) -> bool:
        """Whether this process writes to the file."""
        return self._writer_lock is not None

    def require_writer(self) -> None:
        """Become the writer if there is none, or refuse to write."""
        with self._lock:
            self._require_open()
            if self._writer_lock is not None:
                return
            if self._never_writes:
                raise ReadOnlyReplica("This replica was opened for reading only.")
            self._writer_lock = _take_writer_lock(self._path)
            if self._writer_lock is None:
                raise ReadOnlyReplica
            self._db.execute("PRAGMA query_only = 0")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: on disk when it ends, or rolled back. Nested ones join the outer."""
        with self._lock:
            self._require_open()
            if self._depth:
                yield
                return
            self.require_writer()
            self._db.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def _require_open(self) -> None:
        if self._closed:
            raise Locked("This replica is closed: its client has logged out, or was closed.")

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            self._require_open()
            return list(self._db.execute(statement, values))

    def _run(self, statement: str, *values: Any) -> None:
        with self._lock:
            self.require_writer()
            self._db.execute(statement, values)

    # Facts

    def fact(self, name: str) -> str | None:
        """Get a property of the replica."""
        found = self._all("SELECT value FROM facts WHERE name = ?", name)
        return str(found[0][0]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        """Set a property of the replica."""
        self._run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, value)

    def set_generations(self, newest: dict[str, int]) -> None:
        """Set the newest generation of each vault's key, by uid, that the keyring in this file has."""
        self.set_fact("generations", msgspec.json.encode(newest).decode())

    def generation(self, vault: str) -> int | None:
        """The newest generation of a vault's key that the keyring in this file has."""
        return msgspec.json.decode(self.fact("generations") or "{}", type=dict[str, int]).get(vault)

    # Vaults

    def vaults(self) -> list[VaultRecord]:
        """All vaults of the replica."""
        names = "uid, wire, version, clock, epoch, cursor, start, data, salt"
        return [
            VaultRecord(**dict(zip(names.split(", "), row, strict=True)))
            for row in self._all(f"SELECT {names} FROM vaults ORDER BY uid")
        ]

    def vault(self, uid: str) -> VaultRecord | None:
        """Get a vault."""
        return next((vault for vault in self.vaults() if vault.uid == uid), None)

    def put_vault(self, vault: VaultRecord) -> None:
        """Keep a vault, and of its blobs of before that they were here."""
        before = self.vault(vault.uid)
        if before is not None and before.data not in {None, vault.data}:
            past = (self.fact(f"blobs {vault.uid}") or "").split()
            self.set_fact(f"blobs {vault.uid}", " ".join([*past, to_url(short(before.data or ""))][-EARLIER_VERSIONS:]))
        self._run(
            "INSERT OR REPLACE INTO vaults (uid, wire, version, clock, epoch, cursor, start, data, salt)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *msgspec.structs.astuple(vault),
        )
        self.forget_new(vault.uid)

    def put_blob_aside(self, vault: VaultRecord) -> None:
        """Keep the blob that is here apart: a restored server has gone on with another one."""
        if self.blob_aside(vault.uid) is None:  # otherwise what is here was the server's, and undecided
            self.set_fact(f"blob aside {vault.uid}", msgspec.json.encode(vault).decode())

    def blob_aside(self, uid: str) -> VaultRecord | None:
        """The vault with the blob that was kept apart."""
        kept = self.fact(f"blob aside {uid}")
        return None if kept is None else msgspec.json.decode(kept, type=VaultRecord)

    def drop_blob_aside(self, uid: str) -> None:
        """It was decided about, or the server has it again."""
        self._run("DELETE FROM facts WHERE name = ?", f"blob aside {uid}")

    def advance_clock(self, uid: str, timestamp: int) -> None:
        """Advance the clock of a vault to at least this timestamp."""
        self._run("UPDATE vaults SET clock = MAX(clock, ?) WHERE uid = ?", timestamp, uid)

    def drop_vault(self, uid: str) -> None:
        """Delete a vault and its documents; changes that are queued in it, and its keys, stay."""
        with self.transaction():
            for table in ("documents", "earlier", "repeats", "sent"):
                self._run(f"DELETE FROM {table} WHERE vault = ?", uid)
            self._run("DELETE FROM vaults WHERE uid = ?", uid)
            self._run("DELETE FROM facts WHERE name IN (?, ?)", f"blobs {uid}", f"blob aside {uid}")

    def put_vault_keys(self, uid: str, sealed: str, *, new: bool = False) -> None:
        """Keep the sealed keys of a vault. `new`: it was made here, and the server does not have it yet."""
        self._run(
            "INSERT INTO vault_keys (vault, sealed, new) VALUES (?, ?, ?)"
            " ON CONFLICT (vault) DO UPDATE SET sealed = excluded.sealed",
            uid,
            sealed,
            new,
        )

    def new_vaults(self) -> set[str]:
        """The vaults that were made here and that the server does not have yet."""
        return {row[0] for row in self._all("SELECT vault FROM vault_keys WHERE new")}

    def forget_new(self, uid: str) -> None:
        """The server has a vault that was made here, or it was deleted."""
        self._run("UPDATE vault_keys SET new = 0 WHERE vault = ? AND new", uid)

    def vault_keys(self) -> list[tuple[str, str]]:
        """The vaults whose keys are kept, and the sealed keys of each."""
        return [(row[0], row[1]) for row in self._all("SELECT vault, sealed FROM vault_keys ORDER BY vault")]

    def drop_vault_keys(self, uid: str) -> None:
        """Forget the keys of a vault."""
        self._run("DELETE FROM vault_keys WHERE vault = ?", uid)

    # Documents, as the server has them

    def row(self, vault: str, uid: str) -> Document | None:
        """One document."""
        found = self._all(f"SELECT {_COLUMNS} FROM documents WHERE vault = ? AND uid = ?", vault, uid)
        return Document(*found[0]) if found else None

    def has_document(self, vault: str, uid: str) -> bool:
        """Whether a document, deleted or not, or a change of one is here."""
        statement = (
            "SELECT 1 FROM outbox WHERE vault = ?1 AND uid = ?2 UNION ALL"
            " SELECT 1 FROM documents WHERE vault = ?1 AND uid = ?2"
        )
        return bool(self._all(statement, vault, uid))

    def rows(self, vault: str, collection: str | None = None) -> Iterator[Document]:
        """Iterate the live documents in the order of their last change, in chunks."""
        after: tuple[int, str] = (-1, "")
        condition = "" if collection is None else "AND collection = ?"
        scope = () if collection is None else (collection,)
        while True:
            found = self._all(
                f"SELECT {_COLUMNS} FROM documents WHERE vault = ? {condition} AND (updated_at, uid) > (?, ?)"
                " AND NOT deleted ORDER BY updated_at, uid LIMIT 256",
                vault,
                *scope,
                *after,
            )
            yield from (Document(*row) for row in found)
            if len(found) < 256:
                return
            after = found[-1][7], found[-1][0]

    def heads(self, vault: str, uids: list[str]) -> dict[str, Head]:
        """The heads of documents, by uid."""
        found: dict[str, Head] = {}
        if self.is_empty(vault):
            return found
        for start in range(0, len(uids), 500):
            some = uids[start : start + 500]
            marks = ", ".join("?" * len(some))
            statement = (
                f"SELECT uid, version, hmac, created_at, updated_at FROM documents WHERE vault = ? AND uid IN ({marks})"
            )
            found |= {row[0]: (row[1], row[2], row[3], row[4]) for row in self._all(statement, vault, *some)}
        return found

    def changed_after(self, vault: str, timestamp: int) -> dict[str, int]:
        """Uid and version of the documents that have changed after a moment: what was sent from here, as a rule."""
        statement = (
            "SELECT uid, version FROM documents AS d WHERE vault = ? AND updated_at > ?"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = d.vault AND r.uid = d.uid)"
        )
        return {row[0]: row[1] for row in self._all(statement, vault, timestamp)}

    def uids(self, vault: str) -> set[str]:
        """The uids of all documents of a vault, deleted ones included."""
        return {row[0] for row in self._all("SELECT uid FROM documents WHERE vault = ?", vault)}

    def is_empty(self, vault: str) -> bool:
        """Whether a vault has no documents here."""
        return not self._all("SELECT 1 FROM documents WHERE vault = ? LIMIT 1", vault)

    def count_live(self, vault: str) -> tuple[int, int]:
        """The number of documents that the server has not deleted, and the latest timestamp of any."""
        [(count, last)] = self._all(
            "SELECT COUNT(*) FILTER (WHERE deleted_at IS NULL), MAX(updated_at) FROM documents WHERE vault = ?", vault
        )
        return count, last or 0

    def put_rows(self, rows: Iterable[tuple[Document, bool]], *, mine: bool = False) -> None:
        """Keep documents as they were received, each with whether a key holder deleted it. `mine`: written here."""
        with self._lock:
            self._db.executemany(_PUT_ROW, ((*msgspec.structs.astuple(row), deleted, mine) for row, deleted in rows))

    def is_mine(self, vault: str, uid: str) -> bool:
        """Whether the newest version of a document was written by this device."""
        return bool(self._all("SELECT 1 FROM documents WHERE vault = ? AND uid = ? AND mine", vault, uid))

    def is_deleted(self, vault: str, uid: str) -> bool:
        """Whether a key holder deleted a document."""
        return bool(self._all("SELECT 1 FROM documents WHERE vault = ? AND uid = ? AND deleted", vault, uid))

    def forget_times(self, vault: str, uids: Iterable[str]) -> None:
        """A restored server does not have these rows: the times that another database gave them mean nothing."""
        with self._lock:
            self._db.executemany(
                "UPDATE documents SET created_at = 0, updated_at = 0 WHERE vault = ? AND uid = ?",
                ((vault, uid) for uid in uids),
            )

    # What a restored server has forgotten

    def put_repeat(self, vault: str, uid: str, base: int) -> None:
        """Send a document again as it is; the server is at version `base`, or at 0 where it has nothing."""
        self._run("INSERT OR REPLACE INTO repeats (vault, uid, base) VALUES (?, ?, ?)", vault, uid, base)

    def repeats(self, vault: str) -> dict[str, int]:
        """Which documents are to be sent again, and the version that the server has."""
        return {row[0]: row[1] for row in self._all("SELECT uid, base FROM repeats WHERE vault = ?", vault)}

    def drop_repeat(self, vault: str, uid: str) -> None:
        """It is done, or decided otherwise."""
        self._run("DELETE FROM repeats WHERE vault = ? AND uid = ?", vault, uid)
        self.drop_refusal(vault, uid)

    def drop_row(self, vault: str, uid: str) -> None:
        """Delete a document that the server lost in a restore."""
        self._run("DELETE FROM documents WHERE vault = ? AND uid = ?", vault, uid)

    def had_version(self, row: Document) -> bool:
        """Whether this device had this version of a document earlier."""
        statement = "SELECT 1 FROM earlier WHERE vault = ? AND uid = ? AND version = ? AND hmac = ?"
        return bool(self._all(statement, row.vault_uid, row.uid, row.version, row.hmac))

    # The outbox

    def entries(self, vault: str | None = None) -> list[Entry]:
        """The outbox, oldest first."""
        if vault is None:
            return [_entry(row) for row in self._all(f"SELECT {_ENTRY} FROM outbox ORDER BY seq")]
        return [_entry(row) for row in self._all(f"SELECT {_ENTRY} FROM outbox WHERE vault = ? ORDER BY seq", vault)]

    def ready(self, vault: str, after: int, limit: int) -> list[Entry]:
        """The entries that can be sent, in order: their base is the server's version, and it has not refused them."""
        names = ", ".join(f"o.{name}" for name in _ENTRY.split(", "))
        statement = (
            f"SELECT {names} FROM outbox AS o LEFT JOIN documents AS d ON d.vault = o.vault AND d.uid = o.uid"
            " WHERE o.vault = ? AND o.seq > ? AND o.base = COALESCE(d.version, 0)"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = o.vault AND r.uid = o.uid)"
            " AND NOT EXISTS (SELECT 1 FROM refusals AS f WHERE f.vault = o.vault AND f.uid = o.uid AND NOT f.again)"
            " ORDER BY o.seq LIMIT ?"
        )
        return [_entry(row) for row in self._all(statement, vault, after, limit)]

    def conflicting(self) -> list[tuple[str, str]]:
        """The vault and uid of every entry whose base is not the server's version."""
        statement = (
            "SELECT o.vault, o.uid FROM outbox AS o JOIN documents AS d ON d.vault = o.vault AND d.uid = o.uid"
            " WHERE o.base != d.version ORDER BY o.seq"
        )
        return [(row[0], row[1]) for row in self._all(statement)]

    def queue_length(self) -> int:
        """The number of queued changes."""
        return int(self._all("SELECT COUNT(*) FROM outbox")[0][0])

    def queued_documents(self) -> set[tuple[str, str]]:
        """The vault and uid of every entry."""
        return {(row[0], row[1]) for row in self._all("SELECT vault, uid FROM outbox")}

    def queued_vaults(self) -> set[str]:
        """The vaults of all entries."""
        return {row[0] for row in self._all("SELECT DISTINCT vault FROM outbox")}

    def entry(self, vault: str, uid: str) -> Entry | None:
        """The outbox entry of a document."""
        found = self._all(f"SELECT {_ENTRY} FROM outbox WHERE vault = ? AND uid = ?", vault, uid)
        return _entry(found[0]) if found else None

    def put_entry(self, entry: Entry, *, resealed: bool = False) -> None:
        """Queue a change; it replaces an earlier entry of the same document, and is sent even if that was refused.

        `resealed`: it is the same change, which stays refused.
        """
        if not resealed:
            self.drop_refusal(entry.vault, entry.uid)
        before = None if entry.before is None else _row_text(entry.before).decode()
        values = (
            entry.vault,
            entry.uid,
            entry.collection,
            entry.kind,
            entry.data,
            entry.hmac,
            entry.version,
            entry.base,
            entry.floor,
            before,
            entry.made_at,
        )
        self._run(
            "INSERT INTO outbox (vault, uid, collection, kind, data, hmac, version, base, floor, before, made_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (vault, uid) DO UPDATE SET collection = excluded.collection, kind = excluded.kind,"
            " data = excluded.data, hmac = excluded.hmac, version = excluded.version, base = excluded.base,"
            " floor = excluded.floor, before = excluded.before, made_at = excluded.made_at",
            *values,
        )

    def drop_entry(self, vault: str, uid: str) -> None:
        """Remove an entry from the outbox."""
        with self.transaction():
            self._run("DELETE FROM outbox WHERE vault = ? AND uid = ?", vault, uid)
            self.forget_sent(vault, uid)
            self.drop_refusal(vault, uid)

    def record_sent(self, sendings: Iterable[tuple[str, str, str]]) -> None:
        """Record what is about to be sent (vault, uid, proof), to recognise it if the response is lost."""
        with self._lock:
            self._db.executemany("INSERT OR IGNORE INTO sent (vault, uid, hmac) VALUES (?, ?, ?)", sendings)

    def forget_sent(self, vault: str, uid: str) -> None:
        """Forget what was sent of a document: it is stored, or certainly not."""
        self._run("DELETE FROM sent WHERE vault = ? AND uid = ?", vault, uid)

    def sent_uids(self, vault: str) -> set[str]:
        """The documents of which something was sent from here without a response."""
        return {row[0] for row in self._all("SELECT uid FROM sent WHERE vault = ?", vault)}

    def was_sent(self, vault: str, uid: str, hmac: str | None = None) -> bool:
        """Whether content of this proof, or any, was sent from here without a response."""
        if hmac is None:
            return bool(self._all("SELECT 1 FROM sent WHERE vault = ? AND uid = ?", vault, uid))
        return bool(self._all("SELECT 1 FROM sent WHERE vault = ? AND uid = ? AND hmac = ?", vault, uid, hmac))

    # What the server has refused

    def put_refusal(self, record: RefusalRecord) -> None:
        """Record that the server refuses a change."""
        self._run(
            "INSERT OR REPLACE INTO refusals (vault, uid, kind, max_bytes, size) VALUES (?, ?, ?, ?, ?)",
            *msgspec.structs.astuple(record),
        )

    def refusals(self) -> list[RefusalRecord]:
        """Every change that the server has refused."""
        names = ", ".join(RefusalRecord.__struct_fields__)
        rows = self._all(f"SELECT {names} FROM refusals ORDER BY vault, uid")
        return [RefusalRecord(**dict(zip(names.split(", "), row, strict=True))) for row in rows]

    def drop_refusal(self, vault: str, uid: str) -> None:
        """The change is sent again, or is gone."""
        self._run("DELETE FROM refusals WHERE vault = ? AND uid = ?", vault, uid)

    def offer_again(self, kinds: Iterable[str], max_bytes: int | None = None) -> None:
        """Let the next push send again what was refused for one of these reasons, or as too large for a lower limit."""
        with self.transaction():
            self._db.executemany("UPDATE refusals SET again = 1 WHERE kind = ?", ((kind,) for kind in kinds))
            if max_bytes is not None:
                self._run("UPDATE refusals SET again = 1 WHERE max_bytes IS NOT NULL AND size <= ?", max_bytes)

    def held_back(self, vault: str) -> set[str]:
        """The documents whose change was refused and is not sent again."""
        return {row[0] for row in self._all("SELECT uid FROM refusals WHERE vault = ? AND NOT again", vault)}

    def count_sendable(self) -> int:
        """The number of queued changes that a sync would send."""
        statement = (
            "SELECT COUNT(*) FROM outbox AS o LEFT JOIN documents AS d ON d.vault = o.vault AND d.uid = o.uid"
            " WHERE o.base = COALESCE(d.version, 0)"
            " AND NOT EXISTS (SELECT 1 FROM refusals AS f WHERE f.vault = o.vault AND f.uid = o.uid)"
        )
        return int(self._all(statement)[0][0])


def _entry(row: tuple[Any, ...]) -> Entry:
    made = dict(zip(_ENTRY.split(", "), row, strict=True))
    made["before"] = None if made["before"] is None else _row_back(made["before"])
    return Entry(**made)


def _create(path: Path) -> None:
    """Create a file with access for its owner only, if there is none.

    A file that exists is not opened here: closing it would end the locks that SQLite holds on it in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise Invalid({"path": _unopened(path, error)}) from None


def _take_writer_lock(path: Path) -> apsw.Connection | None:
    """The lock of the one process that writes; None where another one has it."""
    beside = path.with_name(f"{path.name}-lock")
    _create(beside)
    _require_private(beside)
    lock = apsw.Connection(str(beside))
    lock.set_busy_timeout(0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        lock.close()
        return None
    except apsw.Error as error:
        lock.close()
        raise Invalid({"path": f"cannot be locked: {beside.name}: {error}"}) from None
    return lock


def _require_private(path: Path) -> None:
    """Refuse what is not a file of one's own; take away what others may do with it."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise Invalid({"path": _unopened(path, error)}) from None
    wrong = None if os.access(path, os.R_OK | os.W_OK) else errno.EACCES
    wrong = errno.ELOOP if stat.S_ISLNK(mode) else errno.EISDIR if stat.S_ISDIR(mode) else wrong
    if wrong is not None:
        raise Invalid({"path": _unopened(path, OSError(wrong, os.strerror(wrong)))})


def _open_file(path: Path, *, writes: bool) -> apsw.Connection:
    """Open the file; the writer makes its tables if there are none."""
    _require_private(path)
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(1_000)
    try:
        if writes:
            if not _is_empty(db):
                _require_format(db, path)  # before anything in the file is changed
            db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            if _is_empty(db):
                db.execute(_SCHEMA)
                db.execute("INSERT INTO facts (name, value) VALUES ('format', ?)", (FORMAT,))
            db.execute("COMMIT")
        else:
            db.execute("PRAGMA query_only = 1; PRAGMA synchronous = FULL")
            _require_format(db, path)
    except apsw.BusyError:
        db.close()
        raise Invalid({"path": "is in use by another program"}) from None
    except apsw.NotADBError:
        db.close()
        raise Invalid({"path": f"is not a replica: {path.name} is another file. It was not changed"}) from None
    except apsw.CorruptError:
        db.close()
        raise Invalid({"path": f"is a replica that is damaged: {path.name}. {_DAMAGED}"}) from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError) as error:
        db.close()
        raise Invalid({"path": f"cannot be used: {path.name}: {error}"}) from None
    except BaseException:
        db.close()
        raise
    return db


def _unopened(path: Path, error: OSError) -> str:
    """Why a file cannot be opened."""
    if error.errno == errno.EISDIR:
        return f"is a folder: {path.name}; a replica is a file"
    if error.errno == errno.ENOENT and path.parent.is_dir():
        return f"does not exist: {path.name}"
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return f"is in a folder that does not exist: {path.parent}"
    if error.errno == errno.ELOOP:
        return f"is a symbolic link: {path.name}; name the file itself"
    return f"cannot be opened: {path.name}: {error.strerror or 'unknown error'}"


def _is_empty(db: apsw.Connection) -> bool:
    return not list(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))


def _require_format(db: apsw.Connection, path: Path) -> None:
    found = _format(db)
    if not found and _is_empty(db):
        raise Invalid({"path": f"holds nothing yet: {path.name}. Another process is making it; try again"})
    if not found.startswith(_ANY_FORMAT):
        raise Invalid({"path": f"is not a replica: {path.name} is a database of another program. It was not changed"})
    if found != FORMAT:
        number = found.removeprefix(_ANY_FORMAT)
        is_newer = number.isdecimal() and int(number) > int(FORMAT.removeprefix(_ANY_FORMAT))
        kind, advice = ("a newer", _NEWER) if is_newer else ("an older", _OLDER)
        raise Invalid({"path": f"is a replica of {kind} format: {path.name}. {advice}"})


def _format(db: apsw.Connection) -> str:
    try:
        return next((str(row[0]) for row in db.execute("SELECT value FROM facts WHERE name = 'format'")), "")
    except apsw.SQLError:  # no such table, or no such columns
        return ""
