-- serves from 7
-- Key shares of sessions: one half of what opens a session that a device has saved; the other half is on the device. A
-- row goes with its session. An older program keeps and gives none: its clients ask for the password.
CREATE TABLE key_shares (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    key_share TEXT NOT NULL,
    expires_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, session_id),
    FOREIGN KEY (user_id, session_id) REFERENCES sessions (user_id, id) ON DELETE CASCADE
){strict};
CREATE INDEX key_shares_by_expiry ON key_shares (expires_at);
