-- serves from 7
-- Keyrings that were replaced, each with the descriptor that it was stored with: the last ten, for 90 days.
CREATE TABLE keyring_versions (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    version {bigint} NOT NULL,
    updated_at {bigint} NOT NULL,
    replaced_at {bigint} NOT NULL,
    keyring TEXT NOT NULL,
    kdf TEXT,
    PRIMARY KEY (user_id, version)
){strict};
CREATE INDEX keyring_versions_by_age ON keyring_versions (replaced_at);
