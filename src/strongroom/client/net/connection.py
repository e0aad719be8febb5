"""How a client connects: the server's address, the certificates that it trusts, and the proxy, each checked first."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from strongroom.client.format.primitives import SecretText
from strongroom.errors import Invalid

if TYPE_CHECKING:
    import ssl

_LOCAL: Final = {"localhost", "127.0.0.1", "::1"}
_HOST: Final = re.compile(r"[^\s\x00-\x20\x7f/\\?#@<>\"^`{|}%]{1,253}")
_LIKE: Final = "like https://vault.example.com"
_PORTS: Final = {"http": 80, "https": 443}


class Connection:
    """The address of a server, and how to reach it."""

    def __init__(
        self,
        url: str,
        *,
        insecure: bool = False,
        timeout: float = 30.0,
        ca_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        transport: Any = None,
    ) -> None:
        self.url = _checked_url(url, insecure=insecure)
        parts = urlsplit(self.url)
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.is_tls = parts.scheme == "https"
        self.timeout = _checked_timeout(timeout)
        self.ca_file = None if ca_file is None else Path(ca_file)
        self.transport = transport
        self.proxy = self._chosen_proxy(proxy, insecure=insecure, trust_env=trust_env)
        self._trust_env = trust_env
        self._context = None if self.ca_file is None else _private_authorities(self.ca_file)

    def certificates(self) -> ssl.SSLContext:
        """The TLS context with the certificates that are trusted: those of `ca_file` alone, or this machine's."""
        return self._context or _machine_authorities(trust_env=self._trust_env)

    @property
    def proxy_name(self) -> str:
        """Host and port of the proxy, without its password; empty if there is none."""
        if self.proxy is None:
            return ""
        parts = urlsplit(self.proxy)
        return f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"

    def _chosen_proxy(self, given: str | None, *, insecure: bool, trust_env: bool) -> str | None:
        """The proxy: the given one, or that of the environment.

        Plain HTTP never goes to a proxy of the environment: the proxy could read it, and it is meant for this machine.
        """
        if given is not None:
            chosen = _checked_proxy(given)
            if not self.is_tls and not insecure:
                raise Invalid({"proxy": "can read what is sent to an http:// address; use https://, or insecure=True"})
            return chosen
        if not trust_env or not self.is_tls or self.transport is not None:
            return None
        from urllib.request import getproxies, proxy_bypass

        found = getproxies()
        chosen = found.get("https") or found.get("all") or ""
        if not chosen or proxy_bypass(f"{self.host}:{self.port}"):
            return None
        return _checked_proxy(chosen if "://" in chosen else f"http://{chosen}", "HTTPS_PROXY")

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"


def _checked_url(url: str, *, insecure: bool) -> str:
    """A server's URL, validated: https, or a server on this machine."""
    if not isinstance(url, str):
        raise Invalid({"url": f"must be a text {_LIKE}, not {type(url).__name__}"})
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Invalid({"url": f"has a host or a port that no address can have; it must be {_LIKE}"}) from None
    if parts.scheme not in {"http", "https"}:
        raise Invalid({"url": f"must begin with https://, {_LIKE}"})
    if "@" in parts.netloc:
        raise Invalid({"url": "must not hold a user name or a password; log in with login(email, password)"})
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise Invalid({"url": f"must not have a part after ? or #; it must be {_LIKE}"})
    if port == 0 or not _is_host(host) or _has_space(url):
        raise Invalid({"url": f"names no host; it must be {_LIKE}"})
    if parts.scheme == "http" and host not in _LOCAL and not insecure:
        raise Invalid({"url": "must begin with https://, or the connection can be read on its way; see insecure=True"})
    return url.rstrip("/")


def _checked_proxy(proxy: str, field: str = "proxy") -> str:
    """A proxy's URL, validated. It may hold a password, so that no error shows it."""
    like = "must be the address of an HTTP proxy, like http://proxy.example.com:3128"
    if not isinstance(proxy, str):
        raise Invalid({field: f"{like}, not {type(proxy).__name__}"})
    spelled = SecretText(proxy)
    try:
        parts = urlsplit(str(spelled))
        good = parts.scheme in _PORTS and _is_host(parts.hostname or "") and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise Invalid({field: like})
    return spelled


def _is_host(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return bool(_HOST.fullmatch(host)) and (":" in host or all(0 < len(label) < 64 for label in labels))


def _has_space(url: str) -> bool:
    return any(sign.isspace() or not sign.isprintable() for sign in url)


def _checked_timeout(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise Invalid({"timeout": "must be a number of seconds above 0"})
    return float(timeout)


@functools.cache
def _machine_authorities(*, trust_env: bool) -> ssl.SSLContext:
    """This machine's trusted certificates, cached for the process: loading them is slow."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


def _private_authorities(path: Path) -> ssl.SSLContext:
    """The certificates of a file, and no others."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError:
        raise Invalid({"ca_file": f"must hold certificates in PEM form, and {path.name} holds none"}) from None
    except OSError as error:
        raise Invalid({"ca_file": f"cannot be read: {path.name}: {error.strerror or 'unknown error'}"}) from None
    return context
