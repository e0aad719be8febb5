-- Whether an import into this account is unfinished: until it is finished or given up, nothing else writes.
ALTER TABLE ledgers ADD COLUMN importing {bigint} NOT NULL DEFAULT 0;

-- The last import into an account: of which file, how far it came, and what came in by then.
CREATE TABLE imports (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    lines {bigint} NOT NULL,
    digest TEXT NOT NULL,
    vaults {bigint} NOT NULL,
    documents {bigint} NOT NULL,
    versions {bigint} NOT NULL,
    blob_versions {bigint} NOT NULL,
    left_out {bigint} NOT NULL,
    began_at {bigint} NOT NULL
){strict};
