-- Vaults and accounts that were deleted, and whose rows go in steps. `vault_uid` is empty for an account. Of a vault, rows
-- with a time up to `until` belong to it: later ones are of a new vault with the same uid. `emptied_at` is set when all
-- rows are gone, and the log may still hold them.
-- It promises nothing: an older program deletes a vault and leaves its documents to the references that end here.
CREATE TABLE deletions (
    user_id TEXT NOT NULL,
    vault_uid TEXT NOT NULL,
    until {bigint} NOT NULL,
    deleted_at {bigint} NOT NULL,
    emptied_at {bigint},
    PRIMARY KEY (user_id, vault_uid)
){strict};
CREATE INDEX deletions_by_time ON deletions (deleted_at, user_id, vault_uid);
CREATE INDEX deletions_emptied ON deletions (emptied_at);

-- A vault's row goes at once, and those of its documents and blobs later. SQLite has no statement for this, and documents
-- this way: https://www.sqlite.org/lang_altertable.html#making_other_kinds_of_table_schema_changes. The schema's number
-- is raised by the table above.
{postgres}ALTER TABLE documents DROP CONSTRAINT IF EXISTS documents_user_id_vault_uid_fkey;
{postgres}ALTER TABLE blob_versions DROP CONSTRAINT IF EXISTS blob_versions_user_id_uid_fkey;
{sqlite}PRAGMA writable_schema = ON;
{sqlite}UPDATE sqlite_schema SET sql = replace(sql, ',
{sqlite}    FOREIGN KEY (user_id, vault_uid) REFERENCES vaults (user_id, uid) ON DELETE CASCADE', '')
{sqlite} WHERE type = 'table' AND name = 'documents';
{sqlite}UPDATE sqlite_schema SET sql = replace(sql, ',
{sqlite}    FOREIGN KEY (user_id, uid) REFERENCES vaults (user_id, uid) ON DELETE CASCADE', '')
{sqlite} WHERE type = 'table' AND name = 'blob_versions';
{sqlite}PRAGMA writable_schema = RESET;
