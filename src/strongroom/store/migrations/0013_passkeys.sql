-- serves from 7
-- Passkeys of accounts: credentials of WebAuthn, each with the public key that its assertions are verified with.
-- An older program does not know of them, and lets nobody in with one.
CREATE TABLE passkeys (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    uid TEXT NOT NULL,
    credential_id TEXT NOT NULL UNIQUE,
    public_key TEXT NOT NULL,
    sign_count {bigint} NOT NULL,
    name TEXT NOT NULL,
    prf {bigint} NOT NULL,
    created_at {bigint} NOT NULL,
    last_used_at {bigint},
    PRIMARY KEY (user_id, uid)
){strict};

-- Challenges of ceremonies that are open; only a hash of each. A challenge is deleted when it is used. It is bound to
-- its purpose and to an account; that of a login, before which no account is known, is counted by address instead.
CREATE TABLE challenges (
    challenge_hash TEXT NOT NULL PRIMARY KEY,
    purpose TEXT NOT NULL,
    user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    address TEXT,
    created_at {bigint} NOT NULL,
    expires_at {bigint} NOT NULL
){strict};
CREATE INDEX challenges_by_account ON challenges (user_id, created_at);
CREATE INDEX challenges_by_address ON challenges (address, expires_at);
CREATE INDEX challenges_by_expiry ON challenges (expires_at);
