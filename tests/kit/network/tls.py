"""Certificates made for a test, a TLS endpoint before a server, and a small CONNECT proxy."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)
_NOW = dt.datetime.now(dt.UTC)


class Authority:
    """A certificate authority of one's own. Its certificate is in `file`."""

    def __init__(self, folder: Path, name: str = "a test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _builder(self._name, self._name, self._key.public_key(), _NOW - _DAY, _NOW + 9 * _DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_key_usage(signs=True), critical=True)
        self.file = folder / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        *names: str,
        begins: dt.datetime = _NOW - _DAY,
        ends: dt.datetime = _NOW + _DAY,
        self_signed: bool = False,
    ) -> tuple[Path, Path]:
        """A server's certificate and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        made = _builder(subject, subject if self_signed else self._name, key.public_key(), begins, ends)
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        made = made.add_extension(alternatives, critical=False)
        signer = key if self_signed else self._key
        made = made.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        stem = base64.b16encode(key.public_key().public_numbers().x.to_bytes(32, "big")[:6]).decode()
        certificate, private = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        certificate.write_bytes(made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, private


def expired() -> dict[str, dt.datetime]:
    """The times of a certificate that is over."""
    return {"begins": _NOW - 3 * _DAY, "ends": _NOW - _DAY}


def early() -> dict[str, dt.datetime]:
    """The times of a certificate that has not begun."""
    return {"begins": _NOW + _DAY, "ends": _NOW + 3 * _DAY}


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *times: dt.datetime
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    made = made.serial_number(x509.random_serial_number()).not_valid_before(times[0]).not_valid_after(times[1])
    return made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class _Listener:
    """Accepts connections, each on a thread."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError), line:
            self.serve(line)

    def serve(self, line: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(20)


class TlsEndpoint(_Listener):
    """Speaks TLS and passes everything on to a port of this machine."""

    def __init__(self, target: int, certificate: Path, key: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._target = target
        super().__init__()

    def serve(self, line: socket.socket) -> None:
        address = "127.0.0.1", self._target
        with self._context.wrap_socket(line, server_side=True) as inner, socket.create_connection(address) as other:
            _join(inner, other)


class ConnectProxy(_Listener):
    """A proxy that takes CONNECT and nothing else. Every name leads to 127.0.0.1; `password` is what it asks for."""

    def __init__(self, password: str | None = None, *, status: int = 200) -> None:
        self.seen: list[str] = []  # the first line of each request
        self._wanted = None if password is None else base64.b64encode(password.encode())
        self._status = status
        super().__init__()

    def serve(self, line: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = line.recv(4096)
            if not piece:
                return
            head += piece
        first = head.split(b"\r\n")[0].decode()
        self.seen.append(first)
        if not first.startswith("CONNECT "):
            line.sendall(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
        elif self._wanted is not None and self._wanted not in head:
            line.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        elif self._status != 200:
            line.sendall(f"HTTP/1.1 {self._status} No\r\ncontent-length: 0\r\n\r\n".encode())
        else:
            port = int(first.split()[1].rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as other:
                line.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                _join(line, other)


class Canned(_Listener):
    """Gives every request the same bytes, whatever it asks for."""

    def __init__(self, response: bytes | Callable[[], bytes]) -> None:
        self._response = response
        self.requests = 0
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, line: socket.socket) -> None:
        if line.recv(65536):
            self.requests += 1
            line.sendall(self._response if isinstance(self._response, bytes) else self._response())


def page(status: str, body: str = "<!doctype html><title>no</title>", media_type: str = "text/html") -> bytes:
    """An HTTP response with a web page."""
    head = [f"HTTP/1.1 {status}", f"content-type: {media_type}", f"content-length: {len(body)}", "connection: close"]
    return "\r\n".join([*head, "", body]).encode()


def _join(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes between two sockets, both ways, until one of them ends."""
    back = threading.Thread(target=_pass, args=(other, one), daemon=True)
    back.start()
    _pass(one, other)
    back.join(20)


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
