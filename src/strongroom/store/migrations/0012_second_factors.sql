-- serves from 7
-- Second factors of accounts. While an account has one, its password hash begins with a mark: an older program, which
-- does not know of second factors, matches no password with such a hash, and so lets nobody in without one.

-- The secret of an account's one-time codes, sealed under a key that is not in this database; `key_id` names that key.
-- `confirmed` is 1 for the secret that counts, 0 for one whose enrolment has begun. No step up to `last_step` counts again.
CREATE TABLE one_time_codes (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    confirmed {bigint} NOT NULL,
    key_id TEXT NOT NULL,
    sealed TEXT NOT NULL,
    last_step {bigint} NOT NULL,
    created_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, confirmed)
){strict};
CREATE INDEX one_time_codes_by_key ON one_time_codes (key_id, user_id, confirmed);
CREATE INDEX one_time_codes_by_age ON one_time_codes (confirmed, created_at);

-- Recovery codes that were not used yet; only their hashes.
CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash TEXT NOT NULL,
    PRIMARY KEY (user_id, code_hash)
){strict};

-- What a login gives after a right password where the second factor is still to come; only a hash of each. `password`
-- is a hash of the password hash that was verified: a ticket is void after a change of password.
CREATE TABLE login_tickets (
    ticket_hash TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    password TEXT NOT NULL,
    device_name TEXT,
    created_at {bigint} NOT NULL,
    expires_at {bigint} NOT NULL
){strict};
CREATE INDEX login_tickets_by_account ON login_tickets (user_id, created_at);
CREATE INDEX login_tickets_by_expiry ON login_tickets (expires_at);
