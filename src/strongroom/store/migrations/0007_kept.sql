-- serves from 6
-- What a vault keeps in trash and history: the bytes of deleted documents whose content is still there, and of replaced
-- versions of documents and of the blob; 256 more for each row.
ALTER TABLE vaults ADD COLUMN kept {bigint} NOT NULL DEFAULT 0;
UPDATE vaults SET kept =
    (SELECT coalesce(sum(octet_length(d.data) + coalesce(octet_length(d.hmac), 0) + 256), 0) FROM documents AS d
      WHERE d.user_id = vaults.user_id AND d.vault_uid = vaults.uid
        AND d.deleted_at IS NOT NULL AND d.purged_at IS NULL)
  + (SELECT coalesce(sum(octet_length(v.data) + coalesce(octet_length(v.hmac), 0) + 256), 0) FROM versions AS v
      WHERE v.user_id = vaults.user_id AND v.vault_uid = vaults.uid)
  + (SELECT coalesce(sum(octet_length(b.data) + coalesce(octet_length(b.salt), 0) + 256), 0) FROM blob_versions AS b
      WHERE b.user_id = vaults.user_id AND b.uid = vaults.uid);
