"""The settings of a server: validates and parses the texts of `strongroom.options`. Options win over variables."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from strongroom.credentials import Lifetime
from strongroom.model import Variant
from strongroom.options import TABLE, Option
from strongroom.server.client_address import Network
from strongroom.store import file_owners
from strongroom.web_release import WEB_APP

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d|w)")
_ISSUERS: Final = {Variant.BOTH: "strongroom", Variant.DOCUMENT: "strongroom", Variant.BLOB: "strongbox"}
WEAK_SECRET_BYTES: Final = 32
UNIX: Final = "unix:"  # before the path of a socket


class BadSetting(Exception):  # noqa: N818 - the message is shown without a traceback
    """An invalid setting; the message is a sentence for the operator."""


def parse_duration(text: str) -> Lifetime:
    """A duration like 15m or 7d."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("a number and ms, s, m, h, d or w, like 15m")
    milliseconds = int(match[1]) * _UNITS[match[2]]
    if milliseconds > 100 * 366 * _UNITS["d"]:
        raise ValueError("a lifetime of at most a hundred years")
    return Lifetime(milliseconds, exact=match[2] == "ms" or milliseconds < _UNITS["m"])


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", text.strip()) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _variant(text: str) -> Variant:
    try:
        return Variant(text.strip())
    except ValueError:
        raise ValueError("one of both, document and blob") from None


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    if any(origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin) for origin in origins):
        raise ValueError("* or a comma-separated list of origins like https://app.example.com")
    return origins


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text


def _database_url(text: str) -> str:
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("an address like postgresql://user:password@host/name")
    return text


def _public_url(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^/\s]+(?:/[^\s]*)?", text.strip()):
        raise ValueError("an address like https://vault.example.com")
    return text.strip().rstrip("/")


def _web(text: str) -> str:
    """The folder of the web app, or nothing."""
    words = {"on": WEB_APP, "off": ""}
    if text.strip() not in words and "/" not in text:
        raise ValueError("on, off, or the folder of a build, with a / in its path")
    return words.get(text.strip(), text)


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("addresses or networks separated by commas, like 10.0.0.5 or 10.1.0.0/16, or unix") from None


def _trusted(text: str) -> tuple[Network | str, ...]:
    """Trusted proxies: networks, and the word unix for peers of a Unix socket."""
    parts = [part.strip() for part in text.split(",")]
    return (*(("unix",) if "unix" in parts else ()), *_networks(",".join(part for part in parts if part != "unix")))


def _host(text: str) -> str:
    if text.startswith(UNIX) and not 1 <= len(text.removeprefix(UNIX).encode()) <= 100:
        raise ValueError("an address, or unix: and the path of a socket of at most 100 bytes")
    return _text(text)


def _port_or_none(text: str) -> int | None:
    return _whole(0, 65_535)(text) if text.strip() else None


def _token(text: str) -> bytes:
    if text and (len(text) < 16 or not text.isascii() or not text.isprintable() or " " in text):
        raise ValueError("at least 16 characters of ASCII without spaces")
    return text.encode()


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip() not in words:
            raise ValueError(f"{', '.join(words[:-1])} or {words[-1]}")
        return text.strip()

    return parse


def _signups(text: str) -> bool:
    if text.strip() not in {"open", "closed"}:
        raise ValueError("open or closed")
    return text.strip() == "open"


def _every(text: str) -> int:
    milliseconds = parse_duration(text).milliseconds
    if milliseconds < _UNITS["s"]:
        raise ValueError("at least a second, like 24h")
    return milliseconds


class BackupRetention(Struct, frozen=True):
    """For how many days, weeks, months, hours and years one backup each is retained; and how many of the last."""

    days: int
    weeks: int
    months: int
    last: int = 0
    hours: int = 0
    years: int = 0


def _keep(text: str) -> BackupRetention:
    fields = {"last": "last", "h": "hours", "d": "days", "w": "weeks", "m": "months", "y": "years"}
    counts = dict.fromkeys(fields.values(), 0)
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([0-9]{1,4}) ?(last|[hdwmy])", part)
        if match is None:
            raise ValueError("numbers with last, h, d, w, m (months) or y, like 3last,24h,7d,4w,6m,2y")
        counts[fields[match[2]]] = int(match[1])
    if not any(counts.values()):
        raise ValueError("numbers with last, h, d, w, m (months) or y, like 7d,4w,6m, of which one is not 0")
    return BackupRetention(**counts)


