ALTER TABLE sessions ADD COLUMN last_used_at {bigint};
ALTER TABLE sessions ADD COLUMN address TEXT;
ALTER TABLE sessions ADD COLUMN user_agent TEXT;
UPDATE sessions SET last_used_at = created_at;

CREATE TABLE events (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at {bigint} NOT NULL,
    address TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
){strict};
CREATE INDEX events_by_time ON events (created_at);

CREATE TABLE signups (
    address TEXT NOT NULL,
    signed_up_at {bigint} NOT NULL
){strict};
CREATE INDEX signups_by_address ON signups (address, signed_up_at);
CREATE INDEX signups_by_time ON signups (signed_up_at);
