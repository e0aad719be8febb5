-- serves from 7
-- Invitations to register, each for one account; of the code only a hash. A used one has expired at that moment, and
-- goes with its account. An older program does not know of them: it refuses a registration, or makes it without the code.
CREATE TABLE invitations (
    uid TEXT NOT NULL PRIMARY KEY,
    code_hash TEXT NOT NULL UNIQUE,
    email TEXT,
    note TEXT,
    created_at {bigint} NOT NULL,
    expires_at {bigint} NOT NULL,
    taken_emails {bigint} NOT NULL,
    used_at {bigint},
    used_by TEXT REFERENCES users (id) ON DELETE CASCADE
){strict};
CREATE INDEX invitations_by_expiry ON invitations (expires_at);
CREATE INDEX invitations_by_account ON invitations (used_by);
