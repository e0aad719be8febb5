-- How the account's password is derived, as its client described it; NULL for a client that says nothing of it.
ALTER TABLE users ADD COLUMN kdf TEXT;

-- An account's wrapped keys, which only its clients can unwrap.
CREATE TABLE keyrings (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    version {bigint} NOT NULL,
    updated_at {bigint} NOT NULL,
    keyring TEXT NOT NULL
){strict};

-- What all nodes of this database know and nobody else: each is made once and kept.
CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    made_at {bigint} NOT NULL
){strict};
