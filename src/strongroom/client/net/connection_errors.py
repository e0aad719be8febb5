"""Names the cause where there is no response: name lookup, refused connection, certificate, timeout, proxy."""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Iterator
from socket import gaierror
from typing import TYPE_CHECKING, Final

from strongroom.client.errors import Unreachable
from strongroom.client.net.effects import NoResponse

if TYPE_CHECKING:
    from strongroom.client.net.connection import Connection

# OpenSSL's codes of what is wrong with a certificate (X509_V_ERR_…).
_NOT_YET: Final = {9}
_EXPIRED: Final = {10}
_SELF_SIGNED: Final = {18}
_UNTRUSTED: Final = {2, 19, 20, 21}
_OTHER_NAME: Final = {62, 64}
_UNROUTED: Final = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}


def no_response(error: Exception, connection: Connection, seconds: float) -> NoResponse:
    """What an error of the HTTP library means. `seconds` is how long a response was waited for."""
    import httpx2

    sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout | httpx2.ProxyError)
    certificate = next((one for one in _causes(error) if isinstance(one, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        return NoResponse(sent=False, error=_certificate(certificate, connection), retry=False)
    if isinstance(error, httpx2.ProxyError):
        return _proxy(error, connection)
    return NoResponse(sent=sent, error=_network(error, connection, seconds))


def _network(error: Exception, connection: Connection, seconds: float) -> Unreachable:
    import httpx2

    server = f"{connection.host}:{connection.port}"
    target = f"The proxy {connection.proxy_name}" if connection.proxy else f"The server {server}"
    causes = list(_causes(error))
    if any(isinstance(one, gaierror) for one in causes):
        host = connection.proxy_name.rpartition(":")[0] or connection.host
        return _error("dns", connection, f"No address is known for the host {host}; check its name and the network.")
    if isinstance(error, httpx2.ConnectTimeout):
        return _error("connect_timeout", connection, f"{target} did not accept the connection in time.")
    if isinstance(error, httpx2.PoolTimeout):
        return _error("busy", connection, "All connections of this client were in use for too long.")
    if isinstance(error, httpx2.TimeoutException):
        return _timeout(connection, seconds)
    if any(isinstance(one, ssl.SSLError) for one in causes):
        return _tls(causes, connection, server)
    numbers = {one.errno for one in causes if isinstance(one, OSError)}
    if errno.ECONNREFUSED in numbers:
        sentence = f"{target} refused the connection: nothing listens there, or a firewall is in between."
        return _error("refused", connection, sentence)
    if numbers & _UNROUTED:
        return _error("no_route", connection, f"There is no route to {target[0].lower()}{target[1:]} from here.")
    if isinstance(error, httpx2.ConnectError):
        return _error("connect", connection, f"{target} cannot be reached.")
    hint = "" if connection.is_tls else " If it expects TLS, its address begins with https://."
    return _error("disconnected", connection, f"{target} closed the connection without a whole response.{hint}")


def _timeout(connection: Connection, seconds: float) -> Unreachable:
    sentence = (
        f"The server {connection.host}:{connection.port} did not answer within {seconds:g} seconds; "
        "pass a longer timeout= if it is slow."
    )
    return _error("timeout", connection, sentence)


def _tls(causes: list[BaseException], connection: Connection, server: str) -> Unreachable:
    reasons = {one.reason for one in causes if isinstance(one, ssl.SSLError)}
    if reasons & {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}:
        return _error("not_tls", connection, f"What answers at {server} does not speak TLS; check the port.")
    reason = next((str(one).lower().replace("_", " ") for one in sorted(filter(None, reasons))), "unknown")
    return _error("tls", connection, f"No TLS connection to {server} could be made: {reason}.")


def _certificate(error: ssl.SSLCertVerificationError, connection: Connection) -> Unreachable:
    code, host = getattr(error, "verify_code", 0), connection.host
    if code in _EXPIRED:
        sentence = (
            f"The certificate of {host} has expired; its operator has to renew it. Check this machine's clock too."
        )
        return _error("certificate_expired", connection, sentence)
    if code in _NOT_YET:
        sentence = f"The certificate of {host} is not valid yet; check this machine's clock."
        return _error("certificate_not_yet_valid", connection, sentence)
    if code in _OTHER_NAME:
        sentence = f"The certificate that was shown for {host} is for another name; use the name that is in it."
        return _error("certificate_name", connection, sentence)
    if code in _SELF_SIGNED | _UNTRUSTED:
        is_own = code in _SELF_SIGNED
        reason = "certificate_self_signed" if is_own else "certificate_untrusted"
        return _error(reason, connection, _untrusted(connection, is_own=is_own))
    said = " ".join((getattr(error, "verify_message", "") or "unknown reason").split())[:200].rstrip(".")
    return _error("certificate", connection, f"The certificate of {host} could not be verified: {said}.")


def _untrusted(connection: Connection, *, is_own: bool) -> str:
    what = f"The certificate of {connection.host}"
    if connection.ca_file is not None:
        by = "is self-signed and not" if is_own else "is not signed by one"
        return f"{what} {by} in {connection.ca_file.name} (ca_file)."
    if is_own:
        return (
            f"{what} is self-signed, so nothing shows that it is the server's. If it is, copy the certificate from the "
            "server by a way that you trust, and pass the file as ca_file=."
        )
    return (
        f"{what} is signed by an authority that this machine does not trust. If it is your own, pass the file with its "
        "certificate as ca_file=."
    )


def _proxy(error: Exception, connection: Connection) -> NoResponse:
    found = re.match(r"(\d{3})\b", str(error))
    status = int(found[1]) if found else 0
    name = connection.proxy_name
    if status == 407:
        sentence = f"The proxy {name} asks for a password: proxy='http://user:password@{name}'."
        made = _error("proxy_password", connection, sentence)
    else:
        said = f" ({status})" if status else ""
        made = _error("proxy", connection, f"The proxy {name} did not connect to {connection.host}{said}.")
    return NoResponse(sent=False, error=made, retry=status in {0, 502, 503, 504})


def _error(reason: str, connection: Connection, sentence: str) -> Unreachable:
    details: dict[str, str | int] = {"host": connection.host, "port": connection.port}
    if connection.proxy is not None:
        details["proxy"] = connection.proxy_name
    return Unreachable(sentence, reason=reason, details=details)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and everything that led to it."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]
            if isinstance(one, BaseExceptionGroup):
                waiting += one.exceptions