def _backup_to(text: str) -> str:
    text = text.strip()
    scheme = text.partition("/")[0]
    if ":" not in scheme:
        return text
    try:
        url = urlsplit(text)
        fits = url.hostname and not (url.query or url.fragment) and (url.port or 1) and url.password is None
    except ValueError:
        fits = False
    if not fits or scheme not in {"sftp:", "s3:"} or (scheme == "s3:" and "@" in url.netloc):
        raise ValueError(
            "a folder, sftp://user@host/path or s3://bucket/prefix; no password or key belongs in it, and a folder "
            "with a colon in its name begins with ./ or /"
        )
    return text


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "JWT_SECRET": _text,
    "JWT_SECRET_PREVIOUS": str.strip,
    "SECOND_FACTOR_SECRET": str.strip,
    "SECOND_FACTOR_SECRET_PREVIOUS": str.strip,
    "JWT_ISSUER": _text,
    "JWT_ACCESS_EXPIRY": parse_duration,
    "JWT_REFRESH_EXPIRY": parse_duration,
    "DB_PATH": _text,
    "DATABASE_URL": _database_url,
    "DATABASE_POOLER_URL": _database_url,
    "DB_POOL": _whole(1, 1_000),
    "DB_WAIT_SECONDS": _whole(0, 86_400),
    "HOST": _host,
    "PORT": _whole(0, 65_535),
    "WORKERS": _whole(1, 64),
    "VAULT_VARIANT": _variant,
    "MAX_BODY_BYTES": _whole(1_024, 2**30),
    "IMPORT_MAX_BYTES": _whole(0, 10**15 - 1),
    "BUFFER_BYTES": _whole(16 * 2**20, 10**15 - 1),
    "CORS_ORIGINS": _origins,
    "WEB": _web,
    "PUBLIC_URL": _public_url,
    "TRUSTED_PROXIES": _trusted,
    "MAX_CONNECTIONS": _whole(1, 1_000_000),
    "SIGNUPS": _signups,
    "SIGNUP_LIMIT": _whole(0, 1_000_000_000),
    "LOGIN_LIMIT": _whole(0, 1_000_000_000),
    "RATE_LIMIT": _whole(0, 1_000_000_000),
    "QUOTA_DOCUMENTS": _whole(0, 10**15 - 1),
    "QUOTA_BYTES": _whole(0, 10**15 - 1),
    "HISTORY_VERSIONS": _whole(0, 1_000),
    "HISTORY_DAYS": _whole(1, 36_500),
    "TRASH_DAYS": _whole(0, 36_500),
    "BACKUP_DIR": str.strip,
    "BACKUP_EVERY": _every,
    "BACKUP_KEEP": _keep,
    "BACKUP_PASSPHRASE": str.strip,
    "BACKUP_RECIPIENT": str.strip,
    "BACKUP_TO": _backup_to,
    "BACKUP_SSH_KEY": str.strip,
    "BACKUP_SSH_HOSTS": str.strip,
    "EVENT_DAYS": _whole(1, 36_500),
    "READY_FREE_BYTES": _whole(0, 10**15 - 1),
    "DRAIN_SECONDS": _whole(0, 3_600),
    "LOG_LEVEL": _one_of("debug", "info", "warning", "error"),
    "LOG_FORMAT": _one_of("auto", "json", "text"),
    "METRICS_TOKEN": _token,
    "METRICS_PORT": _port_or_none,
    "TLS_CERT_FILE": str.strip,
    "TLS_KEY_FILE": str.strip,
}


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a server, parsed."""

    jwt_secret: bytes
    jwt_secret_previous: bytes
    second_factor_secret: bytes
    second_factor_secret_previous: bytes
    jwt_issuer: str
    jwt_access_expiry: Lifetime
    jwt_refresh_expiry: Lifetime
    db_path: str
    database_url: str
    database_pooler_url: str
    db_pool: int
    db_wait_seconds: int
    host: str
    port: int
    workers: int
    vault_variant: Variant
    max_body_bytes: int
    import_max_bytes: int
    buffer_bytes: int
    cors_origins: tuple[str, ...]
    web: str  # the folder of the web app; empty where it is not served
    public_url: str
    trusted_proxies: tuple[Network | str, ...]
    max_connections: int
    signups: bool
    signup_limit: int
    login_limit: int
    rate_limit: int
    quota_documents: int
    quota_bytes: int
    history_versions: int
    history_days: int
    trash_days: int
    backup_dir: str
    backup_every: int
    backup_keep: BackupRetention
    backup_passphrase: str
    backup_recipient: str
    backup_to: str
    backup_ssh_key: str
    backup_ssh_hosts: str
    event_days: int
    ready_free_bytes: int
    drain_seconds: int
    log_level: str
    log_format: str
    metrics_token: bytes
    metrics_port: int | None
    tls_cert_file: str
    tls_key_file: str

    @property
    def sealing_secrets(self) -> list[bytes]:
        """The secrets that open the sealed secrets of one-time codes; the first one seals them."""
        own, previous = self.second_factor_secret, self.second_factor_secret_previous
        return [one for one in (own, self.jwt_secret, previous, self.jwt_secret_previous) if one]

    @property
    def database(self) -> str:
        """The location of the database: a path, or the URL of PostgreSQL."""
        return self.database_url or self.db_path

    def __repr__(self) -> str:
        shown = f"host={self.host!r}, port={self.port}, db_path={self.db_path!r}"  # the URL may hold a password
        return f"Settings({shown}, variant={self.vault_variant.value!r})"


def resolve(
    environment: Mapping[str, str],
    options: Mapping[str, str | None] | None = None,
    without: Collection[str] = (),
) -> Settings:
    """Parse settings from options and variables; an empty variable counts as absent.

    Secrets in `without` are not needed: they stay empty, and their files are not read.
    """
    options = options or {}
    values: dict[str, Any] = {}
    for setting in TABLE:
        if setting.variable in without:
            values[setting.variable.lower()] = b"" if setting.variable == "METRICS_TOKEN" else ""
            continue
        name, text = _raw_value(setting, environment, options)
        if setting.variable == "JWT_SECRET" and not text:
            raise BadSetting(
                "JWT_SECRET is not set. 'strongroom init' writes a .env with a fresh one; "
                "or set it to the output of: python3 -c 'import secrets; print(secrets.token_hex(32))'"
            )
        if "\0" in text:
            raise BadSetting(f"{name} contains a NUL character; a file that holds it must be text in UTF-8.")
        try:
            values[setting.variable.lower()] = _PARSERS[setting.variable](text)
        except ValueError as error:
            hidden = setting.is_secret or setting.variable == "BACKUP_TO"  # it may contain a password by mistake
            shown = "" if hidden else f", not {text!r}"
            raise BadSetting(f"{name} must be {error}{shown}.") from None
    if options.get("--db-path") is not None and options.get("--database-url-file") is None:
        values["database_url"] = ""  # an explicit file wins over DATABASE_URL in the environment
    elif values["database_pooler_url"] and not values["database_url"]:
        raise BadSetting(
            "DATABASE_POOLER_URL is set and DATABASE_URL is not; set that to the address of PostgreSQL itself, which "
            "is needed besides that of the pooler."
        )
    if options.get("--jwt-issuer") is None and not environment.get("JWT_ISSUER"):
        values["jwt_issuer"] = _ISSUERS[values["vault_variant"]]
    if values["backup_passphrase"] and values["backup_recipient"]:
        raise BadSetting(
            "BACKUP_PASSPHRASE and BACKUP_RECIPIENT are both set; a backup is encrypted to one: remove the other."
        )
    if values["backup_to"] and not values["backup_dir"]:
        raise BadSetting(
            "BACKUP_TO is set and BACKUP_DIR is not. Set BACKUP_DIR too: a backup is written there before it is sent."
        )
    if values["tls_key_file"] and not values["tls_cert_file"]:
        raise BadSetting("TLS_KEY_FILE is set and TLS_CERT_FILE is not. TLS needs both: set TLS_CERT_FILE too.")
    for name in ("jwt_secret", "jwt_secret_previous", "second_factor_secret", "second_factor_secret_previous"):
        values[name] = values[name].encode()
    return Settings(**values)


def _raw_value(setting: Option, environment: Mapping[str, str], options: Mapping[str, str | None]) -> tuple[str, str]:
    """The name by which a setting was given, and its text; secrets are read from their files."""
    given = options.get(setting.option)
    if given is not None:
        return setting.option, _secret_file(setting, setting.option, given) if setting.is_secret else given
    value, file = environment.get(setting.variable), environment.get(setting.file_variable)
    if value and file:
        raise BadSetting(
            f"{setting.variable} and {setting.file_variable} are both set. Remove "
            f"{setting.variable} if the file is right, or {setting.file_variable} if the value is."
        )
    if file:
        return setting.file_variable, _secret_file(setting, setting.file_variable, file)
    return setting.variable, value or setting.default


def _secret_file(setting: Option, named_by: str, path: str) -> str:
    """Read a secret from a file. An empty file is refused: it would switch a feature off silently."""
    advice = ""
    try:
        text = Path(path).read_text("utf-8-sig").strip()
        if text or setting.variable.endswith("_PREVIOUS"):  # it is emptied after a change of secrets
            return text
        reason = "it is empty"
    except PermissionError as error:
        reason, advice = str(error.strerror), f" {file_owners.run_as_owner(Path(path))}"
    except (OSError, ValueError) as error:  # not text, or a NUL character in the path
        reason = getattr(error, "strerror", None) or "it is not text"
    raise BadSetting(f"Cannot read the file {path} that {named_by} names: {reason}.{advice}")
