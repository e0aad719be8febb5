CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password_hash TEXT,
    created_at {bigint} NOT NULL,
    updated_at {bigint} NOT NULL
){strict};

CREATE TABLE sessions (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    generation {bigint} NOT NULL,
    created_at {bigint} NOT NULL,
    expires_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, id)
){strict};
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE refresh_tokens (
    user_id TEXT NOT NULL,
    jti TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation {bigint} NOT NULL,
    superseded_at {bigint},
    created_at {bigint} NOT NULL,
    expires_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, jti),
    FOREIGN KEY (user_id, session_id) REFERENCES sessions (user_id, id) ON DELETE CASCADE
){strict};
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (user_id, session_id, generation);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);

CREATE TABLE api_keys (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    uid TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    permissions TEXT,
    vault_uids TEXT,
    collections TEXT,
    expires_at {bigint},
    created_at {bigint} NOT NULL,
    last_used_at {bigint},
    PRIMARY KEY (user_id, uid)
){strict};

CREATE TABLE vaults (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    uid TEXT NOT NULL,
    name TEXT NOT NULL,
    data {text},
    salt TEXT,
    version {bigint} NOT NULL,
    created_at {bigint} NOT NULL,
    updated_at {bigint} NOT NULL,
    PRIMARY KEY (user_id, uid),
    UNIQUE (user_id, name)
){strict};

CREATE TABLE documents (
    user_id TEXT NOT NULL,
    uid TEXT NOT NULL,
    vault_uid TEXT NOT NULL,
    collection TEXT NOT NULL,
    data TEXT NOT NULL,
    hmac {text},
    version {bigint} NOT NULL,
    created_at {bigint} NOT NULL,
    updated_at {bigint} NOT NULL,
    deleted_at {bigint},
    PRIMARY KEY (user_id, uid),
    FOREIGN KEY (user_id, vault_uid) REFERENCES vaults (user_id, uid) ON DELETE CASCADE
){strict};
CREATE UNIQUE INDEX documents_by_time ON documents (user_id, vault_uid, updated_at);
CREATE INDEX documents_by_collection ON documents (user_id, vault_uid, collection, updated_at);

CREATE TABLE failures (
    address TEXT NOT NULL,
    account TEXT NOT NULL,
    failed_at {bigint} NOT NULL
){strict};
CREATE INDEX failures_by_account ON failures (address, account, failed_at);
CREATE INDEX failures_by_address ON failures (address, failed_at);
CREATE INDEX failures_by_time ON failures (failed_at);
