"""The table of settings, read by the command line, the server, docs/settings.md and a test."""

from __future__ import annotations

from typing import Final, NamedTuple

_PATHS: Final = {
    "DB_PATH",
    "BACKUP_DIR",
    "BACKUP_TO",
    "BACKUP_SSH_KEY",
    "BACKUP_SSH_HOSTS",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
}
# Variables of libraries that a settings file may contain besides settings.
FOREIGN: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


class Option(NamedTuple):
    """One setting: its variable, its option on the command line, its default, what it means."""

    variable: str
    option: str
    default: str
    meaning: str

    @property
    def is_secret(self) -> bool:
        """Whether its option names a file with the value: a command line is visible in the list of processes."""
        return self.option.endswith("-file")

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the value; empty for settings that are not secret."""
        return f"{self.variable}_FILE" if self.is_secret else ""

    @property
    def is_path(self) -> bool:
        """Whether its value is the path of a file or a folder."""
        return self.variable in _PATHS


SETTINGS_FILE: Final = "STRONGROOM_SETTINGS"  # the variable that names a file with settings

TABLE: Final = (
    Option(
        "JWT_SECRET", "--jwt-secret-file", "", "Secret that signs the tokens; required. The option names a file with it"
    ),
    Option(
        "JWT_SECRET_PREVIOUS",
        "--jwt-secret-previous-file",
        "",
        "The previous secret: tokens that it signed stay valid. The option names a file with it",
    ),
    Option(
        "SECOND_FACTOR_SECRET",
        "--second-factor-secret-file",
        "",
        "Secret that encrypts the secrets of one-time codes; default: JWT_SECRET. The option names a file with it",
    ),
    Option(
        "SECOND_FACTOR_SECRET_PREVIOUS",
        "--second-factor-secret-previous-file",
        "",
        "The previous one of these, or a JWT_SECRET of before: what it encrypted is encrypted anew. The option names a "
        "file with it",
    ),
    Option(
        "JWT_ISSUER", "--jwt-issuer", "strongroom", "Issuer named in the tokens; strongbox where the variant is blob"
    ),
    Option(
        "JWT_ACCESS_EXPIRY",
        "--jwt-access-expiry",
        "15m",
        "Lifetime of an access token: a number and ms, s, m, h, d or w",
    ),
    Option("JWT_REFRESH_EXPIRY", "--jwt-refresh-expiry", "7d", "Lifetime of a refresh token, in the same notation"),
    Option("DB_PATH", "--db-path", "./data/vault.db", "The database file"),
    Option(
        "DATABASE_URL",
        "--database-url-file",
        "",
        "PostgreSQL instead of a file: postgresql://user:password@host/name. The option names a file with it",
    ),
    Option(
        "DATABASE_POOLER_URL",
        "--database-pooler-url-file",
        "",
        "A connection pooler, such as PgBouncer, that requests go through; DATABASE_URL is PostgreSQL itself. The "
        "option names a file with it",
    ),
    Option("DB_POOL", "--db-pool", "10", "Connections to PostgreSQL, at most, for each process"),
    Option(
        "DB_WAIT_SECONDS",
        "--db-wait-seconds",
        "60",
        "How long a starting server waits for PostgreSQL; 0: not at all",
    ),
    Option("HOST", "--host", "127.0.0.1", "Address to listen on, or unix:/path/of/a/socket"),
    Option("PORT", "--port", "3000", "Port to listen on; 0 takes a free one"),
    Option("TLS_CERT_FILE", "--tls-cert", "", "File with the certificate and its chain, to speak TLS without a proxy"),
    Option("TLS_KEY_FILE", "--tls-key", "", "File with its private key, where that is another one"),
    Option("WORKERS", "--workers", "1", "Processes that serve; more than one help on PostgreSQL, seldom on a file"),
    Option("VAULT_VARIANT", "--variant", "both", "What to serve: both, document or blob"),
    Option("MAX_BODY_BYTES", "--max-body-bytes", "6291456", "Largest request body, in bytes"),
    Option(
        "IMPORT_MAX_BYTES", "--import-max-bytes", "10737418240", "Largest file of an import, in bytes; 0 does not limit"
    ),
    Option(
        "BUFFER_BYTES",
        "--buffer-bytes",
        "268435456",
        "Bytes of unfinished requests and unread responses, of all clients of a process; beyond it, the clients that "
        "hold the most are disconnected",
    ),
    Option("MAX_CONNECTIONS", "--max-connections", "4000", "Open connections, at most, for each process"),
    Option("CORS_ORIGINS", "--cors-origins", "*", "Origins of browser apps that may call, separated by commas"),
    Option(
        "WEB",
        "--web",
        "on",
        "The web app at /app/: on, off, or the folder of a build of your own",
    ),
    Option(
        "PUBLIC_URL",
        "--public-url",
        "",
        "The public URL, like https://vault.example.com; passkeys need it, and are bound to its host",
    ),
    Option(
        "TRUSTED_PROXIES",
        "--trusted-proxies",
        "",
        "Addresses or networks of proxies whose X-Forwarded-For is trusted, unix for a Unix socket; default: none",
    ),
    Option("SIGNUPS", "--signups", "open", "Whether people may register without an invitation: open or closed"),
    Option("SIGNUP_LIMIT", "--signup-limit", "1000", "Registrations from one address in an hour; 0 does not limit"),
    Option(
        "LOGIN_LIMIT",
        "--login-limit",
        "60",
        "Right passwords of one account in a quarter of an hour, for each process; 0 does not limit",
    ),
    Option(
        "RATE_LIMIT", "--rate-limit", "0", "Requests of one account in a minute, for each process; 0 does not limit"
    ),
    Option("QUOTA_DOCUMENTS", "--quota-documents", "0", "Documents that one account may store; 0 does not limit"),
    Option(
        "QUOTA_BYTES",
        "--quota-bytes",
        "0",
        "Bytes of ciphertext that one account may store, as much again in trash and history, and in rows of documents; "
        "0 does not limit",
    ),
    Option(
        "HISTORY_VERSIONS",
        "--history-versions",
        "20",
        "Replaced versions of a document or a blob that are kept; 0: none",
    ),
    Option("HISTORY_DAYS", "--history-days", "90", "How long replaced versions are kept, in days"),
    Option("TRASH_DAYS", "--trash-days", "30", "How long a deleted document can be revived, in days; 0: for ever"),
    Option("BACKUP_DIR", "--backup-dir", "", "Folder for scheduled backups; without it the server makes none"),
    Option(
        "BACKUP_EVERY",
        "--backup-every",
        "24h",
        "How often it makes one: a number and ms, s, m, h, d or w, at least 1s",
    ),
    Option(
        "BACKUP_KEEP",
        "--backup-keep",
        "7d,4w,6m",
        "For how many hours, days, weeks, months and years it keeps one each, and how many of the last: "
        "3last,24h,7d,4w,6m,2y",
    ),
    Option(
        "BACKUP_PASSPHRASE",
        "--backup-passphrase-file",
        "",
        "Encrypts every backup to this passphrase. The option names a file with it",
    ),
    Option("BACKUP_RECIPIENT", "--backup-recipient", "", "Encrypts every backup to this age recipient instead"),
    Option(
        "BACKUP_TO",
        "--backup-to",
        "",
        "Where each of these backups is sent as well: a folder, sftp://user@host/path or s3://bucket/prefix",
    ),
    Option("BACKUP_SSH_KEY", "--backup-ssh-key", "", "File with the private key for sftp; else one of ~/.ssh"),
    Option(
        "BACKUP_SSH_HOSTS",
        "--backup-ssh-hosts",
        "",
        "File with the trusted host keys for sftp, in the format of known_hosts; else ~/.ssh/known_hosts",
    ),
    Option("EVENT_DAYS", "--event-days", "90", "How long an account's log is kept, in days"),
    Option(
        "READY_FREE_BYTES",
        "--ready-free-bytes",
        "104857600",
        "Bytes that must be free on the disk of the database file for /ready to return 200",
    ),
    Option(
        "DRAIN_SECONDS",
        "--drain-seconds",
        "0",
        "How long a stopping server still handles requests while /ready returns 503, so that proxies remove it",
    ),
    Option("LOG_LEVEL", "--log-level", "info", "How much is logged: debug, info, warning or error"),
    Option("LOG_FORMAT", "--log-format", "auto", "json, text, or auto: text at a terminal and json elsewhere"),
    Option(
        "METRICS_TOKEN",
        "--metrics-token-file",
        "",
        "Bearer token for /metrics. The option names a file with it",
    ),
    Option(
        "METRICS_PORT",
        "--metrics-port",
        "",
        "A separate port for the metrics: on HOST if METRICS_TOKEN is set, else on 127.0.0.1",
    ),
)
