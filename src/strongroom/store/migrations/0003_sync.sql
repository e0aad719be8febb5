-- The lineage of this database, in one row: a restore from a backup begins a new one.
CREATE TABLE lineage (
    id {bigint} NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch TEXT NOT NULL,
    began_at {bigint} NOT NULL
){strict};

-- An account's clock, which all its vaults draw their times from, and what the account uses.
CREATE TABLE ledgers (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    clock {bigint} NOT NULL,
    documents {bigint} NOT NULL,
    bytes {bigint} NOT NULL
){strict};

-- Live documents, and the bytes of those and of the blob.
ALTER TABLE vaults ADD COLUMN documents {bigint} NOT NULL DEFAULT 0;
ALTER TABLE vaults ADD COLUMN bytes {bigint} NOT NULL DEFAULT 0;
UPDATE vaults SET
    documents = (SELECT count(*) FROM documents AS d
                  WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid AND d.deleted_at IS NULL),
    bytes = coalesce(octet_length(data), 0) + coalesce(octet_length(salt), 0)
          + (SELECT coalesce(sum(octet_length(d.data) + coalesce(octet_length(d.hmac), 0)), 0) FROM documents AS d
              WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid AND d.deleted_at IS NULL);
INSERT INTO ledgers (user_id, clock, documents, bytes)
SELECT user_id, max(updated_at), sum(documents), sum(bytes) FROM vaults GROUP BY user_id;

-- When the ciphertext under a tombstone was thrown away.
ALTER TABLE documents ADD COLUMN purged_at {bigint};
CREATE INDEX documents_trash ON documents (user_id, vault_uid, updated_at)
    WHERE deleted_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX documents_by_deletion ON documents (deleted_at) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;

-- What a put or a delete replaced.
CREATE TABLE versions (
    user_id TEXT NOT NULL,
    uid TEXT NOT NULL,
    version {bigint} NOT NULL,
    vault_uid TEXT NOT NULL,
    collection TEXT NOT NULL,
    data TEXT NOT NULL,
    hmac {text},
    created_at {bigint} NOT NULL,
    updated_at {bigint} NOT NULL,
    deleted_at {bigint},
    replaced_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, uid, version),
    FOREIGN KEY (user_id, uid) REFERENCES documents (user_id, uid) ON DELETE CASCADE
){strict};
CREATE INDEX versions_by_time ON versions (user_id, vault_uid, updated_at);
CREATE INDEX versions_by_age ON versions (replaced_at);

CREATE TABLE blob_versions (
    user_id TEXT NOT NULL,
    uid TEXT NOT NULL,
    version {bigint} NOT NULL,
    data {text} NOT NULL,
    salt TEXT,
    updated_at {bigint} NOT NULL,
    replaced_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, uid, version),
    FOREIGN KEY (user_id, uid) REFERENCES vaults (user_id, uid) ON DELETE CASCADE
){strict};
CREATE INDEX blob_versions_by_age ON blob_versions (replaced_at);

-- What happened to vaults themselves, for those who follow an account: created, renamed, blob set, deleted.
CREATE TABLE vault_changes (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    changed_at {bigint} NOT NULL,
    vault_uid TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version {bigint} NOT NULL,
    PRIMARY KEY (user_id, changed_at)
){strict};
CREATE INDEX vault_changes_by_age ON vault_changes (changed_at);
