-- serves from 7
-- What the vault was called while it had this blob: clients bind a blob to that name. NULL for what was kept before.
ALTER TABLE blob_versions ADD COLUMN name TEXT;
