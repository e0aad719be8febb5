"""The tables of a replica's file, and its format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from strongroom.errors import Invalid

_ANY_FORMAT: Final = "strongroom replica "
FORMAT: Final = f"{_ANY_FORMAT}6"
_NEWER: Final = "Update this program"
_OLDER: Final = "Move it away, open a new one and sync; what was not sent yet is in the old file alone"
EARLIER_VERSIONS: Final = 50  # of a document, versions that are known to be earlier ones
# Documents name their vault and their collection by number, because the texts would stand in every index again. A vault
# has the number of its place without a collection. In these, ?1 is the vault and ?2 the collection.
VAULT_NUMBER: Final = "(SELECT id FROM places WHERE vault = ?1 AND collection = '')"
COLLECTION_NUMBER: Final = "(SELECT id FROM places WHERE vault = ?1 AND collection = ?2)"
SCHEMA: Final = f"""
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
    CREATE TABLE places (
        id INTEGER PRIMARY KEY,
        vault TEXT NOT NULL,
        collection TEXT NOT NULL,
        UNIQUE (vault, collection)
    ) STRICT;
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,
        uid TEXT NOT NULL,
        vault INTEGER NOT NULL,
        collection INTEGER NOT NULL,
        data TEXT NOT NULL,
        hmac TEXT,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER,
        deleted INTEGER NOT NULL,
        mine INTEGER NOT NULL,
        UNIQUE (vault, uid)
    ) STRICT;
    CREATE INDEX documents_of_collection ON documents (collection, updated_at);
    CREATE INDEX documents_of_vault ON documents (vault, updated_at, id, deleted_at);
    CREATE TABLE earlier (
        vault INTEGER NOT NULL,
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
    CREATE TABLE marks (
        vault INTEGER NOT NULL,
        uid TEXT NOT NULL,
        version INTEGER NOT NULL,
        hmac TEXT NOT NULL,
        collection INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        PRIMARY KEY (vault, uid)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER keep_mark AFTER UPDATE ON documents WHEN NEW.version <= OLD.version AND OLD.hmac != NEW.hmac BEGIN
        INSERT INTO marks (vault, uid, version, hmac, collection, deleted)
            VALUES (OLD.vault, OLD.uid, OLD.version, OLD.hmac, OLD.collection, OLD.deleted)
            ON CONFLICT (vault, uid) DO UPDATE SET version = excluded.version, hmac = excluded.hmac,
                collection = excluded.collection, deleted = excluded.deleted WHERE excluded.version > version;
    END;
    CREATE TRIGGER reach_mark AFTER UPDATE ON documents BEGIN
        DELETE FROM marks WHERE vault = NEW.vault AND uid = NEW.uid
            AND (version < NEW.version OR (version = NEW.version AND hmac = NEW.hmac));
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


def is_empty(db: apsw.Connection) -> bool:
    """Whether a file has no tables."""
    return not list(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))


def require_format(db: apsw.Connection, path: Path) -> None:
    """Refuse a file that is not a replica of this format."""
    found = _format(db)
    if not found and is_empty(db):
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
