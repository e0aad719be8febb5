"""What is wrong with a server, before its users find out. It looks, and changes nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import shutil
import ssl
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.model import fault, fine, warning
from strongroom.server import listening, schedule
from strongroom.server.settings import UNIX, WEAK_SECRET_BYTES, BadSetting
from strongroom.store import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strongroom.model import Finding
    from strongroom.server.settings import Settings

_MIB: Final = 1024 * 1024
_FLOOR: Final = 64 * _MIB  # less than this on the disk is as good as nothing
_RENEW_DAYS: Final = 14
_CONTAINER_SECRETS: Final = "/run/secrets"  # which only the processes of one container see, whatever the modes say
_COMMON: Final = (b"secret", b"changeme", b"password", b"your-secret")


class Origin(NamedTuple):
    """Where the settings came from."""

    file: Path | None = None  # the settings file
    holds_secrets: bool = False
    secret_files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def examine(settings: Settings, origin: Origin = Origin()) -> list[Finding]:  # noqa: B008 - it never changes
    """All that there is to say."""
    now = time.time_ns() // 1_000_000
    return [
        *_origin(origin),
        *asyncio.run(health.look(settings.where, now)),
        *_disk(settings),
        *_permissions(settings, origin),
        _secret(settings),
        _backups(settings, now),
        _proxies(settings),
        _address(settings),
        *_tls(settings),
        _public_url(settings),
    ]


def _disk(settings: Settings) -> Iterator[Finding]:
    """Space where something grows: the database if it is a file, and the backups."""
    for name, place in (("database", settings.db_path), ("backups", settings.backup_dir)):
        if not place or (name == "database" and settings.database_url):
            continue
        path = Path(place).expanduser()
        there = next((folder for folder in (path, *path.parents) if folder.exists()), Path())
        try:
            free = shutil.disk_usage(there).free
            size = path.stat().st_size if path.is_file() else 0
        except OSError as error:
            yield fault("disk", f"The disk of the {name} cannot be looked at: {error.strerror}.", f"see {there}")
            continue
        says = f"{free // _MIB:,} MiB are free where the {name} lie" + ("s." if name == "database" else ".")
        if free < _FLOOR:
            yield fault("disk", says, "make room now: writes are refused when it is full")
        elif free < max(size, 16 * _FLOOR):
            yield warning("disk", says, "make room: a restore needs as much again as the database has")
        else:
            yield fine("disk", says)


def _origin(origin: Origin) -> Iterator[Finding]:
    """What was probably meant as a setting, and is none."""
    for sentence in origin.warnings:
        yield warning("settings", sentence, "correct the name, or remove it")
    if not origin.warnings:
        read = "There is no settings file." if origin.file is None else f"The settings file is {origin.file}."
        yield fine("settings", read)


def _permissions(settings: Settings, origin: Origin) -> Iterator[Finding]:
    """What holds secrets or password hashes is to be read by its owner only."""
    personal = origin.file is not None and origin.file.name == ".env"  # no group shares it, unlike a system's file
    files = [origin.file] if origin.file is not None and personal else []
    folders = [Path(settings.backup_dir)] if settings.backup_dir else []
    if not settings.database_url:
        database = Path(settings.db_path).expanduser()
        files += [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm")]
        folders.append(database.parent)
    files += [one.path for folder in folders for one in schedule.backups_in(folder)]
    found = [(path, "can be read by others", "chmod 600") for path in files if _open_to(0o077, path)]
    shared = [path for path in origin.secret_files if not path.is_relative_to(_CONTAINER_SECRETS)]
    shared += [origin.file] if origin.file is not None and origin.holds_secrets else []
    shared += [Path(key)] if (key := settings.tls_key_file or settings.tls_cert_file) else []
    # A group of its own is how systems share keys with a service.
    found += [(path, "can be read by everybody", "chmod o=") for path in shared if _open_to(0o007, path)]
    given = [*origin.secret_files, *([] if origin.file is None else [origin.file])]
    found += [(path, "can be written to by others", "chmod go-w") for path in given if _open_to(0o022, path)]
    found += [(path, "can be written to by others", "chmod go-w") for path in folders if _open_to(0o022, path)]
    for path, what, todo in found:
        yield fault("permissions", f"{path} {what}.", f"{todo} {path}")
    if not found:
        yield fine("permissions", "Files with secrets or data are readable by their owner only.")


def _open_to(mask: int, path: Path) -> bool:
    return path.exists() and stat.S_IMODE(path.stat().st_mode) & mask != 0


def _secret(settings: Settings) -> Finding:
    secret = settings.jwt_secret
    todo = "make another with 'strongroom init' in an empty folder; docs/operating.md says how to change it"
    if not secret:
        return fault("secret", "JWT_SECRET is not set.", "run 'strongroom init'")
    if secret.lower().startswith(_COMMON) or len(set(secret)) < 8:
        return fault("secret", "JWT_SECRET can be guessed.", todo)
    if len(secret) < WEAK_SECRET_BYTES:
        return warning("secret", f"JWT_SECRET is shorter than {WEAK_SECRET_BYTES} bytes.", todo)
    if settings.jwt_secret_previous:
        return warning(
            "secret",
            "JWT_SECRET_PREVIOUS is still set.",
            "remove it when JWT_REFRESH_EXPIRY has passed since the change",
        )
    return fine("secret", f"JWT_SECRET has {len(secret)} bytes.")


def _backups(settings: Settings, now: int) -> Finding:
    if not settings.backup_dir:
        return warning(
            "backup", "The server makes no backups.", "set BACKUP_DIR, or run 'strongroom backup FILE' regularly"
        )
    made = schedule.backups_in(Path(settings.backup_dir))
    if not made:
        return warning("backup", f"{settings.backup_dir} holds no backup yet.", "start the server, and look again")
    hours = (now - made[-1].made_at) / 3_600_000
    says = f"The newest of {len(made)} backups is {hours:.1f} hours old."
    if now - made[-1].made_at > 2 * settings.backup_every:
        return fault("backup", says, "see the server's log for 'backup failed', and that it runs")
    return fine("backup", says)


def _proxies(settings: Settings) -> Finding:
    wide = [
        str(network)
        for network in settings.trusted_proxies
        if not isinstance(network, str) and network.num_addresses > 2**24
    ]
    if wide:
        return fault(
            "proxy",
            f"TRUSTED_PROXIES takes the word of {', '.join(wide)}: callers can choose their address.",
            "name your proxies only",
        )
    if settings.public_url and not settings.trusted_proxies and _is_local(settings.host):
        return warning(
            "proxy",
            "There seems to be a proxy, and its X-Forwarded-For does not count: all callers share one address.",
            "set TRUSTED_PROXIES to the address that the proxy connects from, like 127.0.0.1",
        )
    if settings.trusted_proxies:
        named = ", ".join(str(network) for network in settings.trusted_proxies)
        return fine("proxy", f"The word of {named} counts about where a caller comes from.")
    return fine("proxy", "Callers are known by their connection; no header counts.")


def _address(settings: Settings) -> Finding:
    if settings.host.startswith(UNIX):
        return fine("address", f"The server listens on the socket {settings.host.removeprefix(UNIX)}.")
    if _is_local(settings.host):
        return fine("address", f"The server listens on {settings.host}, to this machine only.")
    if settings.tls_cert_file:
        return fine("address", f"The server listens on {settings.host}, with TLS.")
    if settings.public_url.startswith("https://"):
        return warning(
            "address",
            f"The server listens on {settings.host} without TLS, so whoever reaches it can go round your proxy.",
            "set HOST=127.0.0.1, or let a firewall admit the proxy only",
        )
    return fault(
        "address",
        f"The server listens on {settings.host} without TLS: passwords can be read on their way.",
        "set HOST=127.0.0.1 and put a proxy with TLS before it; docs/operating.md shows one",
    )


def _tls(settings: Settings) -> Iterator[Finding]:
    """Whether the certificate can be used with its key, and for how long."""
    if not settings.tls_cert_file:
        return
    renew = "renew it, then send the server SIGHUP"
    try:
        listening.tls(settings)
        shown = ssl._ssl._test_decode_cert(settings.tls_cert_file)  # type: ignore[attr-defined]  # noqa: SLF001
        days = (ssl.cert_time_to_seconds(shown["notAfter"]) - time.time()) / 86_400
    except BadSetting as error:
        yield fault("tls", str(error), "see TLS_CERT_FILE and TLS_KEY_FILE")
        return
    if days < 0:
        yield fault("tls", "The certificate has expired: clients refuse it.", renew)
    elif days < _RENEW_DAYS:
        yield warning("tls", f"The certificate expires in {days:.0f} days.", renew)
    else:
        yield fine("tls", f"The certificate and its key fit, and are good for {days:.0f} days.")


def _public_url(settings: Settings) -> Finding:
    url = settings.public_url
    if url.startswith("https://"):
        return fine("public url", f"People come by {url}.")
    if url:
        return fault("public url", f"PUBLIC_URL is {url}, without TLS.", "use https; see docs/operating.md")
    return warning(
        "public url",
        "PUBLIC_URL is not set: browsers are not told to come by HTTPS only.",
        "set it to the address that people use, unless only this machine does",
    )


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
