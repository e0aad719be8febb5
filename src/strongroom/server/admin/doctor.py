"""Diagnostics of a server (`strongroom doctor`): settings, database, TLS, proxies, backups. Read-only."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.one_time_codes import SecretBox
from strongroom.server import destinations
from strongroom.server.admin import doctor_files
from strongroom.server.settings import UNIX, WEAK_SECRET_BYTES, BadSetting
from strongroom.server.transport import listeners
from strongroom.store.findings import fault, ok, warning
from strongroom.store.maintenance import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strongroom.server.settings import Settings
    from strongroom.store.findings import Finding

_RENEW_DAYS: Final = 21
_URGENT_DAYS: Final = 2
_CONTAINER_SECRETS: Final = "/run/secrets"  # visible to the processes of one container only, whatever the modes
_COMMON: Final = (b"secret", b"changeme", b"password", b"your-secret")


class SettingsSource(NamedTuple):
    """The files that settings were read from."""

    file: Path | None = None  # the settings file
    holds_secrets: bool = False
    secret_files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def personal_files(self) -> list[Path]:
        """Settings files of one person, which no group may read."""
        return [self.file] if self.file is not None and self.file.name == ".env" else []

    @property
    def shared_files(self) -> list[Path]:
        """Files with secrets that the service may read through a group."""
        system = self.file is not None and self.holds_secrets and not self.personal_files
        files = [*self.secret_files, *([self.file] if self.file is not None and system else [])]
        return [path for path in files if not path.is_relative_to(_CONTAINER_SECRETS)]


def examine(settings: Settings, origin: SettingsSource = SettingsSource()) -> list[Finding]:  # noqa: B008 - it never changes
    """Run all checks."""
    now = time.time_ns() // 1_000_000
    return [
        *_settings_file(origin),
        *asyncio.run(health.examine(settings.database, now)),
        *doctor_files.disk_space(settings),
        *doctor_files.permissions(settings, origin.file, origin.personal_files, origin.shared_files),
        *doctor_files.open_files(settings),
        _secret(settings),
        *_second_factor(settings),
        *doctor_files.backups(settings, now),
        *_sent_backups(settings, now),
        _proxies(settings),
        _address(settings),
        _signups(settings),
        *_tls(settings),
        _public_url(settings),
    ]


def _settings_file(origin: SettingsSource) -> Iterator[Finding]:
    """Warnings about names that were probably meant as settings."""
    for sentence in origin.warnings:
        yield warning("settings", sentence, "correct the name, or remove it")
    if not origin.warnings:
        read = "There is no settings file." if origin.file is None else f"The settings file is {origin.file}."
        yield ok("settings", read)


def _secret(settings: Settings) -> Finding:
    secret = settings.jwt_secret
    todo = "create another with 'strongroom init' in an empty folder; docs/operating.md says how to change it"
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
    return ok("secret", f"JWT_SECRET has {len(secret)} bytes.")


def _second_factor(settings: Settings) -> Iterator[Finding]:
    """Whether the secrets of all one-time codes can be opened with the secrets that are set."""
    own = settings.second_factor_secret
    if own and len(own) < WEAK_SECRET_BYTES:
        yield warning(
            "second factor",
            f"SECOND_FACTOR_SECRET is shorter than {WEAK_SECRET_BYTES} bytes.",
            "set another, and this one as SECOND_FACTOR_SECRET_PREVIOUS; docs/operating.md says how to change it",
        )
    keys = asyncio.run(health.sealing_keys(settings.database)) if settings.jwt_secret else {}
    if not keys:
        return
    box = SecretBox(*settings.sealing_secrets)
    lost = sum(count for key_id, count in keys.items() if not box.knows(key_id))
    if lost:
        yield fault(
            "second factor",
            f"{lost} of {sum(keys.values())} secrets of one-time codes are sealed under a secret that is not set.",
            "set SECOND_FACTOR_SECRET_PREVIOUS to the JWT_SECRET or SECOND_FACTOR_SECRET of before, and reload",
        )
    elif keys.keys() == {box.key_id} and settings.second_factor_secret_previous:
        yield warning(
            "second factor",
            "SECOND_FACTOR_SECRET_PREVIOUS is still set, and nothing is sealed under it any more.",
            "remove it once all nodes have the new one",
        )
    else:
        yield ok("second factor", f"{sum(keys.values())} secrets of one-time codes can be opened.")


def _sent_backups(settings: Settings, now: int) -> Iterator[Finding]:
    """Whether the destination of backups can be reached, and the age of the newest backup there."""
    if not settings.backup_to:
        return
    try:
        place = destinations.destination(settings.backup_to, settings, os.environ)
        newest = asyncio.run(destinations.newest(place, now))
    except destinations.CannotSend as error:
        yield fault("backup sent", str(error), "check BACKUP_TO, and that the destination can be reached from here")
        return
    if newest is None:
        yield warning(
            "backup sent", f"{place.label} holds no backup yet.", "start the server, then run the doctor again"
        )
        return
    age = max(0, now - newest.made_at)
    says = f"The newest backup in {place.label} is {newest.path.name}, {doctor_files.elapsed(age)} old."
    if age > 2 * settings.backup_every:
        yield fault("backup sent", says, "check that the server runs, and its log for 'backup failed'")
    else:
        yield ok("backup sent", says)


def _proxies(settings: Settings) -> Finding:
    wide = [
        str(network)
        for network in settings.trusted_proxies
        if not isinstance(network, str) and network.num_addresses > 2**24
    ]
    if wide:
        return fault(
            "proxy",
            f"TRUSTED_PROXIES trusts {', '.join(wide)}: callers can forge their address.",
            "name your proxies only",
        )
    if settings.public_url and not settings.trusted_proxies and _is_local(settings.host):
        return warning(
            "proxy",
            "There seems to be a proxy, and its X-Forwarded-For is not trusted: all callers count as one address.",
            "set TRUSTED_PROXIES to the address that the proxy connects from, like 127.0.0.1",
        )
    if settings.trusted_proxies:
        named = ", ".join(str(network) for network in settings.trusted_proxies)
        return ok("proxy", f"X-Forwarded-For is trusted from {named}.")
    return ok("proxy", "No proxy is trusted: callers are identified by the address of their connection.")


def _address(settings: Settings) -> Finding:
    if settings.host.startswith(UNIX):
        return ok("address", f"The server listens on the socket {settings.host.removeprefix(UNIX)}.")
    if _is_local(settings.host):
        return ok("address", f"The server listens on {settings.host}, to this machine only.")
    if settings.tls_cert_file:
        return ok("address", f"The server listens on {settings.host}, with TLS.")
    if settings.public_url.startswith("https://"):
        return warning(
            "address",
            f"The server listens on {settings.host} without TLS, so clients can bypass your proxy.",
            "set HOST=127.0.0.1, or let a firewall admit the proxy only",
        )
    return fault(
        "address",
        f"The server listens on {settings.host} without TLS: passwords can be read in transit.",
        "set HOST=127.0.0.1 and put a proxy with TLS in front of it; docs/operating.md shows one",
    )


def _signups(settings: Settings) -> Finding:
    """Whether anyone can register, on a server that other machines can reach."""
    if not settings.signups:
        return ok("signups", "Sign-ups are closed: people register with an invitation ('strongroom invite create').")
    if settings.public_url or not (_is_local(settings.host) or settings.host.startswith(UNIX)):
        return warning(
            "signups",
            "Sign-ups are open: anyone who can reach the server can register.",
            "set SIGNUPS=closed, restart, and use 'strongroom invite create', unless you want that",
        )
    return ok("signups", "Sign-ups are open, to this machine only.")


def _tls(settings: Settings) -> Iterator[Finding]:
    """Whether the certificate matches its key, and when it expires."""
    if not settings.tls_cert_file:
        return
    renew = "renew it, then send the server SIGHUP"
    try:
        listeners.tls(settings)
        shown = ssl._ssl._test_decode_cert(settings.tls_cert_file)  # type: ignore[attr-defined]  # noqa: SLF001
        begins, ends = (ssl.cert_time_to_seconds(shown[name]) for name in ("notBefore", "notAfter"))
    except BadSetting as error:
        yield fault("tls", str(error), "check TLS_CERT_FILE and TLS_KEY_FILE")
        return
    days = (ends - time.time()) / 86_400
    names = ", ".join(sorted({name for _, name in shown.get("subjectAltName", ())})) or "no name"
    certificate = f"The certificate for {names} ({settings.tls_cert_file})"
    on = time.strftime("%Y-%m-%d", time.gmtime(ends))
    if days < 0:
        yield fault("tls", f"{certificate} expired on {on}: clients refuse it.", renew)
    elif begins > time.time():
        yield fault(
            "tls", f"{certificate} is not valid yet: clients refuse it.", "set the clock, or use another certificate"
        )
    elif days < _URGENT_DAYS:
        yield fault("tls", f"{certificate} expires on {on}, in {24 * days:.0f} hours.", renew)
    elif days < _RENEW_DAYS:
        yield warning("tls", f"{certificate} expires on {on}, in {days:.0f} days.", renew)
    else:
        yield ok("tls", f"{certificate} matches its key, and is valid until {on}, for {days:.0f} days.")


def _public_url(settings: Settings) -> Finding:
    url = settings.public_url
    if url.startswith("https://"):
        return ok("public url", f"Users connect to {url}.")
    if url:
        return fault("public url", f"PUBLIC_URL is {url}, without TLS.", "use https; see docs/operating.md")
    return warning(
        "public url",
        "PUBLIC_URL is not set: browsers are not told to use HTTPS only.",
        "set it to the address that users connect to, unless only this machine does",
    )


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
