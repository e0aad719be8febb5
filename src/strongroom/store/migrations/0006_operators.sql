-- When the server last wrote here only to see whether it can.
ALTER TABLE lineage ADD COLUMN probed_at {bigint};

-- When an operator shut an account; its sessions and keys are refused while it stands. The index holds those alone, so
-- that the question whether an account is shut, which every request asks, is put to an index that is all but empty.
ALTER TABLE users ADD COLUMN disabled_at {bigint};
CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;

-- For an operator who lifts what counts against an account.
CREATE INDEX failures_of_account ON failures (account);
