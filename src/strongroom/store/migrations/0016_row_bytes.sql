-- serves from 15
-- What the rows of documents take beside their ciphertext, live and deleted: 256 bytes and the collection of each. An
-- older program does not count the documents that it creates.
ALTER TABLE ledgers ADD COLUMN row_bytes {bigint} NOT NULL DEFAULT 0;
ALTER TABLE vaults ADD COLUMN row_bytes {bigint} NOT NULL DEFAULT 0;
UPDATE vaults SET row_bytes =
    (SELECT coalesce(sum(octet_length(d.collection) + 256), 0) FROM documents AS d
      WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid AND d.updated_at > coalesce(
            (SELECT until FROM deletions AS x
              WHERE x.user_id = vaults.user_id AND x.vault_uid = vaults.uid AND x.emptied_at IS NULL), 0));
UPDATE ledgers SET row_bytes =
    (SELECT coalesce(sum(v.row_bytes), 0) FROM vaults AS v WHERE v.user_id = ledgers.user_id);
